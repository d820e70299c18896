"""Section 2: smoothed losses are Lipschitz, so a grid of leaves loses little."""

import numpy as np
import pytest

from manul.policies import theory

ACTIONS = np.linspace(0, 1, 2049)


def smoothed(loss: np.ndarray, actions: np.ndarray, bandwidth: float) -> np.ndarray:
    """Smooth losses that are constant on equal cells of [0, 1], exactly."""
    edges = np.linspace(0, 1, len(loss) + 1)
    areas = np.concatenate([[0], np.cumsum(loss)]) / len(loss)
    low, high = np.maximum(actions - bandwidth, 0), np.minimum(actions + bandwidth, 1)
    return np.asarray((np.interp(high, edges, areas) - np.interp(low, edges, areas)) / (high - low))


@pytest.mark.parametrize("bandwidth", [1 / 32, 1 / 8, 0.3, 0.7, 1])
def test_no_smoothed_loss_is_steeper_than_the_constant(bandwidth: float) -> None:
    rng = np.random.default_rng(0)
    for loss in rng.integers(0, 2, size=(200, 16)):
        slopes = np.abs(np.diff(smoothed(loss, ACTIONS, bandwidth))) / np.diff(ACTIONS)
        assert slopes.max() <= theory.lipschitz_constant(bandwidth=bandwidth) + 1e-9


def test_a_step_at_the_edge_of_the_range_reaches_the_constant() -> None:
    step = np.repeat([0.0, 1.0], [4, 12])
    near, edge = smoothed(step, np.array([1e-6, 0.0]), 1 / 4)
    assert (near - edge) / 1e-6 == pytest.approx(theory.lipschitz_constant(bandwidth=1 / 4), rel=1e-3)


@pytest.mark.parametrize(("leaves", "bandwidth"), [(4, 1 / 2), (16, 1 / 8), (64, 1 / 16)])
def test_the_best_leaf_is_within_the_discretization_error_of_the_best_action(leaves: int, bandwidth: float) -> None:
    rng = np.random.default_rng(1)
    allowed = theory.discretization_error(leaves=leaves, bandwidth=bandwidth)
    for loss in rng.integers(0, 2, size=(200, 16)):
        best_leaf = smoothed(loss, np.arange(leaves) / leaves, bandwidth).min()
        assert best_leaf <= smoothed(loss, ACTIONS, bandwidth).min() + allowed


def test_the_discretization_error_is_one_over_bandwidth_times_leaves() -> None:
    assert theory.discretization_error(leaves=8, bandwidth=0.2) == pytest.approx(1 / (0.2 * 8))
