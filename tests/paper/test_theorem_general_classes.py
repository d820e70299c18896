"""Theorem greedy: smoothed epsilon-greedy with general policy classes (Algorithm 6)."""

import math
from typing import Any

import pytest

from manul.policies import theory

PROBLEM: dict[str, Any] = {"horizon": 1000, "bandwidth": 0.25, "log_class_size": math.log(32), "failure": 0.1}


def test_the_bound_is_the_proof_written_out() -> None:
    written_out = 0.05 * 1000 + 1 + 48 * math.sqrt(1000 * math.log(2 * 1000 * 32 / 0.1) / (0.05 * 0.25))
    assert theory.general_regret_bound(**PROBLEM, epsilon=0.05) == pytest.approx(written_out)


def test_the_bound_adds_up_uniform_convergence_over_all_rounds() -> None:
    """Each round is twice its uniform convergence error behind, or one where that is more."""
    horizon = 10**5
    learning = theory.general_regret_bound(**(PROBLEM | {"horizon": horizon}), epsilon=1) - horizon - 1
    errors = (
        theory.uniform_convergence_bound(
            rounds=played, bandwidth=0.25, minimum_density=1, log_class_size=math.log(32), failure=0.1 / horizon
        )
        for played in range(1, horizon)
    )
    behind = sum(min(1, 2 * error) for error in errors)
    assert learning / 6 < behind <= learning


def test_the_rate_is_the_theorem_written_out() -> None:
    logarithm = math.log(32) + math.log(1 / 0.1)
    written_out = (1000**2 / 0.25 * logarithm) ** (1 / 3) + math.sqrt(1000 / 0.25 * logarithm)
    assert theory.general_regret_rate(**PROBLEM) == pytest.approx(written_out)


def test_epsilon_is_the_theorem_written_out() -> None:
    logarithm = math.log(32) + math.log(1 / 0.1)
    assert theory.general_epsilon_for_horizon(**PROBLEM) == pytest.approx((logarithm / (0.25 * 1000)) ** (1 / 3))


def test_epsilon_is_one_when_the_horizon_is_too_short_to_learn() -> None:
    assert theory.general_epsilon_for_horizon(**(PROBLEM | {"horizon": 10})) == 1


def test_epsilon_balances_exploring_with_learning() -> None:
    epsilon = theory.general_epsilon_for_horizon(**PROBLEM)
    learning = math.sqrt(1000 / (epsilon * 0.25) * math.log(32 / 0.1))
    assert epsilon * 1000 == pytest.approx(learning)
