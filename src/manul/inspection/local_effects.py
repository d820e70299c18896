"""Accumulated local effects of one feature (Apley and Zhu 2020), with standard errors over the contexts.

The values of a feature form a ladder. Each step compares the actions at its two ends, for the contexts whose value is at
this step only, so no context is moved far from the data. The sum of the mean differences up to a value is its effect.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manul.utils.validation import Floats

STEPS, LEVELS = 10, 12  # of numbers, and categories at most: rarer ones are left out
MIDDLE = 0.05, 0.95  # the quantiles between which the effects of numbers are measured, away from outliers
Z = 1.96  # of a 95 % interval
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ladder:
    """Ascending values of a feature; `at[i]` is the place of row `rows[i]`, where 0 is the first value and 1 the second."""

    values: tuple[Any, ...]
    rows: Ints
    at: Floats

    @property
    def counts(self) -> Ints:
        """The number of rows nearest to each value."""
        return np.bincount(self.at.round().astype(np.int64), minlength=len(self.values))

    def coverage(self) -> Floats:
        """How much of each step every row has behind it, from 0 to 1."""
        return np.clip(self.at[:, np.newaxis] - np.arange(len(self.values) - 1), 0.0, 1.0)

    def moves(self) -> tuple[Ints, Ints]:
        """The pairs of a row and a step that are compared: each row with the step it is on, or both if it is between two."""
        below = np.floor(self.at).astype(np.int64)
        numbers = np.arange(len(self.at))
        between = self.at == below
        rows = np.concatenate([numbers[below < len(self.values) - 1], numbers[between & (below > 0)]])
        steps = np.concatenate([below[below < len(self.values) - 1], below[between & (below > 0)] - 1])
        return rows, steps


def number_ladder(positions: Floats, values: Sequence[Any], rows: Ints) -> Ladder:
    """The ladder of numbers or times: all values if there are few, otherwise quantiles of the middle 90 % of the rows."""
    distinct, first = np.unique(positions, return_index=True)
    if len(distinct) > STEPS + 1:
        picked = np.unique(np.quantile(positions, np.linspace(*MIDDLE, STEPS + 1), method="inverted_cdf"))
        first = first[np.searchsorted(distinct, picked)]
        distinct = picked
    inside = (positions >= distinct[0]) & (positions <= distinct[-1])
    at = np.interp(positions[inside], distinct, np.arange(len(distinct), dtype=np.float64))
    return Ladder(tuple(values[index] for index in first), rows[inside], at)


def category_ladder(categories: Sequence[Any], actions: Floats, rows: Ints) -> Ladder:
    """The ladder of the most common categories, in the order of the mean action of their rows."""
    common = [category for category, _ in Counter(categories).most_common(LEVELS)]
    means = {category: actions[[other == category for other in categories]].mean() for category in common}
    ordered = sorted(common, key=lambda category: (means[category], str(category)))
    place = {category: number for number, category in enumerate(ordered)}
    kept = [number for number, category in enumerate(categories) if category in place]
    at = np.array([place[categories[number]] for number in kept], dtype=np.float64)
    return Ladder(tuple(ordered), rows[kept], at)


@dataclass(frozen=True, eq=False)
class LocalEffects:
    """The effect of each value of a ladder compared with the mean over the contexts, and the change from the first to the last.

    `errors` and `change_error` are standard errors. A consistency of 1 or -1 means that all contexts move the same way as
    the mean, and 0 that as many move the other way. `steps` are the mean changes from each value to the next, `sizes` the
    means of their absolute values, and `covariance` is that of the steps.
    """

    effects: Floats
    errors: Floats
    consistencies: Floats
    change: float
    change_error: float
    change_consistency: float
    steps: Floats
    sizes: Floats
    covariance: Floats

    @property
    def cancelled(self) -> float:
        """How much the feature moves the action in directions that differ between contexts, which the means do not show."""
        return float((self.sizes - np.abs(self.steps)).sum())

    def swings(self, least: float) -> list[Swing]:
        """The rises and falls along the ladder of at least a size, in turn; smaller ones between them are ignored."""
        turns = turning_points(self.effects.tolist(), least)
        return [self._swing(first, last) for first, last in pairwise(turns)]

    def _swing(self, first: int, last: int) -> Swing:
        which = slice(first, last)
        change, size = float(self.steps[which].sum()), float(self.sizes[which].sum())
        error = math.sqrt(max(float(self.covariance[which, which].sum()), 0.0))
        return Swing(first, last, change, error, change / size if size else 0.0)


class Swing(NamedTuple):
    """A rise or fall between two places of a ladder, its standard error and its consistency."""

    first: int
    last: int
    change: float
    error: float
    consistency: float


def turning_points(heights: Sequence[float], least: float) -> list[int]:
    """The places where a curve turns, and its ends, if each rise and fall between them is at least so large.

    >>> turning_points([5, 1, 0, 1, 6], 2), turning_points([0, 1, 0.5, 3], 2), turning_points([0, 1, 0], 2)
    ([0, 2, 4], [0, 3], [])
    """
    points: list[int] = []
    low = high = rising = 0
    for place, height in enumerate(heights):
        if rising <= 0 and height < heights[low]:
            low = place
        if rising >= 0 and height > heights[high]:
            high = place
        if rising <= 0 and height - heights[low] >= least:
            points, rising, high = [*points, low], 1, place
        elif rising >= 0 and heights[high] - height >= least:
            points, rising, low = [*points, high], -1, place
    return [*points, high if rising > 0 else low] if rising else []


def local_effects(ladder: Ladder, predict: Callable[[Ints, list[Any]], Floats]) -> LocalEffects:
    """The accumulated local effects; `predict` returns the actions of rows with the given values of the feature."""
    numbers, steps = ladder.moves()
    rows, ends = (
        ladder.rows[numbers],
        [ladder.values[step] for step in steps] + [ladder.values[step + 1] for step in steps],
    )
    below, above = np.split(predict(np.concatenate([rows, rows]), ends), 2)
    count = len(ladder.values) - 1
    sizes = np.bincount(steps, minlength=count)
    differences = above - below
    means = np.bincount(steps, differences, count) / sizes
    absolute = np.bincount(steps, np.abs(differences), count) / sizes
    influence = np.zeros((len(ladder.rows), count))
    influence[numbers, steps] = (differences - means[steps]) / sizes[steps]
    weights = np.tri(count + 1, count, -1) - ladder.coverage().mean(axis=0)

    def combine(table: Floats) -> tuple[Floats, Floats, Floats]:
        sums, most = table @ means, np.abs(table) @ absolute
        consistencies = np.divide(sums, most, out=np.zeros_like(sums), where=most > 0)
        return sums, np.sqrt(np.square(influence @ table.T).sum(axis=0)), consistencies

    change, change_error, change_consistency = combine(np.ones((1, count)))
    numbers_of_change = float(change[0]), float(change_error[0]), float(change_consistency[0])
    return LocalEffects(*combine(weights), *numbers_of_change, means, absolute, influence.T @ influence)
