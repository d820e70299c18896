"""Smooth_h of the paper's section 2: an action becomes a uniform distribution around it."""

from __future__ import annotations

from manul.distribution import Distribution


def smooth(action: float, bandwidth: float, within: tuple[float, float]) -> Distribution:
    """Uniform on the actions at most a bandwidth away, inside the range.

    >>> smooth(0.5, 0.25, (0.0, 1.0)).edges
    array([0.25, 0.75])
    """
    low, high = within
    return Distribution.uniform(max(action - bandwidth, low), min(action + bandwidth, high))


def explore(played: Distribution, epsilon: float, within: tuple[float, float]) -> Distribution:
    """Epsilon-greedy: with probability epsilon any action of the range, else one of `played`.

    >>> explore(smooth(0.5, 0.25, (0.0, 1.0)), 0.1, (0.0, 1.0)).densities
    array([0.1, 1.9, 0.1])
    """
    return played.mix(Distribution.uniform(*within), epsilon)
