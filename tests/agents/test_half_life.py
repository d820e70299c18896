"""With a half-life, agents follow a world that changes; without one, nothing is forgotten."""

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.errors import ParameterError

AGENTS = {
    "Cats": lambda **settings: manul.Cats(leaves=64, bandwidth=1 / 32, **settings),
    "Cats.paper": lambda **settings: manul.Cats.paper(leaves=64, bandwidth=1 / 32, **settings),
    "AdaptiveCats": lambda **settings: manul.AdaptiveCats(leaves=64, bandwidths=[1 / 16, 1 / 32], **settings),
    "DiscreteTree": lambda **settings: manul.agents.DiscreteTree(leaves=16, **settings),
    "DiscreteLinear": lambda **settings: manul.agents.DiscreteLinear(leaves=16, **settings),
}


def after_the_jump(agent, rounds=20_000):
    """The loss after the best action has jumped from 0.2 to 0.8."""
    targets = np.where(np.arange(2 * rounds) < rounds, 0.2, 0.8)
    world = manul.worlds.Regression(np.zeros((2 * rounds, 1)), targets)
    return manul.simulate(agent, world).log.losses[rounds:].mean()


@pytest.mark.parametrize("name", ["Cats.paper", "DiscreteTree"])
def test_forgetting_follows_a_jump(name):
    assert after_the_jump(AGENTS[name](half_life=300)) < 0.7 * after_the_jump(AGENTS[name]())


def test_forgetting_follows_a_direction_that_flips(rng):
    contexts = rng.standard_normal((40_000, 3))
    sign = np.where(np.arange(40_000) < 20_000, 1.0, -1.0)
    world = manul.worlds.Regression(contexts, np.clip(0.5 + 0.2 * sign * contexts[:, 0], 0, 1))
    keeps, forgets = (AGENTS["Cats"](half_life=half_life) for half_life in (None, 1000))
    kept, forgot = (manul.simulate(agent, world).log.losses[20_000:].mean() for agent in (keeps, forgets))
    assert forgot < 0.92 * kept


@pytest.mark.parametrize("name", AGENTS)
def test_half_life_is_saved(name, tmp_path):
    agent = AGENTS[name](half_life=700)
    agent.learn([1.0], agent.decide([1.0]), 0.5)
    agent.save(tmp_path / "agent.manul")
    loaded = manul.load(tmp_path / "agent.manul")
    for each in (agent, loaded):
        each.learn([2.0], each.decide([2.0]), 0.5)
    assert all(np.array_equal(host_of(agent).state()[name], array) for name, array in host_of(loaded).state().items())


@pytest.mark.parametrize("half_life", [0, -5, float("nan"), float("inf"), "long"])
def test_bad_half_life_is_refused(half_life):
    with pytest.raises(ParameterError, match="half_life must be at least 1 and finite, got"):
        manul.Cats(leaves=64, bandwidth=1 / 32, half_life=half_life)
