"""The protocols of a world: contexts, and a loss for an action in each round."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.decision import Within
from manul.utils.validation import Floats

Contexts = npt.NDArray[np.float32]


@runtime_checkable
class World(Protocol):
    """Anything with one context per round and a loss for an action, in action units.

    If the range of actions differs between rounds, the world is a `NarrowedWorld`.
    """

    @property
    def contexts(self) -> Contexts:
        """One row per round."""

    def __len__(self) -> int: ...

    def loss(self, number: int, action: float) -> float:
        """The loss of an action in a round; rounds are numbered from 0."""


@runtime_checkable
class NarrowedWorld(World, Protocol):
    """A world whose range of actions may differ between rounds: from `lows` to `highs`, one number per round each."""

    @property
    def lows(self) -> Floats | None:
        """The lowest action of each round; None if all rounds have the agent's range."""

    @property
    def highs(self) -> Floats | None:
        """The highest action of each round."""


@runtime_checkable
class ScaledWorld(Protocol):
    """A world that can be scaled to any range of actions."""

    @property
    def contexts(self) -> Contexts:
        """One row per round."""

    def __len__(self) -> int: ...

    def table(self, actions: Within) -> Table:
        """Scale the world to an agent's range of actions."""


@dataclass(frozen=True, eq=False)
class Table:
    """A world in action units that the core can run by itself; `losses` is the range of its losses."""

    native: _core.Table
    contexts: Contexts
    losses: Within
    lows: Floats | None = None
    highs: Floats | None = None

    def __len__(self) -> int:
        return len(self.contexts)

    def loss(self, number: int, action: float) -> float:
        return self.native.loss(number, action)
