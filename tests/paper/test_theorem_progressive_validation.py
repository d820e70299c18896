"""Equation pv-conv: progressive validation of policies that change from round to round."""

import math

import numpy as np
import pytest

from manul.policies import theory

BANDWIDTH, EPSILON, ROUNDS, LOGS = 0.25, 0.5, 12000, 200


def simulated_errors_and_losses() -> tuple[np.ndarray, np.ndarray]:
    """Play epsilon-greedy around 1, and validate a policy that stands at 0 unless the round before lost.

    The lower half of the range loses 1 and the upper half 0, as do the policies at 0 and 1.
    """
    rng = np.random.default_rng(0)
    at_zero, weights, losses = np.ones(LOGS, dtype=bool), np.zeros(LOGS), np.zeros(LOGS)
    for explore, uniform in rng.random((ROUNDS, 2, LOGS)):
        actions = np.where(explore < EPSILON, uniform, 1 - BANDWIDTH * uniform)
        densities = EPSILON + (1 - EPSILON) / BANDWIDTH * (actions >= 1 - BANDWIDTH)
        lost = actions < 0.5
        inside = np.where(at_zero, actions <= BANDWIDTH, actions >= 1 - BANDWIDTH)
        weights += inside / BANDWIDTH / densities * lost
        losses += at_zero
        at_zero = ~lost
    return np.abs(weights - losses) / ROUNDS, losses / ROUNDS


def test_the_bound_is_the_equation_written_out() -> None:
    bound = theory.progressive_validation_bound(
        true_loss=0.3, rounds=1000, bandwidth=0.25, minimum_density=0.05, failure=0.1
    )
    ratio = math.log(2 * 1000 / 0.1) / (1000 * 0.05 * 0.25)
    assert bound == pytest.approx(math.sqrt(0.3 * 16 * ratio) + 2 * ratio)


def test_the_bound_holds_for_policies_that_depend_on_the_past() -> None:
    errors, losses = simulated_errors_and_losses()
    bounds = [
        theory.progressive_validation_bound(
            true_loss=loss, rounds=ROUNDS, bandwidth=BANDWIDTH, minimum_density=EPSILON, failure=0.1
        )
        for loss in losses
    ]
    assert np.mean(errors <= bounds) >= 0.9


def test_a_smaller_loss_is_known_more_exactly() -> None:
    bounds = [
        theory.progressive_validation_bound(true_loss=loss, rounds=99, bandwidth=1, minimum_density=1, failure=0.1)
        for loss in (0, 0.1, 1)
    ]
    assert bounds == sorted(set(bounds))
