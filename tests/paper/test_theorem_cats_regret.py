"""Theorem greedy-tree-formal: the regret of Cats."""

import math
from typing import Any

import pytest

from manul.policies import theory

PROBLEM: dict[str, Any] = {"horizon": 1000, "bandwidth": 0.25, "log_class_size": math.log(32), "failure": 0.1}


def test_the_bound_against_trees_of_its_own_depth_is_the_proof_written_out() -> None:
    written_out = 1 + 0.05 * 1000 + 40 * math.sqrt(1000 * 8**2 * 3 / (0.05 * 0.25) * math.log(2 * 1000 * 8 * 32 / 0.1))
    assert theory.regret_bound(**PROBLEM, leaves=8, epsilon=0.05, any_depth=False) == pytest.approx(written_out)


def test_trees_of_any_depth_add_the_discretization_error_of_every_round() -> None:
    own, any_depth = (theory.regret_bound(**PROBLEM, leaves=8, epsilon=0.05, any_depth=deep) for deep in (False, True))
    assert any_depth - own == pytest.approx(1000 / (8 * 0.25))
    assert theory.regret_bound(**PROBLEM, leaves=8, epsilon=0.05) == any_depth


def test_the_regret_adds_up_the_training_bounds_of_all_rounds() -> None:
    shared: dict[str, Any] = {"leaves": 8, "bandwidth": 0.25, "log_class_size": 3}
    learning = theory.regret_bound(**shared, horizon=1000, epsilon=0.05, failure=0.1, any_depth=False) - 51
    rounds = (
        theory.tree_training_bound(**shared, rounds=played, minimum_density=0.05, failure=0.1 * played / 1000)
        for played in range(1, 1000)
    )
    assert 0.95 < sum(rounds) / learning <= 1


def test_the_rate_is_the_theorem_written_out() -> None:
    assert theory.regret_rate(**PROBLEM) == pytest.approx((1000**4 * math.log(32 / 0.1) / 0.25**3) ** 0.2)


def test_the_rate_for_given_leaves_is_the_remark_written_out() -> None:
    written_out = (8**2 * 1000**2 * math.log(32 / 0.1) / 0.25) ** (1 / 3)
    assert theory.regret_rate(**PROBLEM, leaves=8) == pytest.approx(written_out)


def test_epsilon_is_the_theorem_written_out() -> None:
    long = PROBLEM | {"horizon": 10**6}
    assert theory.epsilon_for_horizon(**long) == pytest.approx((math.log(32 / 0.1) / (10**6 * 0.25**3)) ** 0.2)


def test_leaves_are_the_theorem_rounded_to_a_power_of_two() -> None:
    for horizon in (int(1.1**power) for power in range(80, 320)):
        exact = (horizon / (0.001**2 * math.log(3 / 0.5))) ** 0.2
        leaves = theory.leaves_for_horizon(horizon=horizon, bandwidth=0.001, log_class_size=math.log(3), failure=0.5)
        assert leaves == 2 ** round(math.log2(exact))


def test_epsilon_for_given_leaves_balances_exploring_with_learning() -> None:
    long = PROBLEM | {"horizon": 10**9}
    epsilon = theory.epsilon_for_horizon(**long, leaves=8)
    learning = 8 * math.sqrt(10**9 * math.log(32 / 0.1) / (epsilon * 0.25))
    assert epsilon * 10**9 == pytest.approx(learning)


def test_a_short_horizon_explores_always_and_has_two_leaves() -> None:
    short = PROBLEM | {"horizon": 1, "bandwidth": 1.0}
    assert theory.epsilon_for_horizon(**short) == 1
    assert theory.leaves_for_horizon(**short) == 2
