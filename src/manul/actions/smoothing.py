"""Smooth_h of the paper's section 2: an action becomes a uniform distribution around it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manul.actions.distribution import Distribution


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


def explored_densities(
    centres: npt.NDArray[np.float64],
    bandwidth: float,
    epsilon: float,
    within: npt.NDArray[np.float64],
    actions: npt.NDArray[np.float64],
) -> npt.NDArray[np.float64]:
    """The density at each row's action of `explore` around the row's centre; `within` is one (low, high) per row.

    >>> explored_densities(np.array([0.5, 0.5]), 0.25, 0.1, np.array([[0.0, 1.0]] * 2), np.array([0.5, 0.9]))
    array([1.9, 0.1])
    """
    low, high = within[:, 0], within[:, 1]
    first, last = np.maximum(centres - bandwidth, low), np.minimum(centres + bandwidth, high)
    played = np.where((first <= actions) & (actions <= last), (1 - epsilon) / (last - first), 0.0)
    return np.where((low <= actions) & (actions <= high), played + epsilon / (high - low), 0.0)


def explored_moments(
    centres: npt.NDArray[np.float64], bandwidth: float, epsilon: float, within: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """The expected action of `explore` around each row's centre, and its expected square.

    >>> explored_moments(np.array([0.5]), 0.5, 0.1, np.array([[0.0, 1.0]]))[0]
    array([0.5])
    """
    low, high = within[:, 0], within[:, 1]
    first, last = np.maximum(centres - bandwidth, low), np.minimum(centres + bandwidth, high)
    means = (1 - epsilon) * (first + last) / 2 + epsilon * (low + high) / 2
    squares = (1 - epsilon) * (first**2 + first * last + last**2) + epsilon * (low**2 + low * high + high**2)
    return means, squares / 3
