"""A single knob of any kind, with a name, is judged like a single number."""

import dataclasses

import numpy as np
import pytest

import manul
from manul.errors import ParameterError
from manul.offpolicy import doctor

ROWS = 1500
KINDS = {"span": (0.0, 1.0), "steps": manul.Stepped(0, 1, 0.25), "choice": manul.Choice([0.0, 0.25, 0.5, 0.75, 1.0])}
BOUNDED = ("clopper-pearson", "bernstein")


def cost(value):
    return (value - 0.25) ** 2


@pytest.fixture(scope="module", params=KINDS)
def logged(request):
    """A log of an agent with one knob, and the true loss of its policy 'always 0.75' with the default window."""
    agent = manul.Auto(actions={"k": KINDS[request.param]}, epsilon=0.5, seed=3)
    rng = np.random.default_rng(0)
    contexts = rng.random((ROWS, 2), np.float32)
    decisions = [agent.decide(context) for context in contexts[:100]]
    for context, decision in zip(contexts[:100], decisions, strict=True):
        agent.learn(context, decision, cost(decision.action["k"]))
    batch = agent.decide_many(contexts)
    losses = cost(batch.actions["k"].astype(float))
    columns = {"densities_by_knob": batch.densities_by_knob, "floors": batch.floors, "knobs": agent.space}
    truth = cost(0.75) + (1 / 16) ** 2 / 3 if request.param == "span" else cost(0.75)
    return manul.Log(contexts, batch.actions, batch.densities, losses, **columns), truth


@pytest.mark.parametrize("interval", BOUNDED)
def test_intervals_that_need_a_bound_have_one_and_contain_the_truth(logged, interval):
    log, truth = logged
    estimate = manul.evaluate(lambda _: {"k": 0.75}, log, interval=interval)
    assert (estimate.estimator, estimate.interval) == ("snips", interval)
    assert 0 < estimate.low < truth < estimate.high < 1
    assert manul.evaluate(manul.Auto(actions=log.knobs.actions), log, "ips", interval).usable


@pytest.mark.parametrize("interval", BOUNDED)
def test_several_knobs_have_no_bound_and_the_error_says_so(interval):
    world = manul.worlds.several.templates(rounds=100)
    agent = manul.Auto(actions=world.actions)
    log = manul.simulate(agent, world).log
    with pytest.raises(
        ParameterError, match=f"{interval} needs an upper bound .* With several knobs, the column floor"
    ):
        manul.evaluate(agent, log, "snips", interval)
    assert manul.evaluate(agent, log, "snips", interval, largest_weight=1e9).interval == interval


@pytest.mark.parametrize("kind", ["steps", "choice"])
def test_a_knob_without_a_name_is_judged_like_one_with(kind):
    rng = np.random.default_rng(0)
    values, losses = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], 400), rng.random(400)
    columns = rng.random((400, 2), np.float32), np.full(400, 0.2), losses
    bare = manul.Log(columns[0], values, *columns[1:], knobs=KINDS[kind], floors=columns[1])
    named = manul.Log(columns[0], {"k": values}, *columns[1:], knobs={"k": KINDS[kind]}, floors=columns[1])
    one, other = manul.evaluate(lambda _: 0.5, bare), manul.evaluate(lambda _: {"k": 0.5}, named)
    assert str(one) == str(other)
    assert doctor(bare) == doctor(named) == []
    assert np.array_equal(bare.actions, values)
    assert str(manul.optimize(bare)) == str(manul.optimize(named))


@pytest.fixture(scope="module")
def both():
    """The same rows with an action that is a number, and one that is a knob with a name."""
    agent = manul.Auto(epsilon=0.3, seed=1)
    log = manul.simulate(agent, manul.worlds.linear(rounds=ROWS, width=2)).log
    rest = {"floors": log.floors}
    columns = log.contexts, log.densities, log.losses
    named = manul.Log(columns[0], {"k": log.actions}, *columns[1:], knobs={"k": (0.0, 1.0)}, **rest)
    return manul.Log(columns[0], log.actions, *columns[1:], action_range=(0.0, 1.0), **rest), named


@pytest.mark.parametrize("interval", ["empirical-likelihood", "clopper-pearson", "bernstein", "normal"])
def test_a_name_does_not_change_an_estimate(both, interval):
    number, named = both
    one = manul.evaluate(lambda _: 0.4, number, "snips", interval, bandwidth=1 / 16)
    other = manul.evaluate(lambda _: {"k": 0.4}, named, "snips", interval)
    for name in ("value", "low", "high", "effective_size", "mean_weight"):
        assert dataclasses.asdict(one)[name] == pytest.approx(dataclasses.asdict(other)[name], rel=1e-9), name


@pytest.mark.parametrize("change", ["nothing", "twice the density", "half of the range", "the action in the context"])
def test_the_doctor_finds_the_same_in_a_knob_with_a_name(both, change):
    findings = [[str(each).replace("Knob k: ", "") for each in doctor(changed(log, change))] for log in both]
    assert findings[0] == findings[1]
    assert findings[0] or change == "nothing"


def changed(log, change):
    actions = log.actions if log.knobs is None else log.actions["k"]
    contexts, densities, rows = log.contexts, log.densities, np.arange(len(log))
    densities = 2 * densities if change == "twice the density" else densities
    rows = np.flatnonzero(actions < 0.5) if change == "half of the range" else rows
    contexts = np.column_stack([contexts, actions]).astype(np.float32) if change.endswith("context") else contexts
    declared = {"action_range": (0.0, 1.0)} if log.knobs is None else {"knobs": log.knobs}
    made = log.actions if log.knobs is None else {"k": actions}
    return manul.Log(contexts, made, densities, log.losses, floors=log.floors, **declared).rows(rows)
