"""Lemma off-policy-fixed: off-policy optimisation with tree classes."""

import math
from typing import Any

import pytest

from manul.policies import theory

LOG: dict[str, Any] = {"rounds": 1000, "leaves": 8, "bandwidth": 0.25, "minimum_density": 0.05, "failure": 0.1}


def test_the_bound_is_the_lemma_written_out() -> None:
    written_out = 20 * math.sqrt(8**2 * 3 / (1000 * 0.05 * 0.25) * math.log(2 * 1000 * 8 * 32 / 0.1))
    assert theory.tree_training_bound(**LOG, log_class_size=math.log(32)) == pytest.approx(written_out)


@pytest.mark.parametrize(
    ("name", "easier"),
    [("rounds", 2000), ("leaves", 4), ("bandwidth", 0.5), ("minimum_density", 0.1), ("failure", 0.2)],
)
def test_an_easier_problem_has_a_smaller_bound(name: str, easier: float) -> None:
    harder = theory.tree_training_bound(**LOG, log_class_size=3)
    assert theory.tree_training_bound(**(LOG | {name: easier}), log_class_size=3) < harder


def test_a_larger_class_has_a_larger_bound() -> None:
    assert theory.tree_training_bound(**LOG, log_class_size=4) > theory.tree_training_bound(**LOG, log_class_size=3)


@pytest.mark.parametrize("leaves", [2, 64, 8192])
def test_the_bound_covers_the_errors_of_all_nodes(leaves: int) -> None:
    """Every node adds twice its uniform convergence error, and each level trains on its share of the log."""
    depth = leaves.bit_length() - 1
    bound = theory.tree_training_bound(**(LOG | {"rounds": 10**7 * depth, "leaves": leaves}), log_class_size=3)
    node = theory.uniform_convergence_bound(
        rounds=10**7, bandwidth=0.25, minimum_density=0.05, log_class_size=3, failure=0.1 / leaves
    )
    assert min(1, (2 * leaves - 1) * 2 * node) <= bound
