"""Algorithm 5: the literal form, and `AdaptiveCats` with its trees that learn round by round."""

import math

import numpy as np
import pytest

import manul
from manul.actions.decision import Decisions
from manul.agents.player_host import host_of
from manul.paper import algorithms, general_classes
from manul.policies import theory

H = (1 / 2, 1 / 4, 1 / 16)


class Sign:
    """The best of the rules always left, always right, and right on either side of 0."""

    def __init__(self, examples):
        rules = [(0, 0), (1, 1), (0, 1), (1, 0)]
        self.sides = min(rules, key=lambda sides: sum(c[sides[int(x[0] > 0)]] for x, c in examples))

    def f(self, x):
        return self.sides[int(x[0] > 0)]


def rounds(count, seed=0):
    """The best action is 0.2 or 0.7, by the sign of the context."""
    contexts = np.random.default_rng(seed).standard_normal((count, 1)).astype(np.float32)
    return [(x, lambda a, y=0.2 if x[0] < 0 else 0.7: min(1.0, 2 * abs(a - y))) for x in contexts]


def nothing(*_):
    return 0.0


def played(agent, count=400, within=None):
    """What came of playing: contexts, decisions and losses."""
    made, losses = [], []
    for x, l_t in rounds(count):
        made.append(agent.decide(x, within))
        losses.append(l_t(made[-1].action))
        agent.learn(x, made[-1], losses[-1])
    decisions = Decisions(np.array([each.action for each in made]), np.array([each.density for each in made]))
    return np.array([x for x, _ in rounds(count)]), decisions, losses


# The literal form


@pytest.mark.parametrize("P", [nothing, general_classes.P_adaptive(T=20, K=8, eps=0.5, ln_F=0.01, delta=0.5)])
def test_the_bandwidth_of_the_least_estimate_and_penalty_plays(P):
    S, chosen = general_classes.Adaptive_CATS(3, Sign, H, 0.5, P, rounds(20), seed=5)
    for t in range(1, 20):
        V = {}
        for h in H:
            costs = [(x, algorithms.IPS_costs(h, 8, *outcome)) for x, *outcome in S[:t]]
            V[h] = general_classes.V_hat(algorithms.Train_tree(3, Sign, None, costs).root.get_action, h, S[:t])
        assert chosen[t] == min(H, key=lambda h: V[h] + P(V[h], t, h))


def test_the_density_is_that_of_the_bandwidth_that_played():
    S, chosen = general_classes.Adaptive_CATS(3, Sign, H, 0.5, nothing, rounds(20), seed=5)
    for (_, _, density, _), h in zip(S, chosen, strict=True):
        assert density == 0.5 or 0.5 + 0.25 / h <= density <= 0.5 + 0.5 / h


def test_the_penalty_is_the_theorys():
    P = general_classes.P_adaptive(T=1000, K=8, eps=0.1, ln_F=3.0, delta=0.05)
    settings = {"horizon": 1000, "leaves": 8, "epsilon": 0.1, "log_class_size": 3.0, "failure": 0.05}
    assert P(0.3, 700, 1 / 4) == pytest.approx(theory.adaptive_penalty(rounds=700, bandwidth=1 / 4, **settings))


def test_the_papers_penalty_keeps_the_widest_bandwidth_of_the_fine_grid_for_long():
    grid = theory.BandwidthGrid(horizon=5)
    P = general_classes.P_adaptive(T=5, K=4, eps=0.5, ln_F=math.log(4), delta=0.05)
    assert general_classes.Adaptive_CATS(2, Sign, list(grid), 0.5, P, rounds(5))[1] == [1.0] * 5


def test_a_narrower_bandwidth_wins_where_the_loss_is_steep():
    _, chosen = general_classes.Adaptive_CATS(3, Sign, H, 0.5, nothing, rounds(60))
    assert np.mean([h < 1 / 2 for h in chosen[30:]]) > 0.9


# AdaptiveCats


@pytest.mark.parametrize("penalty", ["measured", "practical", "paper"])
def test_members_learn_what_single_agents_learn_from_the_same_outcomes(penalty):
    agent = manul.AdaptiveCats(leaves=16, bandwidths=H, penalty=penalty, epsilon=0.3)
    outcomes, state = played(agent), host_of(agent).state()
    for member, h in enumerate(H, start=1):
        single = manul.Cats(leaves=16, bandwidth=h, epsilon=0.3)
        single.learn_many(*outcomes)
        for name, array in host_of(single).state().items():
            assert name == "decisions" or array.tobytes() == state[f"{member}.{name}"].tobytes()


@pytest.mark.parametrize("penalty", ["measured", "practical", "paper"])
def test_the_bandwidth_with_the_smallest_risk_plays(penalty):
    agent = manul.AdaptiveCats(leaves=16, bandwidths=H, penalty=penalty, epsilon=0.3)
    for x, l_t in rounds(400):
        decision = agent.decide(x)
        agent.learn(x, decision, l_t(decision.action))
        assert agent.risks[H.index(agent.bandwidth)] == agent.risks.min()
        assert (agent.risks >= agent.estimates).all()


def test_the_papers_penalty_is_the_theorys():
    agent = manul.AdaptiveCats(leaves=16, actions=(0.0, 4.0), bandwidths=(2.0, 1.0), penalty="paper", epsilon=0.3)
    outcomes = played(agent)
    size = 32 * (outcomes[0].shape[1] + 1) * math.log(2)
    settings = {"horizon": 10**6, "leaves": 16, "epsilon": 0.3, "log_class_size": size, "failure": 0.05}
    expected = [theory.adaptive_penalty(rounds=400, bandwidth=h, **settings) for h in (1 / 2, 1 / 4)]
    assert agent.risks - agent.estimates == pytest.approx(expected)


def test_the_practical_penalty_is_that_of_algorithm_3_with_its_constant():
    agent = manul.AdaptiveCats(leaves=16, bandwidths=H, penalty="practical", epsilon=0.3)
    played(agent)
    settings = {"horizon": 400, "minimum_density": 0.3, "constant": 1}
    expected = [
        theory.off_policy_penalty(mean_loss=loss, bandwidth=h, **settings)
        for loss, h in zip(agent.estimates, H, strict=True)
    ]
    assert agent.risks - agent.estimates == pytest.approx(expected)


def test_the_estimates_are_the_losses_of_the_members():
    agent = manul.AdaptiveCats(leaves=16, bandwidths=(1 / 2,), epsilon=0.3)
    _, _, losses = played(agent, 4000)
    assert agent.estimates[0] == pytest.approx(np.mean(losses[2000:]), abs=0.05)


def test_a_round_counts_by_the_spread_that_the_importance_weight_has_over_a_window():
    agent = manul.AdaptiveCats(leaves=16, bandwidths=(1 / 2, 1 / 16), epsilon=0.3)
    played(agent, 1)
    greedy = 0.3 + 0.7 * 8
    squares = [1 / 8 / greedy + 7 / 8 / 0.3, 8 / greedy]
    assert host_of(agent).state()["evidence"] == pytest.approx(1 / np.sqrt(squares))


def test_the_measured_penalty_is_the_standard_error_of_a_mean_in_which_later_rounds_count_more():
    agent, estimates = manul.AdaptiveCats(leaves=16, bandwidths=(1 / 2,), epsilon=0.3), [0.0]
    for x, l_t in rounds(50):
        decision = agent.decide(x)
        agent.learn(x, decision, l_t(decision.action))
        estimates.append(agent.estimates[0])
    number = np.arange(3, 51)
    counts = number * (number - 1.0) * (number - 2.0)
    surprises = np.diff(estimates)[2:] * counts.cumsum() / counts
    error = np.sqrt(((counts * surprises) ** 2).sum()) / counts.sum()
    assert agent.risks[0] - agent.estimates[0] == pytest.approx(error)


def test_a_bandwidth_too_wide_for_the_range_is_left_out():
    agent = manul.AdaptiveCats(leaves=16, bandwidths=H, epsilon=0.0)
    played(agent)
    before = host_of(agent).state()
    played(agent, within=(0.1, 0.4))
    after = host_of(agent).state()
    assert agent.decide([0.3], within=(0.1, 0.4)).density == pytest.approx(8)
    changed = [before[f"{member}.weights"].tobytes() != after[f"{member}.weights"].tobytes() for member in (1, 2, 3)]
    assert changed == [False, False, True]
    assert (before["estimates"] == after["estimates"]).tolist() == [True, True, False]


def test_a_bandwidth_is_judged_by_the_rounds_it_fitted_into():
    agent = manul.AdaptiveCats(leaves=16, bandwidths=(1 / 2, 1 / 16))
    played(agent, 1000, within=(0.1, 0.4))
    for _ in range(4):
        agent.learn([0.0], agent.decide([0.0]), 1.0)
    assert agent.estimates[0] == pytest.approx(1.0, abs=0.1)
    assert agent.bandwidth == 1 / 16
