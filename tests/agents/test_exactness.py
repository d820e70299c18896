"""One native update touches exactly the nodes that naive O(K) training touches, with equal costs."""

import numpy as np
import pytest

from manul import _core
from tests.twins.naive import NaiveTree

CASES = 6_000
TREES = 250


def random_tree(rng):
    low = rng.choice([0.0, -3.0, 10.0])
    span = rng.choice([1.0, 32.0, 0.3])
    depth = int(rng.integers(1, 9))
    share = rng.choice([0.5, 0.25, 1 / 16, 2.0**-depth, rng.uniform(0.001, 0.5), rng.uniform(0.001, 0.1)])
    return {
        "actions": (low, low + span),
        "depth": depth,
        "offset": float(rng.choice([0.0, 0.5])),
        "bandwidth": float(share * span),
        "width": int(rng.integers(0, 10)),
    }


def random_case(rng, tree):
    low, high = tree["actions"]
    within = (low, high)
    if rng.random() < 0.3:
        a, b = np.sort(rng.uniform(low, high, 2))
        within = (a, b) if b - a >= 2 * tree["bandwidth"] else (low, high)
    action = rng.choice([*within, rng.uniform(*within), rng.uniform(*within), rng.uniform(*within)])
    return float(action), float(rng.uniform(0.05, 8)), float(rng.uniform(0, 1)), (float(within[0]), float(within[1]))


@pytest.mark.parametrize("part", range(4))
def test_native_updates_are_those_of_naive_training(part):
    rng = np.random.default_rng(part)
    for _ in range(TREES // 4 + 1):
        tree = random_tree(rng)
        naive = NaiveTree(**tree)
        native = _core.PaperCatsPlayer(
            **tree,
            losses=(0.0, 1.0),
            learner=_core.NodeLearner.coin_margin,
            epsilon=0.05,
            seed=0,
        )
        for _ in range(CASES // TREES):
            x = rng.standard_normal(tree["width"]).astype(np.float32)
            action, density, loss, within = random_case(rng, tree)
            expected = naive.learn(x, action, density, loss, within)
            traced = native.trace(x, action, density, loss, *within)
            assert {node: (left, right) for node, left, right in traced} == expected
            assert len(traced) == len(expected)
