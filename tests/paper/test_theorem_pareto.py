"""Theorem adaptive: the Pareto-optimal algorithm for general policy classes (Algorithm 7)."""

import math
from typing import Any

import pytest

from manul.policies import theory

PROBLEM: dict[str, Any] = {"horizon": 1000, "log_class_size": math.log(32), "failure": 0.1}
CELL: dict[str, Any] = PROBLEM | {"rounds": 500, "bandwidth": 0.25, "epsilon": 0.05}


def test_the_penalty_is_the_algorithm_written_out() -> None:
    ratio = (math.log(32) + math.log(8 * 1000**4 / 0.1)) / (500 * 0.05 * 0.25)
    assert theory.pareto_penalty(**CELL) == pytest.approx(2 * math.sqrt(ratio) + 3 * ratio)


def test_the_penalty_falls_from_round_to_round() -> None:
    penalties = [theory.pareto_penalty(**(CELL | {"rounds": rounds})) for rounds in range(1, 1001)]
    assert penalties == sorted(set(penalties), reverse=True)


def test_the_penalty_falls_with_wider_bandwidths() -> None:
    penalties = [theory.pareto_penalty(**(CELL | {"bandwidth": bandwidth})) for bandwidth in (0.1, 0.5, 1)]
    assert penalties == sorted(set(penalties), reverse=True)


def test_the_rate_is_the_theorem_written_out() -> None:
    written_out = (1000**2 * (math.log(32) + math.log(1 / 0.1))) ** (1 / 3) / math.sqrt(0.25)
    assert theory.pareto_regret_rate(**PROBLEM, bandwidth=0.25) == pytest.approx(written_out)


def test_epsilon_is_the_theorem_written_out() -> None:
    written_out = ((math.log(32) + math.log(1 / 0.1)) / 1000) ** (1 / 3)
    assert theory.pareto_epsilon_for_horizon(**PROBLEM) == pytest.approx(written_out)


def test_epsilon_is_one_when_the_horizon_is_too_short_to_learn() -> None:
    assert theory.pareto_epsilon_for_horizon(**(PROBLEM | {"horizon": 5})) == 1


def test_learning_with_the_chosen_epsilon_has_the_rate() -> None:
    epsilon = theory.pareto_epsilon_for_horizon(**PROBLEM)
    learning = math.sqrt(1000 / (epsilon * 0.25) * math.log(32 / 0.1))
    assert theory.pareto_regret_rate(**PROBLEM, bandwidth=0.25) == pytest.approx(learning)
