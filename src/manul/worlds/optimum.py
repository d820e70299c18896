"""The loss of the best smoothed policy that knows the expected loss of every action in every round.

The expected loss of a round is piecewise linear. Its mean over a window is piecewise quadratic in the centre of the
window, with breaks where an end of the window meets a knot, so its minimum is found exactly, piece by piece.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from manul.actions.ranges import Actions
from manul.errors import ParameterError
from manul.utils.validation import Floats, check_bandwidth, check_epsilon

BLOCK = 8192  # rounds per block of the computation, which bounds its memory
COARSE, FINE = 129, 65  # points of the two searches for the best constant


@dataclass(frozen=True, eq=False)
class Expected:
    """The expected loss of each round, given by knots, one row per round, between the lows and the highs."""

    positions: Floats
    values: Floats
    lows: Floats
    highs: Floats

    def rows(self, chosen: slice) -> Expected:
        return Expected(self.positions[chosen], self.values[chosen], self.lows[chosen], self.highs[chosen])

    def windows(self, centres: Floats, bandwidth: float) -> Floats:
        """The mean of each round's loss over the window around its centre; one centre or several per round."""
        area = self._area(centres + bandwidth) - self._area(centres - bandwidth)
        return area / (2 * bandwidth)

    def whole(self) -> Floats:
        """The mean of each round's loss over all its actions: the loss of exploration."""
        return (self._area(self.highs) - self._area(self.lows)) / (self.highs - self.lows)

    def best(self, bandwidth: float) -> Floats:
        """The lowest loss of a window inside the range of each round."""
        ends = np.concatenate([self.positions - bandwidth, self.positions + bandwidth], axis=1)
        lowest, highest = self.lows + bandwidth, np.maximum(self.highs - bandwidth, self.lows + bandwidth)
        ends = np.sort(np.clip(np.column_stack([lowest, ends, highest]), lowest[:, None], highest[:, None]), axis=1)
        left, right = ends[:, :-1], ends[:, 1:]
        at_ends, at_middle = self.windows(ends, bandwidth), self.windows((left + right) / 2, bandwidth)
        at_left, at_right = at_ends[:, :-1], at_ends[:, 1:]
        bend, slope = 2 * (at_left - 2 * at_middle + at_right), at_right - at_left
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.nan_to_num(np.clip(0.5 - slope / (2 * bend), 0, 1))
        at_vertex = self.windows(left + share * (right - left), bandwidth)
        best: Floats = np.minimum(at_ends.min(axis=1), at_vertex.min(axis=1))
        return best

    def _area(self, actions: Floats) -> Floats:
        steps = np.diff(self.positions, axis=1)
        areas = np.cumsum(steps * (self.values[:, 1:] + self.values[:, :-1]) / 2, axis=1)
        areas = np.column_stack([np.zeros(len(areas)), areas])
        wanted = actions.reshape(len(areas), -1)
        last = self.positions.shape[1] - 2
        piece = np.clip((self.positions[:, :, None] < wanted[:, None, :]).sum(axis=1) - 1, 0, last)
        at, step, value, rise, area = (
            np.take_along_axis(column, piece, axis=1)
            for column in (self.positions, steps, self.values, np.diff(self.values, axis=1), areas)
        )
        past = wanted - at
        slope = np.divide(rise, step, out=np.zeros_like(rise), where=step > 0)
        total: Floats = area + past * (value + slope * past / 2)
        return total.reshape(actions.shape)


def optimum(expected: Expected, *, bandwidth: float, epsilon: float) -> float:
    """The mean loss of the best window of every round, with exploration."""
    check_settings(expected, bandwidth, epsilon)
    return _mean(expected, lambda rows: mix(rows.best(bandwidth), rows.whole(), epsilon))


def best_constant(expected: Expected, *, bandwidth: float, epsilon: float) -> float:
    """The mean loss of the best constant centre, clipped to the range of each round, accurate to 1/4096 of the range."""
    check_settings(expected, bandwidth, epsilon)
    area = _mean_area(expected)

    def whole_range(centre: float) -> float:
        return (area(centre + bandwidth) - area(centre - bandwidth)) / (2 * bandwidth)

    def narrow_ranges(centre: float) -> float:
        return _mean(expected, lambda rows: rows.windows(_clip_centre(rows, centre, bandwidth), bandwidth))

    whole = expected.lows.max() == 0 and expected.highs.min() == 1
    lowest = minimise(whole_range if whole else narrow_ranges, bandwidth)
    return (1 - epsilon) * lowest + epsilon * _mean(expected, Expected.whole)


def minimise(loss: Callable[[float], float], bandwidth: float) -> float:
    """Minimise a function of the centre: a coarse search over the actions (0, 1), then a fine one."""
    low, high = bandwidth, 1 - bandwidth
    for points in (COARSE, FINE):
        centres = np.linspace(low, high, points)
        losses = [loss(float(centre)) for centre in centres]
        step, at = (high - low) / (points - 1), centres[int(np.argmin(losses))]
        low, high = max(low, at - step), min(high, at + step)
    return min(losses)


def mix(policy: Floats, whole: Floats, epsilon: float) -> Floats:
    """Mix the loss of the policy with that of uniform exploration."""
    return (1 - epsilon) * policy + epsilon * whole


def check_settings(expected: Expected, bandwidth: float, epsilon: float) -> None:
    """Raise an error if no agent could use these settings."""
    check_bandwidth(bandwidth, Actions(0.0, 1.0))
    check_epsilon(epsilon)
    narrowest = float((expected.highs - expected.lows).min())
    if 2 * bandwidth > narrowest * (1 + 1e-12):
        raise ParameterError(
            f"bandwidth must be at most half the narrowest range, {narrowest / 2:g}, got {bandwidth:g}.", "bandwidth"
        )


def _mean_area(expected: Expected) -> Callable[[float], float]:
    """The integral of the mean loss of all rounds up to an action.

    That mean is linear between any two knots. With the knots sorted, and the sums of their contributions to level and
    slope, one look-up gives the integral at an action.
    """
    count, steps, rises = len(expected.lows), np.diff(expected.positions), np.diff(expected.values)
    slopes = np.divide(rises, steps, out=np.zeros_like(rises), where=steps > 0)
    bends = np.diff(slopes, axis=1, prepend=0).ravel() / count
    jumps = np.where(steps > 0, 0, rises).ravel() / count
    at = expected.positions[:, :-1].ravel()
    order = np.argsort(at, kind="stable")
    at, bends, jumps = at[order], bends[order], jumps[order]
    terms = (bends / 2, jumps - bends * at, (bends * at / 2 - jumps) * at)
    square, linear, fixed = (np.concatenate([[0.0], np.cumsum(term)]) for term in terms)
    start = expected.values[:, 0].mean()

    def area(action: float) -> float:
        passed = np.searchsorted(at, action)
        return float(start * action + (square[passed] * action + linear[passed]) * action + fixed[passed])

    return area


def _clip_centre(expected: Expected, centre: float, bandwidth: float) -> Floats:
    return np.maximum(np.minimum(centre, expected.highs - bandwidth), expected.lows + bandwidth)


def _mean(expected: Expected, measure: Callable[[Expected], Floats]) -> float:
    count = len(expected.lows)
    blocks = (measure(expected.rows(slice(first, first + BLOCK))) for first in range(0, count, BLOCK))
    return float(np.concatenate(list(blocks)).mean())
