"""Constants: the best one is found, and its sums are those of the functions that return them."""

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.errors import ParameterError
from manul.policies import Constant, Finite


def play(agent, rounds):
    low, high = agent.actions
    for _ in range(rounds):
        decision = agent.decide(None)
        agent.learn(None, decision, abs(decision.action - low - 0.7 * (high - low)) / (high - low))
    return agent


def test_constants_are_the_functions_that_return_them():
    functions = [lambda _, action=action: action for action in np.linspace(-1, 3, 9)]
    one, other = (
        play(manul.agents.SmoothedGreedy(policies=policies, bandwidth=0.5, actions=(-1, 3), epsilon=0.3), 300)
        for policies in (Constant(choices=9), Finite(functions))
    )
    assert np.array_equal(host_of(one).state()["0.sums"], host_of(other).state()["0.sums"])


def test_the_best_constant_is_found():
    agent = play(
        manul.agents.SmoothedGreedy(policies=Constant(), bandwidth=2.0, actions=(0.0, 32.0), epsilon=0.2), 3000
    )
    centre, _ = host_of(agent).player_for(agent, np.empty(0, np.float32)).window(np.empty(0, np.float32), 0.0, 32.0)
    assert centre == pytest.approx(0.7 * 32, abs=1.0)


@pytest.mark.parametrize("choices", [1, 2.0, None, 2**21])
def test_choices_are_checked(choices):
    with pytest.raises(ParameterError, match="choices must be a whole number from 2 to"):
        Constant(choices=choices)
