"""The reference for exact-mass intervals: literally row by row, cell by cell, with all rows in the empirical likelihood."""

from __future__ import annotations

import itertools
import math

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import chi2

from tests.twins.empirical_likelihood import SUPPORT, maximum

LEAST_BOUND = 1.01


def cells(target, logged, *, discrete=False):
    """The cells (weight, mass, number of the target's piece) in which pieces (low, high, density) of both are constant."""
    extra = 1.0 if discrete else 0.0
    both = []
    for number, (low, high, density) in enumerate(target):
        for other_low, other_high, other in logged:
            length = min(high, other_high) - max(low, other_low) + extra
            if length > 0 and density > 0 and other > 0:
                both.append((density / other, density * length, number))
    return both


def product(knobs):
    """The cells (weight, mass) of several independent knobs, from the cells of each."""
    combined = []
    for combination in itertools.product(*knobs):
        combined.append((math.prod(each[0] for each in combination), math.prod(each[1] for each in combination)))
    return combined


def covered(row, bound):
    """The mass of the target in cells whose weight is at most the bound."""
    return sum(cell[1] for cell in row if cell[0] <= bound)


def choose_bound(rows, bounds, count):
    """The bound with the smallest mean uncovered mass plus 2.305 bound / count, of those given."""
    costs = [np.mean([1 - covered(row, bound) for row in rows]) + 2.305 * bound / count for bound in bounds]
    return bounds[int(np.argmin(costs))]


def moments(rows, weights, losses, bound, *, logged, predictions=None, curves=None):
    """For each row: g, s with the best loss for the mass beyond the bound, and that mass.

    `logged` subtracts the logged loss. `predictions` are those of the logged actions, and `curves` those of the pieces.
    """
    table = []
    for number, (row, weight, loss) in enumerate(zip(rows, weights, losses, strict=True)):
        kept, inside = (weight if weight <= bound else 0.0), covered(row, bound)
        known, expected = 0.0, 0.0
        if curves is not None:
            known = predictions[number]
            expected = sum(mass * curves[number][piece] for weight, mass, piece in row if weight <= bound)
        base = kept * (loss - known) + expected - (loss if logged else 0.0)
        table.append((kept - inside, base, 1 - inside))
    return np.array(table)


def interval(table, largest, losses, *, logged, level):
    """The interval of the loss, or with `logged` of the gain: the lower end charges the best loss, the upper one the worst.

    Without losses, or with losses only, in m matching decisions the ends are -log(error) / m away from 0 and 1.
    """
    firsts, bases, missing = table.T
    inside, most = 1 - missing.mean(), max(largest, LEAST_BOUND)
    ends = []
    for side, charged in ((-1, 0.0), (1, 1.0)):
        extra, less = charged * (1 - inside), 1.0 if logged else 0.0
        rows = [(-inside, extra), (most - inside, extra), (most - inside, most + extra - less)]
        rows += [(-inside, extra - 1)] if logged else []
        ends.append(_end(firsts, bases + charged * missing, rows, (-1.0 if logged else 0.0, 1.0), level, side))
    kept = firsts + 1 - missing
    reach = -math.log((1 - level) / 2) * (kept**2).sum() / kept.sum() / len(kept)
    known = losses.mean() if logged else 0.0
    return min(ends[0], max(inside - reach, 0) - known), max(ends[1], min(1 - inside + reach, 1) - known)


def _end(firsts, seconds, support, ends, level, side):
    first = np.concatenate([firsts, [point[0] for point in support]])
    second = np.concatenate([seconds, [point[1] for point in support]])
    counts = np.concatenate([np.ones(len(firsts)), np.full(len(support), SUPPORT)])
    limit = maximum(first[:, np.newaxis], counts) + 1.2 * chi2.ppf(level, 1) / 2

    def excess(v):
        return maximum(np.column_stack([first, second - v]), counts) - limit

    outer = ends[0] + 1e-6 if side < 0 else ends[1] - 1e-6
    best = minimize_scalar(excess, bounds=ends, method="bounded")
    assert best.fun < 0, "the interval is empty"
    if excess(outer) < 0:
        return ends[0] if side < 0 else ends[1]
    return brentq(excess, *sorted((outer, best.x)), xtol=1e-7)
