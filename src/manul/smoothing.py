"""Smooth_h of the paper's section 2: an action becomes a uniform distribution around it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manul.distribution import Distribution


def smooth(action: float, bandwidth: float, within: tuple[float, float]) -> Distribution:
    """Uniform on the actions at most a bandwidth away, inside the range.

    >>> smooth(0.5, 0.25, (0.0, 1.0)).edges
    array([0.25, 0.75])
    """
    low, high = within
    return Distribution.uniform(max(action - bandwidth, low), min(action + bandwidth, high))


def densities_of_many(
    centres: npt.NDArray[np.float64],
    bandwidth: float | npt.NDArray[np.float64],
    within: tuple[float, float],
    action: float,
) -> npt.NDArray[np.float64]:
    """The density at one action of `smooth` around each of many centres, which may have a bandwidth each.

    >>> densities_of_many(np.array([0.0, 0.5, 1.0]), 0.25, (0.0, 1.0), 0.5)
    array([0., 2., 0.])
    """
    low, high = within
    lows, highs = np.maximum(centres - bandwidth, low), np.minimum(centres + bandwidth, high)
    return np.where((lows <= action) & (action <= highs), 1.0 / (highs - lows), 0.0)


def explore(played: Distribution, epsilon: float, within: tuple[float, float]) -> Distribution:
    """Epsilon-greedy: with probability epsilon any action of the range, else one of `played`.

    >>> explore(smooth(0.5, 0.25, (0.0, 1.0)), 0.1, (0.0, 1.0)).densities
    array([0.1, 1.9, 0.1])
    """
    return played.mix(Distribution.uniform(*within), epsilon)
