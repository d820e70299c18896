"""The reference for empirical likelihood: literally all rows, Newton's method from 0, and a root finder for the ends."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.stats import chi2

SUPPORT = 0.001


def maximum(points, counts):
    """The maximum over the multipliers of sum counts log(1 + points multipliers), by damped Newton steps from 0."""
    multipliers = np.zeros(points.shape[1])

    def value(at):
        margins = 1 + points @ at
        return -np.inf if margins.min() <= 0 else float(counts @ np.log(margins))

    for _ in range(500):
        rates = counts / (1 + points @ multipliers)
        gradient = points.T @ rates
        hessian = points.T @ (points * (rates**2 / counts)[:, np.newaxis])
        step = np.linalg.lstsq(hessian, gradient, rcond=1e-14)[0]
        while value(multipliers + step) < value(multipliers) and np.abs(step).max() > 1e-300:
            step = step / 2
        multipliers = multipliers + step
        if gradient @ step < 1e-12:
            break
    return value(multipliers)


def interval(factors, firsts, seconds, support, ends, level=0.95, factor=1.0):
    """The v in `ends` with T(v) <= 1.2 chi2(level) / 2, for moments (firsts, seconds - factors v) of mean 0.

    `support` has rows (first, second), all with one factor.
    """
    first = np.concatenate([firsts, [point[0] for point in support]])
    second = np.concatenate([seconds, [point[1] for point in support]])
    scale = np.concatenate([factors, np.full(len(support), factor)])
    counts = np.concatenate([np.ones(len(firsts)), np.full(len(support), SUPPORT)])
    profile = maximum(first[:, np.newaxis], counts)
    reach = 1.2 * chi2.ppf(level, 1) / 2

    def excess(v):
        return maximum(np.column_stack([first, second - scale * v]), counts) - profile - reach

    grid = np.linspace(*ends, 401)[1:-1]
    excesses = np.array([excess(v) for v in grid])
    best = int(np.argmin(excesses))
    assert excesses[best] < 0, "the interval is narrower than the grid"
    low = grid[0] if excesses[0] < 0 else brentq(excess, grid[0], grid[best], xtol=1e-7)
    high = grid[-1] if excesses[-1] < 0 else brentq(excess, grid[best], grid[-1], xtol=1e-7)
    return low, high


def loss_interval(weights, losses, bound, level=0.95):
    """The interval for the loss of a policy."""
    support = [(-1, 0), (bound - 1, 0), (bound - 1, bound)]
    return interval(np.ones(len(weights)), weights - 1, weights * losses, support, (0, 1), level)


def gain_interval(weights, losses, bound, others=None, other_bound=1.0, level=0.95):
    """The interval for the loss of a policy minus that of another one, or of the logged policy."""
    differences = weights - (1.0 if others is None else others)
    above, below = (bound - 1, 1.0) if others is None else (bound, other_bound)
    support = [(-below, 0), (-below, -below), (above, 0), (above, above)]
    ones = np.ones(len(weights))
    return interval(ones, differences, differences * losses, support, (-1, 1), level)


def clustered_gain_interval(clusters, weights, losses, bound, level=0.95):
    """The same with the sums of clusters: a cluster of m rows has moments (sum d, sum d loss - m v)."""
    members = [clusters == cluster for cluster in np.unique(clusters)]
    sizes = np.array([which.sum() for which in members])
    firsts = np.array([(weights[which] - 1).sum() for which in members])
    seconds = np.array([((weights[which] - 1) * losses[which]).sum() for which in members])
    most = sizes.max()
    support = [(-most, 0), (-most, -most), (most * (bound - 1), 0), (most * (bound - 1), most * (bound - 1))]
    return interval(sizes, firsts, seconds, support, (-1, 1), level, factor=most)
