"""What policies would lose that know the whole table: the best constant, and the best linear policy.

A policy with centre c plays uniformly on [c - h, c + h], and with epsilon anywhere in [0, 1]. Its expected absolute
loss against a target y is (h² + (c - y)²) / 2h inside the window and |c - y| outside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EPSILON = 0.05
BANDWIDTHS = tuple(2.0**-power for power in range(2, 8))
SHARPEST, STEPS, ENOUGH = 1e-4, 500, 1e-9


@dataclass(frozen=True)
class Optimum:
    """The least loss over the bandwidths, and where it is."""

    loss: float
    bandwidth: float


def played(targets: Array, centres: Array | float, bandwidth: float, epsilon: float = EPSILON) -> float:
    """The expected mean loss of playing around these centres, moved to where the window fits.

    >>> played(np.array([0.5]), 0.5, bandwidth=0.25, epsilon=0.0)
    0.125
    """
    distance = np.abs(np.clip(centres, bandwidth, 1 - bandwidth) - targets)
    window = np.where(distance < bandwidth, (bandwidth**2 + distance**2) / (2 * bandwidth), distance)
    anywhere = (targets**2 + (1 - targets) ** 2) / 2
    return float((1 - epsilon) * window.mean() + epsilon * anywhere.mean())


def best_bandwidth(targets: Array, centres: Array | float) -> Optimum:
    """The bandwidth from 1/4 to 1/128 that loses least.

    >>> best_bandwidth(np.array([0.5]), 0.5).bandwidth
    0.0078125
    """
    return min((Optimum(played(targets, centres, h), h) for h in BANDWIDTHS), key=lambda each: each.loss)


def best_constant(targets: Array) -> Optimum:
    """The median, played: no other centre loses less, up to the window's width."""
    return best_bandwidth(targets, float(np.median(targets)))


def linear_centres(contexts: NDArray[np.float32], targets: Array) -> tuple[Array, float]:
    """The predictions of the linear policy with the least absolute deviations, and a bound on what they lack.

    Reweighted least squares on sqrt(residual² + width²), the width narrowing to 1e-4. Weighted residuals are orthogonal
    to the features, so once they lie in [-1, 1] they are a point of the dual problem, whose value no policy gets below.
    """
    features = _design(contexts)
    weights, width, before = np.ones(len(targets)), 0.1, np.inf
    least, dual, predicted = np.inf, 0.0, np.zeros_like(targets)
    for _ in range(STEPS):
        guess = _weighted(features, targets, weights)
        residuals = targets - guess
        forces = weights * residuals
        dual = max(dual, float((targets * forces).mean() / max(1.0, np.abs(forces).max())))
        loss = float(np.abs(residuals).mean())
        if loss < least:
            least, predicted = loss, guess
        rounded = float(np.sqrt(residuals**2 + width**2).mean())
        if width == SHARPEST and before - rounded < ENOUGH:
            break
        narrower = max(SHARPEST, width * 0.6)
        before = rounded if narrower == width else np.inf
        width = narrower
        weights = 1 / np.sqrt(residuals**2 + width**2)
    return predicted, least - dual


def _design(contexts: NDArray[np.float32]) -> Array:
    """Standardised columns and a column of ones."""
    columns = contexts.astype(np.float64)
    spread = columns.std(axis=0)
    varying = spread > 0
    standard = (columns[:, varying] - columns[:, varying].mean(axis=0)) / spread[varying]
    return np.column_stack([np.ones(len(columns)), standard])


def _weighted(features: Array, targets: Array, weights: Array) -> Array:
    scaled = features * weights[:, np.newaxis]
    # One-hot columns add up to the column of ones: of all solutions, the smallest.
    solution = np.linalg.lstsq(scaled.T @ features, scaled.T @ targets, rcond=1e-10)[0]
    predicted: Array = features @ solution
    return predicted
