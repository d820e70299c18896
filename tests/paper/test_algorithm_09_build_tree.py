"""Algorithm 9: ids, labels, and the leaves that cannot be reached."""

import numpy as np
import pytest

from manul import _core
from manul.paper import algorithms
from tests.twins.naive import NaiveTree


def tree(D, m_sharp):
    return algorithms.Build_tree(D, m_sharp, lambda: algorithms.CoinCosts(algorithms.row([0.0])))


def reachable(node):
    if node.left is None:
        return [node.label]
    sides = (algorithms.LEFT, algorithms.RIGHT) if node.only is None else (node.only,)
    return [label for side in sides for label in reachable(node.child(side))]


def test_ids_count_level_by_level():
    assert [v.id for level in tree(3, 0).levels for v in level] == list(range(15))


def test_labels_are_multiples_of_one_over_k():
    assert [v.label for v in tree(3, 0).leaves] == [i / 8 for i in range(8)]


@pytest.mark.parametrize(("D", "m_sharp"), [(2, 0), (3, 0), (3, 1), (5, 2), (6, 4)])
def test_the_outermost_leaves_are_unreachable(D, m_sharp):
    K, blocked = 2**D, 2**m_sharp
    assert reachable(tree(D, m_sharp).root) == [i / K for i in range(blocked, K - blocked)]


@pytest.mark.parametrize("D", [1, 2, 5])
def test_half_the_range_leaves_one_leaf(D):
    assert reachable(tree(D, D - 1).root) == [0.5]


@pytest.mark.parametrize(("D", "m_sharp"), [(2, 0), (3, 1), (5, 2), (6, 5)])
def test_the_general_rule_agrees_with_the_special_nodes(D, m_sharp):
    general = NaiveTree(depth=D, offset=0.0, bandwidth=2.0**m_sharp / 2**D, actions=(0.0, 1.0), width=1)
    assert (np.flatnonzero(general.reachable((0.0, 1.0))) / 2**D).tolist() == reachable(tree(D, m_sharp).root)


def test_a_fresh_native_tree_plays_the_leftmost_reachable_leaf():
    player = _core.PaperCatsPlayer(
        actions=(0.0, 1.0), losses=(0.0, 1.0), width=1, depth=5, offset=0.0, bandwidth=0.125, epsilon=0.05, seed=0,
        learner=_core.NodeLearner.coin_costs,
    )  # fmt: skip
    assert player.window(np.zeros(1), 0.0, 1.0) == (0.125, 0.125)
