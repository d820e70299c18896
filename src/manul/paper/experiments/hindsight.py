"""The loss of policies that know the whole table: the best constant, and the best linear policy.

A policy with centre c chooses uniformly from [c - h, c + h], and with probability epsilon from [0, 1]. The expected
absolute loss of the window for a target y is (h² + (c - y)²) / 2h if y lies inside it and |c - y| if not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manul.paper.experiments.methods import CONSTANT, EPSILON, OPTIMUM

Array = NDArray[np.float64]

BANDWIDTHS = tuple(2.0**-power for power in range(2, 8))
SMALLEST_WIDTH, STEPS, TOLERANCE = 1e-4, 500, 1e-9  # of the search for the best linear policy


@dataclass(frozen=True)
class Optimum:
    """The lowest loss over the bandwidths, and its bandwidth."""

    loss: float
    bandwidth: float


def expected_loss(targets: Array, centres: Array | float, bandwidth: float, epsilon: float = EPSILON) -> float:
    """The expected mean loss of a policy with these centres, clipped so that the windows fit into [0, 1]."""
    distance = np.abs(np.clip(centres, bandwidth, 1 - bandwidth) - targets)
    window = np.where(distance < bandwidth, (bandwidth**2 + distance**2) / (2 * bandwidth), distance)
    anywhere = (targets**2 + (1 - targets) ** 2) / 2
    return float((1 - epsilon) * window.mean() + epsilon * anywhere.mean())


def best_bandwidth(targets: Array, centres: Array | float) -> Optimum:
    """The bandwidth from 1/4 to 1/128 with the lowest loss."""
    return min((Optimum(expected_loss(targets, centres, h), h) for h in BANDWIDTHS), key=lambda optimum: optimum.loss)


def best_constant(targets: Array) -> Optimum:
    """The loss of the median, which is the best centre except for effects of the window."""
    return best_bandwidth(targets, float(np.median(targets)))


def best_policies(contexts: NDArray[np.float32], targets: Array) -> dict[str, Optimum]:
    """The best constant and the best linear policy, by the names of the experiments."""
    centres, _ = linear_centres(contexts, targets)
    return {CONSTANT: best_constant(targets), OPTIMUM: best_bandwidth(targets, centres)}


def linear_centres(contexts: NDArray[np.float32], targets: Array) -> tuple[Array, float]:
    """The predictions of the linear policy with the least absolute deviations, and a bound on their excess loss.

    Reweighted least squares on sqrt(residual² + width²), with a shrinking width. Weighted residuals are orthogonal to the
    features, so scaled to [-1, 1] they are feasible for the dual problem, whose value bounds the loss from below.
    """
    features = _design_matrix(contexts)
    weights, width, before = np.ones(len(targets)), 0.1, np.inf
    lowest, dual, best = np.inf, 0.0, np.zeros_like(targets)
    for _ in range(STEPS):
        guess = _weighted_fit(features, targets, weights)
        residuals = targets - guess
        forces = weights * residuals
        dual = max(dual, float((targets * forces).mean() / max(1.0, np.abs(forces).max())))
        loss = float(np.abs(residuals).mean())
        if loss < lowest:
            lowest, best = loss, guess
        smoothed = float(np.sqrt(residuals**2 + width**2).mean())
        if width == SMALLEST_WIDTH and before - smoothed < TOLERANCE:
            break
        narrower = max(SMALLEST_WIDTH, width * 0.6)
        before = smoothed if narrower == width else np.inf
        width = narrower
        weights = 1 / np.sqrt(residuals**2 + width**2)
    return best, lowest - dual


def _design_matrix(contexts: NDArray[np.float32]) -> Array:
    columns = contexts.astype(np.float64)
    spread = columns.std(axis=0)
    varying = spread > 0
    standard = (columns[:, varying] - columns[:, varying].mean(axis=0)) / spread[varying]
    return np.column_stack([np.ones(len(columns)), standard])


def _weighted_fit(features: Array, targets: Array, weights: Array) -> Array:
    scaled = features * weights[:, np.newaxis]
    # One-hot columns add up to the column of ones; lstsq returns the solution with the smallest norm.
    solution = np.linalg.lstsq(scaled.T @ features, scaled.T @ targets, rcond=1e-10)[0]
    return features @ solution
