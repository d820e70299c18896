"""Trees as a policy class are the trees of the core."""

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.errors import ParameterError
from manul.policies import Tree


def test_the_learner_learns_as_the_agent(rng):
    settings = {"policies": Tree(leaves=16), "epsilon": 0.2}
    agent = manul.agents.SmoothedGreedy(bandwidth=1 / 8, **settings)
    several = manul.agents.ParetoGreedy(bandwidths=(1 / 4, 1 / 8), **settings)
    for context in rng.standard_normal((300, 2)):
        decision = agent.decide(context)
        for each in (agent, several):
            each.learn(context, decision, abs(decision.action - 0.3))
    assert np.array_equal(host_of(agent).state()["weights"], host_of(several).state()["1.weights"])


def test_leaves_are_checked():
    with pytest.raises(ParameterError, match=r"leaves must be a power of two from 2 to 2\^24, got 100\. Try 128\."):
        Tree(leaves=100)
