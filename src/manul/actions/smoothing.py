"""Smooth_h of the paper's section 2: an action is replaced by a uniform distribution around it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manul.actions.distribution import Distribution


def smooth(action: float, bandwidth: float, within: tuple[float, float]) -> Distribution:
    """The uniform distribution over actions within a bandwidth of an action, clipped to the range.

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
    """The density at one action of `smooth` around each centre; bandwidths may differ by centre.

    >>> densities_of_many(np.array([0.0, 0.5, 1.0]), 0.25, (0.0, 1.0), 0.5)
    array([0., 2., 0.])
    """
    low, high = within
    lows, highs = np.maximum(centres - bandwidth, low), np.minimum(centres + bandwidth, high)
    return np.where((lows <= action) & (action <= highs), 1.0 / (highs - lows), 0.0)


def explore(greedy: Distribution, epsilon: float, within: tuple[float, float]) -> Distribution:
    """Epsilon-greedy: uniform over the range with probability epsilon, otherwise drawn from `greedy`.

    >>> explore(smooth(0.5, 0.25, (0.0, 1.0)), 0.1, (0.0, 1.0)).densities
    array([0.1, 1.9, 0.1])
    """
    return greedy.mix(Distribution.uniform(*within), epsilon)
