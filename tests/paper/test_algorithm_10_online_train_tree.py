"""Algorithm 10: the climb touches what training in O(K) touches, and nothing else."""

import math

import numpy as np
import pytest

from manul.paper import algorithms
from tests.twins.naive import NaiveTree


@pytest.mark.parametrize(("D", "m_sharp"), [(1, 0), (3, 0), (4, 2), (5, 1), (6, 5)])
def test_the_literal_climb_is_naive_training(D, m_sharp, rng):
    h, M = 2.0**m_sharp / 2**D, algorithms.row(np.zeros(3))
    tree = algorithms.Build_tree(D, m_sharp, lambda: algorithms.CoinMargin(M))
    naive = NaiveTree(depth=D, offset=0.0, bandwidth=h, actions=(0.0, 1.0), width=3)
    for _ in range(200):
        x, a, loss, density = (
            rng.standard_normal(3).astype(np.float32),
            rng.random(),
            rng.random(),
            rng.uniform(0.05, 4),
        )
        M[:] = np.maximum(M, np.abs(algorithms.row(x)))
        window = math.ceil(2**D * (a - h)), math.floor(2**D * (a + h))
        climbed = algorithms.Online_train_tree(
            tree, algorithms.row(x), *clamped(window, D, m_sharp), np.float32(loss / (2 * h * density))
        )
        expected = naive.learn(x, a, density, loss, (0.0, 1.0))
        assert {u + 1: (left, right) for u, left, right in climbed} == expected


def clamped(window, D, m_sharp):
    """The cost of leaves that cannot be reached is left open by the paper: they are left out."""
    lowest, highest = (2**m_sharp, 2**D - 2**m_sharp - 1) if m_sharp < D - 1 else (2 ** (D - 1), 2 ** (D - 1))
    return max(window[0], lowest), min(window[1], highest)


def test_an_update_costs_at_most_two_nodes_per_level(rng):
    tree = algorithms.Build_tree(8, 2, lambda: algorithms.CoinMargin(algorithms.row([1.0])))
    for _ in range(50):
        first, last = np.sort(rng.integers(0, 256, 2))
        assert len(algorithms.Online_train_tree(tree, algorithms.row([1.0]), int(first), int(last), 1.0)) <= 16
