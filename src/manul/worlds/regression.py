"""A regression table as a bandit problem: the action is a prediction, the loss its error (section 5 of the paper)."""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.decision import Within
from manul.contexts import conversion
from manul.contexts.table_encoding import one_hot
from manul.errors import InputError
from manul.utils.validation import Floats, check_choice, check_finite, check_shape
from manul.worlds.world import Table

LossName = Literal["absolute", "squared"]


class Regression:
    """Contexts and targets; the loss is the error divided by the agent's range of actions.

    >>> world = Regression([[1.0], [2.0]], [0.25, 0.5])
    >>> world.losses([0.5, 0.5], actions=(0.0, 1.0))
    array([0.25, 0.  ])
    """

    def __init__(self, contexts: npt.ArrayLike, targets: npt.ArrayLike, loss: LossName = "absolute") -> None:
        self.contexts = conversion.matrix(one_hot(contexts))
        self.targets: Floats = np.ascontiguousarray(targets, dtype=np.float64)
        check_shape("targets", self.targets, len(self.contexts))
        check_finite("targets", self.targets)
        check_choice("loss", loss, ("absolute", "squared"))
        self.loss = loss

    def __len__(self) -> int:
        return len(self.targets)

    def table(self, actions: Within) -> Table:
        """Scale the world to an agent's range of actions.

        >>> Regression([[1.0]], [8.0]).table((0.0, 32.0)).loss(0, 16.0)
        0.25
        """
        self.check_targets(actions)
        nothing = np.empty(0)
        native = _core.Table(
            contexts=self.contexts,
            loss=_core.Loss.absolute if self.loss == "absolute" else _core.Loss.squared,
            actions=actions,
            positions=self.targets[:, np.newaxis],
            values=np.empty((0, 0)),
            lows=nothing,
            highs=nothing,
        )
        return Table(native, self.contexts, (0.0, 1.0))

    def losses(self, chosen: npt.ArrayLike, actions: Within) -> Floats:
        """The loss of the chosen action in each round."""
        low, high = actions
        error = np.abs(np.asarray(chosen) - self.targets) / (high - low)
        return error if self.loss == "absolute" else error**2

    def check_targets(self, actions: Within) -> None:
        """Raise an error if a target is outside the range of actions.

        >>> Regression([[1.0]], [0.25]).check_targets((0.0, 1.0))
        """
        low, high = actions
        outside = (self.targets < low) | (self.targets > high)
        if outside.any():
            first = int(np.argmax(outside))
            raise InputError(
                f"targets must be in the agent's range of actions ({low:g}, {high:g}), got {self.targets[first]:g} in row {first}. "
                f"Use actions=({self.targets.min():g}, {self.targets.max():g}).",
                "targets",
            )
