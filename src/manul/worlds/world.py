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

    If the range of actions differs between rounds, the world also has arrays `lows` and `highs`.
    """

    @property
    def contexts(self) -> Contexts:
        """One row per round."""

    def __len__(self) -> int: ...

    def loss(self, number: int, action: float) -> float:
        """The loss of an action in a round; rounds are numbered from 0."""


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
    """A world in action units that the core can run by itself; `losses` is the range of its losses.

    >>> from manul.worlds import Regression
    >>> Regression([[1.0], [2.0]], [0.25, 0.5]).table((0.0, 2.0)).loss(1, 1.5)
    0.5
    """

    native: _core.Table
    contexts: Contexts
    losses: Within
    lows: Floats | None = None
    highs: Floats | None = None

    def __len__(self) -> int:
        return len(self.contexts)

    def loss(self, number: int, action: float) -> float:
        """The loss of an action in a round."""
        return self.native.loss(number, action)
