"""Algorithm 6: `SmoothedGreedy` over a finite class plays as the literal algorithm plays."""

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.paper import general_classes
from manul.policies import Finite

POLICIES = [
    lambda x, c=c, s=s: min(max(c + s * float(x[0]), 0.0), 1.0) for c in (0.0, 0.3, 0.8, 1.0) for s in (-0.2, 0.3)
]


def make_rounds(count, seed=0):
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((count, 2)).astype(np.float32)
    return [(x, lambda a, y=0.3 + 0.2 * float(x[0]): min(1.0, abs(a - y))) for x in contexts]


def play(agent, rounds):
    history = []
    for x, l_t in rounds:
        decision = agent.decide(x)
        agent.learn(x, decision, l_t(decision.action))
        history.append((decision.action, decision.density, l_t(decision.action)))
    return history


@pytest.mark.parametrize("bandwidth", [1 / 2, 0.3, 1 / 8, 1 / 64])
@pytest.mark.parametrize("epsilon", [0.05, 0.5])
def test_every_round_is_the_papers(bandwidth, epsilon):
    rounds = make_rounds(100)
    agent = manul.agents.SmoothedGreedy(policies=Finite(POLICIES), bandwidth=bandwidth, epsilon=epsilon, seed=5)
    literal = general_classes.Smoothed_greedy(POLICIES, bandwidth, epsilon, rounds, seed=5)
    assert play(agent, rounds) == [(a, P, loss) for _, a, P, loss in literal]


def test_the_estimate_of_the_best_policy_is_the_papers():
    rounds = make_rounds(100)
    agent = manul.agents.SmoothedGreedy(policies=Finite(POLICIES), bandwidth=0.1, epsilon=0.2)
    past = [(x, *played) for (x, _), played in zip(rounds, play(agent, rounds), strict=True)]
    literal = [general_classes.V_hat(pi, 0.1, past) for pi in POLICIES]
    assert np.array_equal(host_of(agent).state()["0.sums"] / len(past), literal)


def test_the_best_policy_is_found():
    agent = manul.agents.SmoothedGreedy(policies=Finite(POLICIES), bandwidth=0.1, epsilon=0.2)
    play(agent, make_rounds(2000))
    assert np.argmin(host_of(agent).state()["0.sums"]) == 3
