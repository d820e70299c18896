"""Warns of decisions that an agent learns twice, which then count twice.

A batch is known by its identity for as long as it exists, if the agent has drawn it. A single decision is a plain tuple, of
which an agent only knows whether it is the one that it learned last: to remember more of them costs a tenth of the time of a
decision. Equal decisions are no repetition, and neither are the rows of a log, which are new objects.
"""

from __future__ import annotations

import warnings
from weakref import WeakSet

from manul.actions.decision import Decisions
from manul.errors import LearnedTwiceWarning


class LearnedBatches:
    """The batches that an agent has drawn, and those of them that it has learned."""

    def __init__(self) -> None:
        self._drawn, self._learned = WeakSet[Decisions](), WeakSet[Decisions]()

    def __reduce__(self) -> tuple[type[LearnedBatches], tuple[()]]:
        """A copy of an agent knows no batches: those that it would copy are other objects."""
        return LearnedBatches, ()

    def draw(self, decisions: Decisions) -> None:
        self._drawn.add(decisions)

    def learn(self, decisions: object, stacklevel: int) -> None:
        """Remember that a batch was learned, and warn if it was before; only batches that were drawn matter."""
        if not isinstance(decisions, Decisions) or decisions not in self._drawn:
            return
        if decisions in self._learned:
            sentence = "These decisions were learned before, so they count twice. Learn each decision once."
            warnings.warn(sentence, LearnedTwiceWarning, stacklevel=stacklevel + 1)
        self._learned.add(decisions)


def warn_of_repeated_decision(decision: object, stacklevel: int) -> None:
    """Warn that a decision was learned twice in a row."""
    sentence = f"{decision!r} was learned just before, so it counts twice. Learn each decision once."
    warnings.warn(sentence, LearnedTwiceWarning, stacklevel=stacklevel + 1)
