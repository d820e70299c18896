"""The experts of Auto for the first rounds, against their twins in plain NumPy, and what they promise."""

import copy

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from tests.twins import critic, early


def contexts(rounds, width, seed=3):
    return np.random.default_rng(seed).standard_normal((rounds, width)).astype(np.float32)


def learn(agent, rows, *, purchases=None, seed=5):
    """Play rounds whose best action depends on the first column, or sell with a probability."""
    rng = np.random.default_rng([seed, len(rows)])
    for row in rows:
        decision = agent.decide(row)
        best = 0.5 + 0.3 * np.sin(row[0]) if len(row) else 0.4
        noise = 0.05 * rng.standard_normal()
        loss = (
            abs(decision.action - best) + noise if purchases is None else -decision.action * (rng.random() < purchases)
        )
        agent.learn(row, decision, float(loss))
    return agent


def played(rounds, width, **settings):
    return learn(manul.Auto(losses="auto", seed=2), contexts(rounds, width), **settings)


@pytest.mark.parametrize(("rounds", "width"), [(12, 0), (12, 3), (60, 3), (150, 2), (300, 0), (700, 3)])
def test_predictions_are_the_twins(rounds, width):
    agent, context = played(rounds, width), contexts(1, width, seed=9)[0]
    predicted = early.curve(agent, context)((np.arange(64) + 0.5) / 64)
    _, _, centre, _, gain = host_of(agent).state()["units"]
    assert agent.report().early > 0
    assert np.allclose((agent.report(context).losses - centre) * gain, predicted, atol=3e-3)


def test_shares_are_the_twins():
    agent = played(1200, 20, purchases=0.03)
    report = agent.report()
    assert report.constant > 0
    assert (report.early, report.constant) == pytest.approx(early.shares(host_of(agent).state()), rel=1e-9)


@pytest.mark.parametrize(("rounds", "width"), [(12, 3), (100, 2), (40, 0)])
def test_windows_are_those_of_the_optimistic_twin(rounds, width):
    agent = played(rounds, width)
    for context in contexts(5, width, seed=8):
        distribution = agent.distribution(context)
        best = int(np.argmax(distribution.densities))
        low, high = distribution.edges[best : best + 2]
        twin = critic.window(early.curve(agent, context, optimistic=True), agent.report().bandwidth)
        assert np.allclose([(low + high) / 2, (high - low) / 2], twin, atol=6e-3)


@pytest.mark.parametrize(("rounds", "width"), [(25, 0), (30, 3), (63, 8), (135, 2), (263, 2)])
def test_a_step_of_the_fit_is_the_twins(rounds, width):
    agent = played(rounds, width)
    rows, before, seen = contexts(rounds + 90, width), host_of(agent).state(), 0
    for row in rows[rounds:]:
        learn(agent, row[np.newaxis])
        after = host_of(agent).state()
        if early.field(after, "steps") > early.field(before, "steps"):
            twin = early.fitted(before, after, width)
            assert np.allclose(after["early_parameters"], twin, rtol=1e-4, atol=1e-5)
            seen += 1
        before = after
        if seen == 3:
            return
    raise AssertionError("no step was seen")


@pytest.mark.parametrize("purchases", [None, 0.3])
@pytest.mark.parametrize("rounds", [9, 40, 330])
def test_the_constant_action_is_the_twins(rounds, purchases):
    agent = played(rounds, 2, purchases=purchases)
    state = host_of(agent).state()
    counts, sums, means, deviations = state["constant_expert"][6:].reshape(4, 32)
    data = early.rounds(state, 2)
    n = int(counts.sum())
    assert sums.sum() == pytest.approx((data.losses - data.losses[0]).sum())
    while n > 0 and not np.allclose(early.constant(data.actions[:n, 0], data.losses[:n])[0], means, atol=1e-6):
        n -= 1  # the last update was up to a sixteenth of the rounds ago
    assert n >= rounds * 15 / 16 - 1
    assert np.allclose(early.constant(data.actions[:n, 0], data.losses[:n])[1], deviations, atol=1e-6)


@pytest.mark.parametrize(("rounds", "width"), [(30, 0), (50, 3), (200, 4)])
def test_weight_and_evidence_are_the_twins(rounds, width):
    state = host_of(played(rounds, width, purchases=0.2)).state()
    found = early.field(state, "weight"), early.field(state, "evidence")
    assert found == pytest.approx(early.tests(state, width), abs=1e-6)


@pytest.mark.parametrize(("width", "purchases"), [(0, None), (3, None), (3, 0.03)])
def test_a_saved_agent_goes_on_as_the_other(width, purchases):
    rows = contexts(450, width)
    going, saved = (manul.Auto(losses="auto", seed=4) for _ in range(2))
    for first in range(0, len(rows), 30):
        learn(going, rows[first : first + 30], purchases=purchases, seed=first)
        learn(saved, rows[first : first + 30], purchases=purchases, seed=first)
        saved = copy.deepcopy(saved)
        states = host_of(going).state(), host_of(saved).state()
        assert all(np.array_equal(array, states[1][name]) for name, array in states[0].items())
        assert going.best(rows[0]) == saved.best(rows[0])


def test_a_factor_is_saved_while_the_next_one_is_built():
    agent, rows = played(150, 3), contexts(380, 3)
    for row in rows[150:]:
        learn(agent, row[np.newaxis])
        state = host_of(agent).state()
        if early.field(state, "building"):
            break
    other = copy.deepcopy(agent)
    learn(agent, rows)
    learn(other, rows)
    assert early.field(state, "building")
    assert all(np.array_equal(array, host_of(other).state()[name]) for name, array in host_of(agent).state().items())


def test_an_agent_can_be_saved_when_the_world_has_changed():
    rows, agent = contexts(840, 3, seed=0), manul.Auto(losses="auto", seed=1)
    targets = np.clip(0.5 + 0.2 * rows[:, 0], 0, 1)
    manul.simulate(agent, manul.worlds.Regression(rows[:800], targets[:800]))
    manul.simulate(agent, manul.worlds.Regression(rows[800:], 1 - targets[800:]))
    assert agent.report().alarms == 1
    for _ in range(20):
        saved = copy.deepcopy(agent)
        learn(agent, rows[:10])
        learn(saved, rows[:10])
        states = host_of(agent).state(), host_of(saved).state()
        assert all(np.array_equal(array, states[1][name]) for name, array in states[0].items())


def test_epsilon_falls_with_the_evidence_and_densities_follow():
    agent, row = played(40, 2), contexts(1, 2)[0]
    evidence = early.field(host_of(agent).state(), "evidence")
    assert agent.current_epsilon == pytest.approx(0.05 / 1.04 * (1 - 0.8 * evidence))
    decisions = agent.decide_many(np.tile(row, (200, 1)))
    distribution = agent.distribution(row)
    assert np.allclose(decisions.densities, [distribution.density(a) for a in decisions.actions])
    assert np.allclose(decisions.floors, distribution.densities.min())


@pytest.mark.parametrize("epsilon", [0.05, manul.schedules.Fading()])
def test_an_epsilon_that_is_given_does_not_depend_on_evidence(epsilon):
    agent = learn(manul.Auto(losses="auto", epsilon=epsilon), contexts(40, 2))
    assert agent.current_epsilon == (epsilon if epsilon == 0.05 else epsilon.at(40.0))


def test_experts_of_the_first_rounds_retire():
    agent = played(1600, 2)
    assert agent.report().early == 0
    assert early.field(host_of(agent).state(), "running") == 0


def test_the_constant_action_of_a_decision_knows_all_rounds():
    agent, rows = played(1600, 2, purchases=0.03), contexts(60, 2, seed=6)
    for seed, row in enumerate(rows):
        fresh = copy.deepcopy(agent)
        assert np.array_equal(agent.distribution(row).edges, fresh.distribution(row).edges)
        learn(agent, row[np.newaxis], purchases=0.03, seed=seed)
    assert agent.report().constant > 0


@pytest.mark.parametrize("rounds", [5, 100])
def test_equal_losses_say_nothing(rounds):
    agent = manul.Auto(losses="auto")
    for row in contexts(rounds, 2):
        agent.learn(row, agent.decide(row), 3.0)
    assert agent.report().early == 0
    assert agent.current_epsilon == pytest.approx(0.05 / (1 + rounds / 1000))


def test_one_absurd_loss_does_no_harm():
    agent, rows = manul.Auto(losses="auto", seed=1), contexts(300, 1)
    agent.learn(rows[0], agent.decide(rows[0]), 1e30)
    learn(agent, rows)
    assert abs(agent.best(np.zeros(1)) - 0.5) < 0.1
