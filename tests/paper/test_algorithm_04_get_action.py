"""Algorithm 4: routing from the root to a leaf."""

import numpy as np
import pytest

import manul
from manul.paper import algorithms


class Scripted:
    """A learner that answers by one feature."""

    def __init__(self, feature):
        self.feature = feature

    def f(self, x):
        return algorithms.RIGHT if x[self.feature] > 0 else algorithms.LEFT

    def learn(self, x, c):
        raise AssertionError("routing must not learn")


@pytest.mark.parametrize("bits", range(8))
def test_the_answers_of_the_nodes_are_the_bits_of_the_leaf(bits):
    tree = algorithms.Build_tree(3, None, lambda: None)
    for depth, level in enumerate(tree.levels[:-1]):
        for v in level:
            v.learner = Scripted(depth)
    x = algorithms.row([1.0 if bits & 4 >> depth else -1.0 for depth in range(3)])
    assert tree.root.get_action(x) == bits / 8


def test_native_tree_plays_only_reachable_leaves(rng):
    agent = manul.Cats.paper(leaves=64, bandwidth=1 / 8, epsilon=0.0)
    manul.simulate(agent, manul.worlds.linear(rounds=2000, width=4))
    centres = [agent.distribution(x).mean() for x in 3 * rng.standard_normal((200, 4))]
    assert len(set(centres)) > 3
    assert min(centres) >= 1 / 8
    assert max(centres) <= 1 - 1 / 8 - 1 / 64
    assert np.allclose(np.array(centres) * 64, np.round(np.array(centres) * 64))
