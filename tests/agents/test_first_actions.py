"""The first actions of Auto avoid each other: each is drawn around the middle of the largest gap."""

from itertools import pairwise

import numpy as np
import pytest

import manul


def window(agent, **limits):
    """The ends of the window of the next decision."""
    distribution = agent.distribution([0.0], **limits)
    place = int(np.argmax(distribution.densities))
    return float(distribution.edges[place]), float(distribution.edges[place + 1])


def literal_window(actions, low, high):
    """The middle third of the largest gap between actions, or everything without any."""
    edges = sorted({low, high, *(action for action in actions if low < action < high)})
    if len(edges) == 2:
        return low, high
    left, right = max(pairwise(edges), key=lambda gap: gap[1] - gap[0])
    return (left + right) / 2 - (right - left) / 6, (left + right) / 2 + (right - left) / 6


def learn(agent, rounds, rng):
    """The actions of some rounds with random losses."""
    actions = []
    for _ in range(rounds):
        decision = agent.decide([0.0])
        agent.learn([0.0], decision, rng.random())
        actions.append(decision.action)
    return actions


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rounds", range(7))
def test_windows_are_in_the_largest_gap(rounds, seed):
    rng = np.random.default_rng([rounds, seed])
    agent = manul.Auto(actions=(-3.0, 5.0), seed=seed)
    actions = learn(agent, rounds, rng)
    assert window(agent) == pytest.approx(literal_window(actions, -3.0, 5.0), abs=1e-5)
    low, high = np.sort(rng.uniform(-3.0, 5.0, 2))
    assert window(agent, within=(low, high)) == pytest.approx(literal_window(actions, low, high), abs=1e-5)


def test_seven_actions_leave_no_quarter_of_the_range_empty():
    for seed in range(30):
        agent = manul.Auto(seed=seed, epsilon=0.0)
        actions = learn(agent, 7, np.random.default_rng(seed))
        assert np.diff(np.sort([0.0, *actions, 1.0])).max() < 0.25


def test_decisions_before_the_first_loss_are_spread_over_the_range():
    decisions = manul.Auto(seed=1).decide_many(np.zeros((400, 1)))
    assert np.allclose(np.histogram(decisions.actions, 4, (0.0, 1.0))[0], 100, atol=30)
    assert np.all(decisions.densities == 1.0)


def test_a_given_bandwidth_is_the_least_width():
    agent = manul.Auto(bandwidth=0.2, seed=3)
    learn(agent, 5, np.random.default_rng(3))
    low, high = window(agent)
    assert high - low == pytest.approx(0.4)


def test_a_critic_without_early_experts_begins_uniformly():
    agent = manul.Auto(seed=1)
    agent._early = False
    learn(agent, 9, np.random.default_rng(1))
    assert agent.decide([0.0]).density == 1.0
