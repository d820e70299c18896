"""Worlds of prices, doses and bids pay on average what they say, nobody beats their optimum, and agents play them."""

import re

import numpy as np
import pytest

import manul
from manul import worlds
from manul.errors import InputError, ParameterError

MAKERS = {"pricing": worlds.pricing, "dosing": worlds.dosing, "bidding": worlds.bidding}
every_world = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
ROUNDS = 20_000


def rewards(world, actions):
    return np.array([world.reward(number, action) for number, action in enumerate(actions)])


@every_world
def test_one_seed_gives_one_world(make):
    one, two, other = (make(rounds=50, seed=seed) for seed in (3, 3, 4))
    actions = np.linspace(*one.actions, 50)
    assert np.array_equal(one.contexts, two.contexts)
    assert np.array_equal(rewards(one, actions), rewards(two, actions))
    assert not np.array_equal(one.contexts, other.contexts)


@every_world
@pytest.mark.parametrize("share", [0.1, 0.2, 0.3, 0.5, 0.9])
def test_rewards_average_to_their_means(make, share):
    world = make(rounds=ROUNDS)
    actions = np.full(ROUNDS, share * world.actions[1])
    noise = rewards(world, actions) - world.mean_rewards(actions)
    assert abs(noise.mean()) < 4 * noise.std() / np.sqrt(ROUNDS) + 1e-12


@every_world
def test_rewards_average_to_their_means_where_the_context_makes_a_difference(make):
    world = make(rounds=ROUNDS)
    high = world.mean_rewards(np.full(ROUNDS, world.actions[1] / 4))
    rows, actions = high > np.median(high), np.full(ROUNDS, world.actions[1] / 4)
    noise = (rewards(world, actions) - high)[rows]
    assert abs(noise.mean()) < 4 * noise.std() / np.sqrt(rows.sum())


@every_world
def test_the_optimum_is_that_of_a_finer_search(make):
    world = make(rounds=30)
    actions = np.linspace(*world.actions, 100_001)
    curves = np.array([world.mean_rewards(np.full(30, action)) for action in actions])
    assert world.optimum() == pytest.approx(curves.max(axis=0).mean(), rel=1e-4)
    assert world.best_constant() == pytest.approx(curves.mean(axis=1).max(), rel=1e-4)


@every_world
def test_the_context_is_worth_something_and_chance_is_worse_than_a_constant(make, rng):
    world = make(rounds=2000)
    assert 0 < world.optimum() - world.best_constant() < world.regret(rng.uniform(*world.actions, 2000))


def test_values_of_auctions_have_no_variance():
    world = worlds.bidding(rounds=ROUNDS, seed=1)
    values = rewards(world, np.full(ROUNDS, 40.0)) + 40.0
    assert np.mean(values > 50) == pytest.approx(0.01, abs=0.003)
    assert np.mean(values > 500) == pytest.approx(0.0001, abs=0.0003)


@every_world
def test_an_agent_plays_for_losses_that_are_negative_rewards(make):
    world = make(rounds=300)
    log = manul.simulate(manul.Auto(actions=world.actions, losses=(-1e6, 1e6)), world).log
    assert np.array_equal(log.losses, -rewards(world, log.actions))


@every_world
@pytest.mark.parametrize(("name", "value"), [("rounds", 0), ("rounds", 2.5), ("width", -1)])
def test_a_size_that_is_no_count_is_refused(make, name, value):
    with pytest.raises(ParameterError, match=re.escape(f"{name} must be a whole number of at least 1, got {value}.")):
        make(**{"rounds": 10, name: value})


def test_one_action_per_round_is_required_for_a_regret():
    with pytest.raises(InputError, match="chosen"):
        worlds.pricing(rounds=10).regret([1.0, 2.0])
