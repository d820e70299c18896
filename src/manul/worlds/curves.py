"""Worlds with piecewise linear losses, whose optimum is known."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.decision import Within
from manul.contexts import conversion
from manul.contexts.table_encoding import one_hot
from manul.errors import InputError
from manul.utils.validation import Floats, check_finite, check_range
from manul.worlds import optimum as known
from manul.worlds.world import Table


class Curves:
    """A piecewise linear loss for each round, given by knots; positions are shares of the agent's range of actions.

    `values` are the losses at the knots, and `expected` their means given the context, if these differ. Two knots at
    one position make a jump. `lows` and `highs` bound the allowed actions of each round, as shares.

    >>> world = Curves([[1.0]], positions=[[0.0, 0.5, 1.0]], values=[[0.5, 0.0, 0.5]])
    >>> world.losses([12.0], actions=(0.0, 32.0)), world.optimum(bandwidth=1/8, epsilon=0.0)
    (array([0.125]), 0.0625)
    """

    def __init__(
        self,
        contexts: npt.ArrayLike,
        *,
        positions: npt.ArrayLike,
        values: npt.ArrayLike,
        expected: npt.ArrayLike | None = None,
        lows: npt.ArrayLike | None = None,
        highs: npt.ArrayLike | None = None,
    ) -> None:
        self.contexts = conversion.matrix(one_hot(contexts))
        self.positions, self.values = _floats(positions), _floats(values)
        self.expected = self.values if expected is None else _floats(expected)
        for name, array in {"positions": self.positions, "values": self.values, "expected": self.expected}.items():
            self._check_knots(name, array)
        if (np.diff(self.positions) < 0).any() or self.positions[:, 0].any() or (self.positions[:, -1] != 1).any():
            raise InputError("positions must ascend from 0 to 1 in every round.", "positions")
        self.lows = None if lows is None else _floats(lows)
        self.highs = None if highs is None else _floats(highs)
        self._check_ranges()

    def __len__(self) -> int:
        return len(self.contexts)

    def table(self, actions: Within) -> Table:
        """Scale the world to an agent's range of actions.

        >>> Curves([[1.0]], positions=[[0.0, 1.0]], values=[[0.0, 1.0]]).table((0.0, 32.0)).loss(0, 8.0)
        0.25
        """
        low, high = check_range("actions", actions)
        lows, highs = (None if ends is None else _scale(ends, low, high) for ends in (self.lows, self.highs))
        nothing = np.empty(0)
        native = _core.Table(
            contexts=self.contexts,
            loss=_core.Loss.knots,
            actions=(low, high),
            positions=_scale(self.positions, low, high),
            values=self.values,
            lows=nothing if lows is None else lows,
            highs=nothing if highs is None else highs,
        )
        return Table(native, self.contexts, (float(self.values.min()), float(self.values.max())), lows, highs)

    def losses(self, chosen: npt.ArrayLike, actions: Within) -> Floats:
        """The loss of the chosen action in each round."""
        table = self.table(actions)
        return np.array([table.loss(number, action) for number, action in enumerate(_floats(chosen))])

    def optimum(self, *, bandwidth: float, epsilon: float) -> float:
        """The mean loss of the best policy with this bandwidth and epsilon, for actions (0, 1).

        >>> Curves([[1.0]], positions=[[0.0, 1.0]], values=[[0.0, 1.0]]).optimum(bandwidth=0.25, epsilon=0.5)
        0.375
        """
        return known.optimum(self._expected, bandwidth=bandwidth, epsilon=epsilon)

    def best_constant(self, *, bandwidth: float, epsilon: float) -> float:
        """The mean loss of the best policy with the same centre in every round, for actions (0, 1).

        >>> Curves([[1.0]], positions=[[0.0, 1.0]], values=[[0.0, 1.0]]).best_constant(bandwidth=0.25, epsilon=0.5)
        0.375
        """
        return known.best_constant(self._expected, bandwidth=bandwidth, epsilon=epsilon)

    @property
    def _expected(self) -> known.Expected:
        lows = np.zeros(len(self)) if self.lows is None else self.lows
        highs = np.ones(len(self)) if self.highs is None else self.highs
        return known.Expected(self.positions, self.expected, lows, highs)

    def _check_knots(self, name: str, array: Floats) -> None:
        if array.ndim != 2 or array.shape != self.positions.shape or len(array) != len(self) or array.shape[1] < 2:
            raise InputError(
                f"{name} must have one row per context, {len(self)}, and at least two columns, got shape {array.shape}.",
                name,
            )
        check_finite(name, array)

    def _check_ranges(self) -> None:
        if self.lows is None and self.highs is None:
            return
        lows, highs = self.lows, self.highs
        if lows is None or highs is None or lows.shape != (len(self),) or highs.shape != (len(self),):
            raise InputError(f"lows and highs must both have one number per context, {len(self)}.", "lows")
        good = (lows >= 0) & (lows < highs) & (highs <= 1)
        if not good.all():
            row = int(np.argmin(good))
            rule = "fractions of the range of actions with 0 <= low < high <= 1"
            raise InputError(
                f"lows and highs must be {rule}, got ({lows[row]:g}, {highs[row]:g}) in row {row}.", "lows"
            )


def _floats(values: npt.ArrayLike) -> Floats:
    return np.ascontiguousarray(values, dtype=np.float64)


def _scale(shares: Floats, low: float, high: float) -> Floats:
    # Rounding must not move the end of a range beyond the end of the actions.
    return np.minimum(low + shares * (high - low), high)
