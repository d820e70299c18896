"""Equation unif-conv-log: the estimates of all policies of a class at once."""

import math
from typing import Any

import numpy as np
import pytest

from manul.policies import theory

BANDWIDTH, ROUNDS, LOGS = 1 / 16, 30000, 60
CENTRES = np.arange(17) / 16


def largest_errors() -> np.ndarray:
    """Log uniform actions that all lose 1, and estimate a constant policy at every centre by IPS."""
    rng = np.random.default_rng(0)
    low, high = np.maximum(CENTRES - BANDWIDTH, 0), np.minimum(CENTRES + BANDWIDTH, 1)
    logs = np.sort(rng.random((LOGS, ROUNDS)), axis=1)
    inside = np.array([np.searchsorted(log, high) - np.searchsorted(log, low) for log in logs])
    return np.asarray(np.abs(inside / ROUNDS / (high - low) - 1).max(axis=1))


def test_the_bound_is_the_equation_written_out() -> None:
    bound = theory.uniform_convergence_bound(
        rounds=1000, bandwidth=0.25, minimum_density=0.05, log_class_size=math.log(32), failure=0.1
    )
    ratio = (math.log(32) + math.log(2 * 1000 / 0.1)) / (1000 * 0.05 * 0.25)
    assert bound == pytest.approx(4 * math.sqrt(ratio) + 2 * ratio)


def test_the_bound_holds_for_all_policies_at_once() -> None:
    bound = theory.uniform_convergence_bound(
        rounds=ROUNDS, bandwidth=BANDWIDTH, minimum_density=1, log_class_size=math.log(len(CENTRES)), failure=0.1
    )
    assert np.mean(largest_errors() <= bound) >= 0.9


def test_one_policy_that_always_loses_is_progressive_validation() -> None:
    log: dict[str, Any] = {"rounds": 1000, "bandwidth": 0.25, "minimum_density": 0.05, "failure": 0.1}
    progressive = theory.progressive_validation_bound(**log, true_loss=1)
    assert theory.uniform_convergence_bound(**log, log_class_size=0) == pytest.approx(progressive)
