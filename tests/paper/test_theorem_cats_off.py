"""Theorem off-policy-opt-formal: off-policy optimisation over a grid of cells (Algorithm 3)."""

import math
from typing import Any

import pytest

from manul.policies import theory

LOG: dict[str, Any] = {"horizon": 1000, "bandwidth": 0.25, "minimum_density": 0.05}


def test_the_constant_is_the_algorithm_written_out() -> None:
    constant = theory.off_policy_constant(horizon=1000, cells=100, failure=0.1)
    assert constant == pytest.approx(64 * math.log(4 * 1000 * 100 / 0.1))


@pytest.mark.parametrize("constant", [1, 64 * math.log(4 * 1000 * 100 / 0.1)])
def test_the_penalty_is_the_algorithm_written_out(constant: float) -> None:
    written_out = math.sqrt(0.3 * constant / (1000 * 0.05 * 0.25)) + constant / (1000 * 0.05 * 0.25)
    assert theory.off_policy_penalty(**LOG, mean_loss=0.3, constant=constant) == pytest.approx(written_out)


def test_a_narrower_bandwidth_pays_a_larger_penalty() -> None:
    penalties = [
        theory.off_policy_penalty(mean_loss=0.3, horizon=1000, bandwidth=bandwidth, minimum_density=0.05, constant=1)
        for bandwidth in (1 / 2, 1 / 4, 1 / 64)
    ]
    assert penalties == sorted(set(penalties))


@pytest.mark.parametrize("loss", [0, 0.01, 1])
def test_the_penalty_covers_progressive_validation_in_all_cells_with_half_the_failure(loss: float) -> None:
    constant = theory.off_policy_constant(horizon=1000, cells=100, failure=0.1)
    deviation = theory.progressive_validation_bound(
        true_loss=loss, rounds=1000, bandwidth=0.25, minimum_density=0.05, failure=0.1 / 2 / 100
    )
    assert deviation <= theory.off_policy_penalty(**LOG, mean_loss=loss, constant=constant) <= 32 * deviation


def test_no_constant_is_no_penalty() -> None:
    assert theory.off_policy_penalty(**LOG, mean_loss=0.3, constant=0) == 0


def test_the_excess_loss_is_the_proof_written_out() -> None:
    bound = theory.off_policy_bound(**LOG, leaves=8, cells=100, log_class_size=math.log(32), failure=0.1)
    logarithm = math.log(4 * 1000 * 8 * 32 * 100 / 0.1)
    assert bound == pytest.approx(160 * math.sqrt(8**2 * 3 / (0.05 * 0.25 * 1000) * logarithm))


@pytest.mark.parametrize("leaves", [2, 64])
def test_the_excess_loss_covers_training_and_selection(leaves: int) -> None:
    long = LOG | {"horizon": 10**6}
    bound = theory.off_policy_bound(**long, leaves=leaves, cells=100, log_class_size=3, failure=0.1)
    training = [
        theory.tree_training_bound(
            rounds=played, leaves=leaves, bandwidth=0.25, minimum_density=0.05, log_class_size=3, failure=0.05 / 10**8
        )
        for played in range(1, 10**6, 1000)
    ]
    constant = theory.off_policy_constant(horizon=10**6, cells=100, failure=0.1)
    selection = 9 * math.sqrt(constant / (10**6 * 0.05 * 0.25))
    assert sum(training[1:]) / 1000 + selection + 1e-6 <= bound
