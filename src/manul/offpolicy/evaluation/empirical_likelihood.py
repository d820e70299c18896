"""Empirical likelihood: the values of a mean that no reweighting of the rows makes too unlikely, given a bound of the weights.

A row has moments (g, s - f v) of mean 0 if v is the true value. With multipliers a and b,

    l(a, b; v) = sum over rows of log(1 + a g + b (s - f v)) + 0.001 times the same sum over the extreme rows,

and T(v) = max l(a, b; v) - max l(a, 0). The interval has the v with T(v) at most a quantile of chi-squared. The extreme rows have
the largest weights and losses that could occur: if none of the rows has a large weight, the interval still allows for them.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.utils.validation import Floats

if TYPE_CHECKING:
    from manul.offpolicy.evaluation.intervals import Terms

UNKNOWN_BOUND = 1e6  # of the weights, if the log does not say how small its densities can be
SMALLEST_BOUND = 1.01  # a bound of 1 leaves no room for a weight above 1, and the maximum would not exist
_SUPPORT = 0.001  # the number of rows that each extreme row counts as
_CAUTION = 1.2  # widens the interval, because weights are skewed; without it, coverage falls to 0.92 on small logs
_STEPS = 22  # of the bisection
_NEWTON = 60  # steps
_PER_OCTAVE = 8  # cells per doubling of a weight
_OCTAVES = 64  # weights beyond 2^-32 ... 2^32 share the outermost cells
_LOSSES = 32  # cells of a loss
_SMALLEST = 2.0**-32


class Moments(NamedTuple):
    """The moments (first, second - factor v) of cells, each with its number of rows, and the values that v can have."""

    counts: Floats
    factors: Floats
    firsts: Floats
    seconds: Floats
    ends: Within

    def with_extremes(self, *extremes: Within, factor: float = 1.0) -> Moments:
        """The same with extreme rows (first, second), all of one factor."""
        firsts, seconds = np.array(extremes).T
        return Moments(
            np.append(self.counts, np.full(len(extremes), _SUPPORT)),
            np.append(self.factors, np.full(len(extremes), factor)),
            np.append(self.firsts, firsts),
            np.append(self.seconds, seconds),
            self.ends,
        )


class Profile(NamedTuple):
    """The maximum of l over the first multiplier alone, and the value at which T is 0."""

    maximum: float
    value: float


def profile(moments: Moments) -> Profile:
    """The likelihood of the first moment alone: large if its mean is not 0."""
    maximum, multipliers = _maximize(moments.firsts[:, np.newaxis], moments.counts, np.inf)
    chances = moments.counts / (1 + moments.firsts * multipliers[0])
    value = float(chances @ moments.seconds) / float(chances @ moments.factors)
    return Profile(maximum, min(max(value, moments.ends[0]), moments.ends[1]))


def interval(moments: Moments, level: float) -> Within:
    """The values v with T(v) at most 1.2 times half the quantile of chi-squared with one degree of freedom."""
    low, high = (last_likely(moments, level, side) for side in (0, 1))
    return low, high


def last_likely(moments: Moments, level: float, side: int) -> float:
    """The lower end of the interval if the side is 0, and the upper end if it is 1, by bisection."""
    maximum, inside = profile(moments)
    limit, outside = maximum + _CAUTION * NormalDist().inv_cdf((1 + level) / 2) ** 2 / 2, moments.ends[side]
    for _ in range(_STEPS):
        middle = (inside + outside) / 2
        points = np.column_stack([moments.firsts, moments.seconds - moments.factors * middle])
        likely = _maximize(points, moments.counts, limit)[0] <= limit
        inside, outside = (middle, outside) if likely else (inside, middle)
    return outside


def _maximize(points: Floats, counts: Floats, enough: float) -> tuple[float, Floats]:
    """The maximum of sum counts log(1 + points multipliers) and its multipliers, by damped Newton steps from 0.

    Stops when the sum exceeds `enough`.
    """
    multipliers, margins, best = np.zeros(points.shape[1]), np.ones(len(points)), 0.0
    for _ in range(_NEWTON):
        rates = counts / margins
        gradient = points.T @ rates
        hessian = points.T @ (points * (rates / margins)[:, np.newaxis])
        diagonal = hessian.ravel()[:: len(hessian) + 1]
        diagonal += 1e-12 * diagonal
        step = np.linalg.solve(hessian, gradient)
        if gradient @ step < 1e-9 or best > enough:
            break
        for _ in range(60):
            tried = 1 + points @ (multipliers + step)
            if tried.min() > 0 and (value := float(counts @ np.log(tried))) > best:
                multipliers, margins, best = multipliers + step, tried, value
                break
            step = step / 2
        else:
            break
    return best, multipliers


class Sums(NamedTuple):
    """For each cell: the number of rows, and the means of the weight and of the weight times the loss."""

    counts: Floats
    weights: Floats
    losses: Floats


class Cells:
    """Counts and sums of rows by weight and loss; weights of 0 share a cell, and weights may be negative.

    The edges of the cells do not depend on the rows, and a cell keeps the exact mean of its rows.

    >>> cells = Cells()
    >>> cells.add(np.array([0.0, 0.0, 2.0, 2.1]), np.array([0.1, 0.9, 0.5, 0.51]))
    >>> cells.sums().counts, cells.sums().weights
    (array([2., 2.]), array([0.  , 2.05]))
    """

    def __init__(self) -> None:
        self.keys: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self.totals = np.empty((0, 3))

    def add(self, weights: Floats, losses: Floats) -> None:
        shares = np.clip((losses * _LOSSES).astype(np.int64), 0, _LOSSES - 1)
        keys = (_level(weights) << 8) + np.where(np.abs(weights) < _SMALLEST, 0, shares)
        rows = np.column_stack([np.ones(len(weights)), weights, weights * losses])
        self.keys, cells = np.unique(np.concatenate([self.keys, keys]), return_inverse=True)
        parts = np.concatenate([self.totals, rows])
        self.totals = np.column_stack([np.bincount(cells, column, len(self.keys)) for column in parts.T])

    def sums(self) -> Sums:
        counts = self.totals[:, 0]
        return Sums(counts, *(self.totals[:, 1:] / counts[:, np.newaxis]).T)


def _level(weights: Floats) -> npt.NDArray[np.int64]:
    """The number of the cell of each weight: 0 for weight 0, and even for negative ones."""
    sizes = np.abs(weights)
    octaves = np.log2(np.maximum(sizes, _SMALLEST)) + _OCTAVES / 2
    level = np.minimum((octaves * _PER_OCTAVE).astype(np.int64), _OCTAVES * _PER_OCTAVE) + 1
    return np.where(sizes < _SMALLEST, 0, 2 * level + (weights > 0))


class EmpiricalLikelihood:
    """The interval for the loss of a policy: weights average 1, and weighted losses average the loss.

    All rows count the same, also if exploration fades and the largest weights occur in late rows: an interval from rows that
    are weighted by their epsilon would be narrower, but it would hold only if losses do not change over time.
    """

    def __init__(self) -> None:
        self.cells = Cells()

    def add(self, terms: Terms) -> None:
        self.cells.add(terms.weights, terms.losses)

    def ends(self, level: float, largest_weight: float) -> Within:
        return interval(_loss_moments(self.cells.sums(), largest_weight), level)

    def evidence_against_weights(self, largest_weight: float) -> float:
        """How unlikely it is that the weights average 1: the logarithm of a likelihood ratio."""
        return profile(_loss_moments(self.cells.sums(), largest_weight)).maximum


def _loss_moments(cells: Sums, largest_weight: float) -> Moments:
    bound = max(largest_weight, SMALLEST_BOUND)
    moments = Moments(cells.counts, np.ones(len(cells.counts)), cells.weights - 1.0, cells.losses, (0.0, 1.0))
    return moments.with_extremes((-1.0, 0.0), (bound - 1, 0.0), (bound - 1, bound))
