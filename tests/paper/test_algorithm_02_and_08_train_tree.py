"""Algorithms 2 and 8: batch training of a tree from the bottom up."""

import numpy as np
import pytest

from manul.paper import algorithms


class Threshold:
    """The best rule 'right if x > t' (or its mirror) in hindsight: an exact argmin over a small class."""

    def __init__(self, examples):
        self.examples = examples
        rules = [(t, flip) for t in np.linspace(-2, 2, 41) for flip in (False, True)]
        self.rule = min(rules, key=self.cost) if examples else (0.0, False)

    def cost(self, rule):
        return sum(c[self.side(x, rule)] for x, c in self.examples)

    def side(self, x, rule):
        threshold, flip = rule
        return algorithms.RIGHT if (x[0] > threshold) != flip else algorithms.LEFT

    def f(self, x):
        return self.side(x, self.rule)


def examples(count, rng):
    """The best leaf of 8 grows with x: costs are the distance to it."""
    rows = [algorithms.row([x]) for x in rng.uniform(-2, 2, count)]
    return [(x, np.abs(np.arange(8) / 8 - (x[0] + 2) / 4)) for x in rows]


@pytest.mark.parametrize("partition", [True, False])
def test_a_realizable_tree_is_found(partition, rng):
    tree = algorithms.Train_tree(3, Threshold, None, examples(600, rng), partition=partition)
    for x, c in examples(50, rng):
        assert c[round(tree.root.get_action(x) * 8)] <= c.min() + 0.03


def test_each_level_has_its_own_share_of_the_data(rng):
    data = examples(60, rng)
    tree = algorithms.Train_tree(3, Threshold, None, data, partition=True)
    for d, level in enumerate(tree.levels[:-1]):
        mine = {id(x) for x, _ in data[(2 - d) * 20 : (3 - d) * 20]}
        assert all(id(x) in mine for v in level for x, _ in v.learner.examples)


def test_without_the_partition_every_level_sees_all_examples_whose_costs_differ(rng):
    data = examples(60, rng)
    tree = algorithms.Train_tree(3, Threshold, None, data, partition=False)
    assert len(tree.root.learner.examples) == 60


def test_equal_costs_are_left_out(rng):
    data = [(algorithms.row([x]), np.ones(8)) for x in rng.uniform(-2, 2, 30)]
    tree = algorithms.Train_tree(3, Threshold, None, data, partition=False)
    assert all(not v.learner.examples for level in tree.levels[:-1] for v in level)
