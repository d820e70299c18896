"""Agents that start near an action."""

import pickle

import numpy as np
import pytest

import manul
from manul import Auto, Choice, Stepped
from manul.errors import ParameterError


def _learn(agent, rounds, loss=lambda action, _: abs(action - 20.0) / 100):
    rng = np.random.default_rng(1)
    actions = []
    for _ in range(rounds):
        context = rng.normal(size=2)
        decision = agent.decide(context)
        agent.learn(context, decision, float(loss(decision.action, rng)))
        actions.append(decision.action)
    return actions


def test_the_first_decisions_are_near_the_start():
    actions = _learn(Auto(actions=(10, 80), start=35.0, epsilon=0.01, seed=1), 40)
    assert all(abs(action - 35) <= 70 * (0.01 + 10 / 400) for action in actions[:10])
    assert max(abs(action - 35) for action in actions) <= 70 * (0.01 + 40 / 400)


def test_the_start_does_not_bind_for_ever():
    actions = _learn(Auto(actions=(10, 80), start=75.0, seed=1), 400)
    assert np.abs(np.median(actions[-50:]) - 20.0) < 5


def test_while_all_losses_are_equal_decisions_stay_near_the_start():
    actions = _learn(Auto(actions=(10, 80), start=35.0, epsilon=0.001, seed=1), 100, lambda *_: 0.5)
    assert all(abs(action - 35) <= 0.01 * 70 for action in actions)


@pytest.mark.parametrize("rounds", [0, 5, 60])
@pytest.mark.parametrize("nearby", [None, 0.2])
def test_densities_near_a_start_are_those_of_the_draws(rounds, nearby):
    agent = Auto(actions=(10, 80), start=35.0, epsilon=0.2, nearby=nearby, seed=1)
    _learn(agent, rounds)
    context, within = [0.3, 0.2], (20.0, 60.0)
    draws = agent.decide_many(np.tile(context, (20_000, 1)), [within] * 20_000)
    distribution = agent.distribution(context, within)
    assert np.allclose(draws.densities[:99], [distribution.density(action) for action in draws.actions[:99]])
    assert np.allclose(
        draws.densities, agent.distributions([context] * 20_000, [within] * 20_000).density(draws.actions)
    )
    assert draws.floors[0] <= draws.densities.min()
    assert draws.floors[0] > 0
    edges = np.linspace(*within, 9)
    lengths = np.histogram(draws.actions, edges, weights=1 / draws.densities)[0] / 20_000
    assert np.allclose(lengths, np.diff(edges), atol=6 * np.sqrt((1 / draws.densities**2).mean() / 20_000))


@pytest.mark.parametrize(("start", "within", "low", "high"), [(35.0, (50, 80), 50, 50.7), (75.0, (10, 40), 39.3, 40)])
def test_a_start_outside_of_a_narrower_range_is_its_nearest_end(start, within, low, high):
    window = Auto(actions=(10, 80), start=start).distribution(None, within)
    likely = window.edges[:-1][window.densities > 0.1], window.edges[1:][window.densities > 0.1]
    assert np.allclose((likely[0][0], likely[1][-1]), (low, high))


def test_a_restart_after_a_change_does_not_return_to_the_start():
    agent = Auto(actions=(10, 80), start=75.0, seed=1)
    _learn(agent, 800)
    _learn(agent, 400, lambda action, _: 1 - abs(action - 20.0) / 100)
    assert agent.report().alarms > 0
    with_start, without = agent, manul.Auto(actions=(10, 80), seed=1)
    _learn(without, 800)
    assert with_start.distribution([0.3, 0.2]).edges[0] == without.distribution([0.3, 0.2]).edges[0]


def _knobs(**settings):
    knobs = {"price": (10, 80), "days": Stepped(1, 20, 1), "template": Choice(["a", "b", "c"])}
    return Auto(actions=knobs, **settings)


def test_of_several_knobs_those_without_a_start_begin_anywhere():
    agent = _knobs(start={"price": 35.0, "template": "b"}, epsilon=0.01, nearby=0.0)
    actions = [agent.decide([0.5]).action for _ in range(200)]
    assert np.mean([abs(action["price"] - 35) <= 0.01 * 70 for action in actions]) > 0.9
    assert np.mean([action["template"] == "b" for action in actions]) > 0.9
    assert {action["days"] for action in actions} == set(range(1, 21))


@pytest.mark.parametrize("rounds", [0, 30])
@pytest.mark.parametrize("limits", [(), ["price >= 50 if template == 'b'"]])
def test_joint_densities_near_a_start_are_those_of_the_draws(rounds, limits):
    agent = _knobs(start={"price": 35.0, "days": 7, "template": "b"}, limits=limits, epsilon=0.5, seed=1)
    for _ in range(rounds):
        decision = agent.decide([0.5])
        agent.learn([0.5], decision, decision.action["price"] / 100)
    draws = agent.decide_many([[0.5]] * 5_000)
    inverse = 1 / draws.densities
    prices = np.asarray(draws.actions["price"])
    for option in "abc":
        part = (np.asarray(draws.actions["template"]) == option) & (prices >= 50)
        assert abs((inverse * part).mean() - 30 * 20) < 6 * (inverse * part).std() / np.sqrt(5_000)
    again = agent.distributions([[0.5]] * 5_000).density(draws.actions)
    assert np.allclose(again, draws.densities)
    assert (draws.floors <= draws.densities * (1 + 1e-12)).all()


def test_a_copy_has_the_start():
    agent = _knobs(start={"days": 7})
    copy = pickle.loads(pickle.dumps(agent))
    assert copy.start == {"days": 7.0}
    assert copy.decide([0.5]) == agent.decide([0.5])


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (90.0, "start must be in [10, 80], got 90."),
        ("high", "start must be a number, got 'high'."),
        ({"price": 3}, "start must be in [10, 80], got a mapping."),
    ],
)
def test_a_start_must_be_an_action(start, message):
    with pytest.raises(ParameterError) as caught:
        Auto(actions=(10, 80), start=start)
    assert str(caught.value) == message
    assert caught.value.field == "start"


def test_a_start_must_name_knobs():
    with pytest.raises(ParameterError, match="start has an unknown knob 'prize'"):
        _knobs(start={"prize": 35.0})
