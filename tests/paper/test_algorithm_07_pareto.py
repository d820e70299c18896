"""Algorithm 7: `ParetoGreedy` over a finite class plays as the literal algorithm plays, bandwidths and all."""

import math

import numpy as np
import pytest

import manul
from manul.paper import general_classes
from manul.policies import Finite, theory
from tests.paper.test_algorithm_06_smoothed_greedy import POLICIES, make_rounds


def play(agent, rounds):
    history, bandwidths = [], []
    for x, l_t in rounds:
        bandwidths.append(agent.chosen)
        decision = agent.decide(x)
        agent.learn(x, decision, l_t(decision.action))
        history.append((decision.action, decision.density, l_t(decision.action)))
    return history, bandwidths


def literal(H, epsilon, P, rounds):
    past, bandwidths = general_classes.Pareto_greedy(POLICIES, H, epsilon, P, rounds, seed=5)
    return [(a, density, loss) for _, a, density, loss in past], bandwidths


@pytest.mark.parametrize("constant", [0.001, 0.02, 1.0])
def test_every_round_is_the_papers_with_a_practical_constant(constant):
    rounds, H = make_rounds(60), (1 / 64, 1 / 8, 0.3, 1.0)
    agent = manul.agents.ParetoGreedy(policies=Finite(POLICIES), bandwidths=H, epsilon=0.2, constant=constant, seed=5)
    expected = literal(
        H, 0.2, lambda V, t, h: math.sqrt(V * (constant / (t * 0.2 * h))) + constant / (t * 0.2 * h), rounds
    )
    assert play(agent, rounds) == expected
    assert len(set(expected[1])) > 1 or constant == 1.0


def test_every_round_is_the_papers_with_its_penalty_and_its_fine_grid():
    rounds, grid = make_rounds(8), theory.BandwidthGrid(horizon=8)
    agent = manul.agents.ParetoGreedy(policies=Finite(POLICIES), bandwidths=grid, epsilon=0.5, horizon=8, seed=5)
    P = general_classes.P_pareto(T=8, eps=0.5, ln_Pi=math.log(len(POLICIES)), delta=0.05)
    assert play(agent, rounds) == literal(list(grid), 0.5, P, rounds)


def test_the_penalty_is_the_papers():
    agent = manul.agents.ParetoGreedy(policies=Finite(POLICIES), actions=(0.0, 4.0), epsilon=0.5, horizon=1000)
    P = general_classes.P_pareto(T=1000, eps=0.5, ln_Pi=math.log(len(POLICIES)), delta=0.05)
    assert agent._penalty(0.5, 700, 1.0) == pytest.approx(P(0.5, 700, 1 / 4))


def test_a_narrow_bandwidth_wins_where_the_loss_is_steep():
    agent = manul.agents.ParetoGreedy(policies=Finite(POLICIES), bandwidths=(1 / 2, 1 / 16), epsilon=0.2)
    for x, _ in make_rounds(2000):
        decision = agent.decide(x)
        agent.learn(x, decision, min(1.0, 5 * abs(decision.action - np.clip(0.3 + 0.3 * x[0], 0, 1))))
    assert agent.chosen == 1 / 16
