"""Section 5: `DiscreteTree` and `DiscreteLinear` choose the actions that the literal dTree and dLinear choose."""

import numpy as np
import pytest

import manul
from manul.agents.learners import CoinBetting
from manul.paper import algorithms

ROUNDS = 1000
BASES = {"costs": algorithms.CoinCosts, "margin": algorithms.CoinMargin}


def literal_rounds(world):
    return [(x, lambda a, y=y: abs(a - y)) for x, y in zip(world.contexts, world.targets, strict=True)]


def played(agent, world):
    log = manul.simulate(agent, world).log
    return np.column_stack([log.actions, log.densities, log.losses])


@pytest.mark.parametrize("target", ["costs", "margin"])
@pytest.mark.parametrize("depth", [1, 3, 7])
def test_discrete_tree_plays_as_the_literal_one(depth, target):
    world = manul.worlds.linear(rounds=ROUNDS, width=9, seed=depth)
    literal = np.array(algorithms.dTree(depth, 0.2, BASES[target], literal_rounds(world), seed=5))
    agent = manul.agents.DiscreteTree(leaves=2**depth, epsilon=0.2, seed=5, learner=CoinBetting(target=target))
    assert np.array_equal(literal, played(agent, world))


@pytest.mark.parametrize(("leaves", "width"), [(2, 0), (8, 9), (16, 20)])
def test_discrete_linear_plays_as_the_literal_one(leaves, width):
    world = manul.worlds.linear(rounds=ROUNDS, width=max(width, 1), seed=leaves)
    world = manul.worlds.Regression(world.contexts[:, :width], world.targets)
    literal = np.array(algorithms.dLinear(leaves, 0.2, literal_rounds(world), seed=5))
    assert np.array_equal(literal, played(manul.agents.DiscreteLinear(leaves=leaves, epsilon=0.2, seed=5), world))


@pytest.mark.parametrize("make", [manul.agents.DiscreteTree, manul.agents.DiscreteLinear])
def test_a_constant_target_is_found(make):
    world = manul.worlds.Regression(np.zeros((3000, 1)), np.full(3000, 0.75))
    actions = manul.simulate(make(leaves=4), world).log.actions
    assert (actions[-500:] == 0.75).mean() > 0.9
