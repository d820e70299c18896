"""Theorem adaptive-tree: Cats with adaptive bandwidth (Algorithm 5)."""

import math
from typing import Any

import pytest

from manul.policies import theory

PROBLEM: dict[str, Any] = {"horizon": 1000, "log_class_size": math.log(32), "failure": 0.1}
CELL: dict[str, Any] = PROBLEM | {"rounds": 500, "leaves": 8, "bandwidth": 0.25, "epsilon": 0.05}


def test_the_penalty_is_the_algorithm_written_out() -> None:
    ratio = (8 * math.log(32) + math.log(8 * 1000**4 / 0.1)) / (500 * 0.05 * 0.25)
    assert theory.adaptive_penalty(**CELL) == pytest.approx(4 * math.sqrt(ratio) + 2 * ratio)


def test_the_penalty_falls_from_round_to_round() -> None:
    penalties = [theory.adaptive_penalty(**(CELL | {"rounds": rounds})) for rounds in range(1, 1001)]
    assert penalties == sorted(set(penalties), reverse=True)


def test_the_penalty_falls_with_wider_bandwidths() -> None:
    penalties = [theory.adaptive_penalty(**(CELL | {"bandwidth": bandwidth})) for bandwidth in (0.1, 0.5, 1)]
    assert penalties == sorted(set(penalties), reverse=True)


def test_the_penalty_is_uniform_convergence_over_all_trees_bandwidths_and_rounds() -> None:
    """All shares of the failure, one per round and bandwidth of the grid, add up to no more than 0.1."""
    share = 0.1 * 500 / (4 * 1000**4)
    uniform = theory.uniform_convergence_bound(
        rounds=500, bandwidth=0.25, minimum_density=0.05, log_class_size=8 * math.log(32), failure=share
    )
    assert theory.adaptive_penalty(**CELL) == pytest.approx(uniform)
    assert 1000 * len(theory.BandwidthGrid(horizon=1000)) * share <= 0.1


def test_the_rate_is_the_theorem_written_out() -> None:
    rate = theory.adaptive_regret_rate(**PROBLEM, bandwidth=0.25)
    assert rate == pytest.approx((1000**4 * math.log(32 / 0.1)) ** 0.2 / 0.25)


def test_knowing_the_bandwidth_is_never_worse_than_adapting_to_it() -> None:
    for bandwidth in (0.01, 0.25, 1):
        known = theory.regret_rate(**PROBLEM, bandwidth=bandwidth)
        assert theory.adaptive_regret_rate(**PROBLEM, bandwidth=bandwidth) == pytest.approx(known / bandwidth**0.4)


def test_epsilon_is_the_theorem_written_out() -> None:
    assert theory.adaptive_epsilon_for_horizon(**PROBLEM) == pytest.approx((math.log(32 / 0.1) / 1000) ** 0.2)
    assert theory.adaptive_epsilon_for_horizon(**(PROBLEM | {"horizon": 1})) == 1


def test_leaves_are_the_theorem_rounded_to_a_power_of_two() -> None:
    for horizon in (int(1.1**power) for power in range(80, 320)):
        exact = (horizon / math.log(3 / 0.5)) ** 0.2
        leaves = theory.adaptive_leaves_for_horizon(horizon=horizon, log_class_size=math.log(3), failure=0.5)
        assert leaves == 2 ** round(math.log2(exact))


def test_a_short_horizon_has_two_leaves() -> None:
    assert theory.adaptive_leaves_for_horizon(**(PROBLEM | {"horizon": 1})) == 2
