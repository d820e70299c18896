"""Frozen values that pass between the parts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from manul.distribution import Atoms, Distribution

Floats = npt.NDArray[np.float64]
Context = npt.ArrayLike | Mapping[str, object] | None
Within = tuple[float, float]


class Decision(NamedTuple):
    """An action, the density it was drawn with, and the range it was drawn from where that was narrowed.

    >>> Decision(21.4, 0.24)
    Decision(action=21.4, density=0.24)
    """

    action: float
    density: float
    within: Within | None = None

    def __repr__(self) -> str:
        narrowed = "" if self.within is None else f", within={self.within!r}"
        return f"Decision(action={self.action!r}, density={self.density!r}{narrowed})"


class Decisions(NamedTuple):
    """Many decisions as arrays; `lows` and `highs` are None where every decision had the whole range."""

    actions: Floats
    densities: Floats
    lows: Floats | None = None
    highs: Floats | None = None


@runtime_checkable
class Policy(Protocol):
    """Anything that gives a distribution over actions for a context."""

    def distribution(self, context: Context, within: Within | None = None) -> Distribution | Atoms:
        """The distribution that actions are drawn from."""


@runtime_checkable
class Agent(Policy, Protocol):
    """A policy that decides and learns; the batch forms give exactly what the single forms give."""

    def decide(self, context: Context, within: Within | None = None) -> Decision:
        """Draw an action."""

    def learn(self, context: Context, decision: Decision, loss: float) -> None:
        """Take in what a decision led to."""

    def decide_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> Decisions:
        """Draw an action for each row."""

    def learn_many(self, contexts: npt.ArrayLike, decisions: Decisions, losses: npt.ArrayLike) -> None:
        """Take in what many decisions led to, in order."""
