"""What a policy and an agent are: the protocols that everything else is written against."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy.typing as npt

from manul.actions.decision import Decision, Decisions
from manul.actions.space import ActionSpace
from manul.contexts.schema import Context, Contexts, ContextSchema


@runtime_checkable
class Policy(Protocol):
    """Maps a context to a distribution over actions."""

    def distribution(self, context: Context, within: Any = None) -> Any:
        """The distribution of the action for a context."""


@runtime_checkable
class HasSchema(Protocol):
    """A policy that knows the fields of its contexts, or the width of rows of numbers."""

    schema: ContextSchema


@runtime_checkable
class TellsLevels(Protocol):
    """An agent whose decisions can say what they were drawn from: `decide` and `decide_many` take `levels`."""

    @property
    def tells_levels(self) -> bool:
        """Whether it can: one that has another agent inside can if that one can."""


@runtime_checkable
class Agent(Policy, Protocol):
    """A policy that decides and learns; the batch methods give exactly the results of the single ones."""

    @property
    def space(self) -> ActionSpace:
        """What it may choose."""

    def decide(self, context: Context, within: Any = None) -> Decision:
        """Draw an action."""

    def learn(self, context: Context, decision: Decision, loss: float) -> None:
        """Learn from the loss of a decision."""

    def decide_many(self, contexts: Contexts, within: Any = None) -> Decisions:
        """Draw an action for each row."""

    def learn_many(self, contexts: Contexts, decisions: Decisions, losses: npt.ArrayLike) -> None:
        """Learn from the losses of many decisions, in order."""
