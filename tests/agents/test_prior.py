"""Agents that start from what another one knows."""

import pickle
from functools import cache

import numpy as np
import pytest

import manul
from manul import Auto, Log
from manul.agents.base import fresh_copy
from manul.errors import InputError, ParameterError

RANGE = (0.0, 60.0)


def _reward(context, price, rng, *, dearer=1.0):
    limit = 20 * dearer * np.exp(0.2 * context[0])
    return price * (rng.random() < 1 / (1 + np.exp((price - limit) / (0.1 * limit))))


def _play(agent, rounds, *, seed=1, named=False, dearer=1.0):
    rng = np.random.default_rng(seed)
    rewards = []
    for _ in range(rounds):
        row = rng.normal(size=2)
        context = {"income": row[0], "city": "Bath" if row[1] > 0 else "Oslo"} if named else row
        decision = agent.decide(context)
        rewards.append(_reward(row, decision.action, rng, dearer=dearer))
        agent.learn(context, decision, reward=rewards[-1])
    return rewards


@cache
def _saved(rounds, *, named=False, dearer=1.0):
    agent = Auto(actions=RANGE, rewards="auto", seed=3)
    _play(agent, rounds, seed=5, named=named, dearer=dearer)
    return pickle.dumps(agent)


def _sister(rounds=1800, **kinds):
    return pickle.loads(_saved(rounds, **kinds))


def _new(prior, **settings):
    return Auto(actions=RANGE, rewards="auto", prior=prior, **settings)


@pytest.mark.parametrize("rounds", [20, 400, 1800])
@pytest.mark.parametrize("named", [False, True])
def test_before_the_first_round_the_prior_predicts(rounds, named):
    sister = _sister(rounds, named=named)
    context = {"income": 0.4, "city": "Bath"} if named else [0.4, 0.2]
    agent = _new(sister)
    assert agent.report().prior == 1
    contexts = [context] * 2
    actions = [11.25, 18.75]  # nodes of the curve that the prior is read at
    assert np.allclose(agent.predict_losses(contexts, actions), sister.predict_losses(contexts, actions), rtol=1e-3)


def test_a_prior_of_the_same_market_saves_the_first_rounds():
    cold = np.mean([np.mean(_play(Auto(actions=RANGE, rewards="auto", seed=seed), 60, seed=seed)) for seed in range(4)])
    warm = np.mean([np.mean(_play(_new(_sister(), seed=seed), 60, seed=seed)) for seed in range(4)])
    assert warm > 1.1 * cold


def test_a_wrong_prior_is_dropped():
    agent = _new(_sister(dearer=2.0))
    _play(agent, 60)
    assert (agent.report().prior or 0) < 0.1


def test_a_prior_is_freed_after_a_while():
    agent = _new(_sister())
    with_prior = agent.nbytes
    _play(agent, 1536)
    assert agent.report().prior is None
    assert agent.nbytes < with_prior == pickle.loads(pickle.dumps(_new(_sister()))).nbytes


@pytest.mark.parametrize("named", [False, True])
def test_copies_decide_and_learn_alike(named):
    agent = _new(_sister(400, named=named), seed=2)
    for rounds in (0, 1, 5, 4, 30, 400):
        _play(agent, rounds, seed=rounds, named=named)
        copy = pickle.loads(pickle.dumps(agent))
        assert copy.report().prior == agent.report().prior
        assert _play(copy, 3, named=named) == _play(pickle.loads(pickle.dumps(agent)), 3, named=named)


def test_a_copy_goes_on_as_the_agent_does():
    agent = _new(_sister(), seed=2)
    _play(agent, 50)
    copy = pickle.loads(pickle.dumps(agent))
    assert _play(copy, 1600, seed=9) == _play(agent, 1600, seed=9)


def test_batches_learn_as_single_rounds_do():
    one, many = _new(_sister(), seed=2), _new(_sister(), seed=2)
    rng = np.random.default_rng(0)
    contexts = rng.normal(size=(40, 2))
    decisions = one.decide_many(contexts)
    for context, action, density in zip(contexts, decisions.actions, decisions.densities, strict=True):
        one.learn(context, manul.Decision(action, density, None, None), reward=float(action))
    many.learn_many(contexts, decisions, rewards=decisions.actions)
    assert one.distribution([0.1, 0.2]).edges.tolist() == many.distribution([0.1, 0.2]).edges.tolist()


@pytest.mark.whole
@pytest.mark.parametrize("rounds", [0, 4, 12, 100])
def test_densities_with_a_prior_are_those_of_the_draws(rounds):
    agent = _new(_sister(), epsilon=0.2, seed=2)
    _play(agent, rounds)
    contexts = np.tile([0.3, 0.2], (20_000, 1))
    draws = agent.decide_many(contexts)
    assert np.allclose(draws.densities, agent.distributions(contexts).density(draws.actions))
    assert np.allclose(draws.densities[:9], [agent.distribution([0.3, 0.2]).density(a) for a in draws.actions[:9]])
    assert (draws.floors <= draws.densities).all()
    lengths = np.histogram(draws.actions, np.linspace(*RANGE, 7), weights=1 / draws.densities)[0] / 20_000
    assert np.allclose(lengths, 10, atol=6 * np.sqrt((1 / draws.densities**2).mean() / 20_000))


def test_a_file_is_a_prior(tmp_path):
    _sister().save(tmp_path / "oslo.manul")
    by_path, by_name = _new(tmp_path / "oslo.manul"), _new(str(tmp_path / "oslo.manul"))
    (tmp_path / "oslo.manul").unlink()
    assert _play(by_path, 30) == _play(by_name, 30) == _play(_new(_sister()), 30)


@pytest.mark.parametrize("named", [False, True])
def test_a_log_is_a_prior(named):
    rng = np.random.default_rng(0)
    rows, prices = rng.normal(size=(600, 2)), rng.uniform(*RANGE, 600)
    rewards = np.array([_reward(*each, rng) for each in zip(rows, prices, strict=True)])
    contexts = {"income": rows[:, 0], "age": rows[:, 1]} if named else rows.astype(np.float32)
    log = Log(contexts, prices, np.full(600, 1 / 60), -rewards, rewards=True, action_range=RANGE)
    agent = _new(log)
    context = {"income": 0.4, "age": 0.2} if named else [0.4, 0.2]
    assert 12 < agent.best(context) < 25
    assert agent.prior.rounds == 600


def test_a_fresh_copy_has_the_prior():
    agent = _new(_sister(), seed=2)
    copy = fresh_copy(agent)
    _play(agent, 30)
    assert _play(copy, 30) == _play(_new(_sister(), seed=2), 30)
    assert fresh_copy(pickle.loads(pickle.dumps(agent))).best([0.4, 0.2]) == _new(_sister()).best([0.4, 0.2])


def test_a_prior_may_have_had_a_prior_and_a_start():
    sister = _new(_sister(), start=20.0)
    _play(sister, 100)
    assert _new(sister).report().prior == 1


def test_contexts_are_like_those_of_the_prior():
    with pytest.raises(InputError, match="context must be a row of 2 numbers like the first one, got a mapping"):
        _new(_sister()).decide({"income": 0.3})


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (
            lambda: Auto(actions=RANGE, rewards="auto"),
            "prior must have learned from decisions, got an agent that has not.",
        ),
        (lambda: 3, "prior must be an Auto with the same actions, the path of its file or a log, got 3."),
        (
            lambda: manul.Cats(leaves=8, bandwidth=0.1),
            "prior must be an Auto with the same actions, the path of its file or a log, got Cats.",
        ),
        (
            lambda: Auto(actions=(0, 50), rewards="auto"),
            "prior must have the actions [0.0, 60.0] of the agent, got [0.0, 50.0].",
        ),
        (
            lambda: Auto(actions=RANGE, losses="auto"),
            "prior must learn from the same outcome as the agent, rewards auto, got losses auto.",
        ),
    ],
)
def test_a_prior_must_fit(prior, message):
    with pytest.raises(ParameterError) as caught:
        _new(prior())
    assert str(caught.value) == message
    assert caught.value.field == "prior"


def test_a_prior_is_for_a_range_of_numbers():
    with pytest.raises(ParameterError, match="prior is for actions"):
        Auto(actions={"price": RANGE}, rewards="auto", prior=_sister())
