"""Linear policies follow the slope of the smoothed loss, to the optimum of the linear world."""

import math

import numpy as np
import pytest

import manul
from manul.actions.smoothing import explore, smooth
from manul.agents.player_host import host_of
from manul.errors import ParameterError
from manul.policies import Linear


def mean_loss(seed, rounds=100_000):
    world = manul.worlds.linear(rounds=rounds, seed=seed)
    agent = manul.agents.SmoothedGreedy(policies=Linear(), bandwidth=1 / 16, epsilon=0.05, seed=seed)
    return manul.simulate(agent, world).mean_loss


def test_the_linear_world_is_within_8_percent_of_its_smoothed_optimum():
    assert np.mean([mean_loss(seed) for seed in range(3)]) <= 1.08 * 0.0458


# The core's update without features: the only weight is the constant's.
def twin(outcomes, h, rate):
    weight = squares = baseline = 0.0
    for number, (action, density, loss) in enumerate(outcomes, start=1):
        wanted = 0.5 + weight
        centre = min(max(wanted, h), 1 - h)
        slope = (
            3 * (action - centre) * (loss - baseline) / h**2 / (2 * h * density) if abs(action - centre) <= h else 0.0
        )
        if (wanted - centre) * slope >= 0 and slope:
            squares += slope**2
            weight -= rate * slope / math.sqrt(squares)
        baseline += (loss - baseline) / number
    return weight, squares


@pytest.mark.parametrize("loss_of", [lambda a: (7 * a) % 1, lambda a: a, lambda a: 1 - a])
def test_the_weight_is_the_formula_up_to_the_ends_of_the_range(rng, loss_of):
    agent = manul.agents.SmoothedGreedy(policies=Linear(rate=0.1), bandwidth=0.2)
    actions = rng.random(300)
    outcomes = np.column_stack([actions, rng.uniform(0.5, 3, 300), loss_of(actions)])
    for action, density, loss in outcomes:
        agent.learn(None, manul.Decision(action, density), loss)
    learned = host_of(agent).state()["weights"][0], host_of(agent).state()["squares"][0]
    assert learned == pytest.approx(twin(outcomes, 0.2, 0.1), rel=1e-4)


def test_the_slope_is_that_of_the_smoothed_loss(rng):
    centre, h, epsilon = 0.4, 0.2, 0.3
    played = explore(smooth(centre, h, (0.0, 1.0)), epsilon, (0.0, 1.0))
    actions = played.sample_many(rng, 400_000)
    ratio = smooth(centre, h, (0.0, 1.0)).density_many(actions) / played.density_many(actions)
    slopes = 3 * (actions - centre) * ((actions - 0.7) ** 2 - 0.1) / h**2 * ratio
    assert slopes.mean() == pytest.approx(2 * (centre - 0.7), abs=5 * slopes.std() / math.sqrt(len(slopes)))


def window(agent, context):
    _, low, high, _ = agent.distribution(context).edges
    return low, high


def trained():
    agent = manul.agents.SmoothedGreedy(policies=Linear(rate=0.1), bandwidth=1 / 128)
    world = manul.worlds.linear(rounds=10, width=1)
    for context, target in zip(world.contexts, world.targets, strict=True):
        decision = agent.decide(context)
        agent.learn(context, decision, abs(decision.action - target))
    return agent


def test_an_action_that_was_outside_the_window_is_not_learned_from_as_inside():
    """Although counting the context moves the window there."""
    agent, counted, context = trained(), trained(), [4.0]
    counted.learn(context, manul.Decision(0.0, 0.05), 0.5)
    action = window(counted, context)[0] + 0.001
    low, high = window(agent, context)
    assert not low <= action <= high
    weights = host_of(agent).state()["weights"]
    agent.learn(context, manul.Decision(action, 0.05), 0.9)
    assert host_of(agent).state()["weights"].tolist() == weights.tolist()


def test_units_of_actions_and_losses_do_not_matter():
    world = manul.worlds.linear(rounds=2000, width=3)
    small = manul.agents.SmoothedGreedy(policies=Linear(), bandwidth=1 / 16)
    large = manul.agents.SmoothedGreedy(policies=Linear(), bandwidth=4.0, actions=(-32.0, 32.0), losses=(0.0, 2.0))
    for context, target in zip(world.contexts, world.targets, strict=True):
        one, other = small.decide(context), large.decide(context)
        assert other.action == pytest.approx(64 * one.action - 32, rel=1e-4, abs=1e-3)
        small.learn(context, one, abs(one.action - target))
        large.learn(context, other, 2 * abs(one.action - target))


@pytest.mark.parametrize("rate", [0, -1, 2, float("nan"), "fast"])
def test_the_rate_is_checked(rate):
    with pytest.raises(ParameterError, match=r"rate must be in \(0, 1\], got"):
        Linear(rate=rate)
