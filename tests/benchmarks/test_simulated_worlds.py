"""The optimum of each simulated world is the best that brute force finds, and its losses have the expected mean."""

from itertools import product

import numpy as np
import pytest
from benchmarks.simulated_worlds import ALL, DRAWS

ROUNDS = 3000  # purchases are rare


@pytest.fixture(params=DRAWS, scope="module")
def world(request):
    return DRAWS[request.param](7, ROUNDS)


def _random_actions(world, rng):
    low, high = world.ends
    actions = low + (high - low) * rng.random((ROUNDS, len(low)))
    return actions if len(low) > 1 else actions[:, 0]


def test_the_best_of_many_actions_is_about_as_good_as_the_optimum(world):
    low, high = world.ends
    count, error = (2000, 1e-3) if len(low) == 1 else (25, 1e-2)
    actions = np.array(list(product(*np.linspace(low, high, count).T)))
    losses = np.array([world.expected(action if len(low) > 1 else action[0], slice(40)) for action in actions])
    span = losses.max(0) - losses.min(0)
    assert (np.abs(losses.min(0) - world.best[:40]) <= error * span).all()


def test_no_random_action_is_better_than_the_best_one(world, rng):
    for _ in range(20):
        regrets = world.regrets(_random_actions(world, rng))
        assert regrets.min() >= -1e-3 * regrets.max()


def test_the_mean_loss_of_random_actions_is_the_expected_one(world, rng):
    actions = _random_actions(world, rng)
    drawn = np.array([world.loss(action, number) for number, action in enumerate(actions)])
    errors = drawn - world.expected(actions, ALL)
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(ROUNDS)


def test_the_contexts_of_a_world_are_as_many_as_its_rounds(world):
    assert len(world) == len(world.rows) == len(world.best) == ROUNDS
