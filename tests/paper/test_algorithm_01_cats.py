"""Algorithm 1: `Cats.paper` chooses the actions that the literal CATS chooses."""

import math

import numpy as np
import pytest

import manul
from manul.paper import algorithms

ROUNDS = 2000
BASES = {"costs": algorithms.CoinCosts, "margin": algorithms.CoinMargin}


@pytest.mark.parametrize(
    ("leaves", "bandwidth", "target"),
    [
        (4, 1 / 4, "costs"),
        (8, 1 / 8, "margin"),
        (16, 1 / 2, "costs"),
        (64, 1 / 16, "costs"),
        (64, 1 / 64, "margin"),
        (256, 1 / 32, "margin"),
    ],
)
def test_cats_paper_plays_as_the_paper(leaves, bandwidth, target):
    world = manul.worlds.linear(rounds=ROUNDS, width=9, seed=leaves)
    agent = manul.Cats.paper(
        leaves=leaves, bandwidth=bandwidth, learner=manul.learners.CoinBetting(target=target), seed=5
    )
    rounds = [(x, lambda a, y=y: abs(a - y)) for x, y in zip(world.contexts, world.targets, strict=True)]
    literal = np.array(algorithms.CATS(bandwidth, int(math.log2(leaves)), 0.05, BASES[target], rounds, seed=5))
    log = manul.simulate(agent, world).log
    assert np.array_equal(literal, np.column_stack([log.actions, log.densities, log.losses]))
