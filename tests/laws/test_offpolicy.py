"""Laws of off-policy evaluation for every space of actions: one knob of each kind, and several."""

import numpy as np
import pytest

import manul
from tests.laws.spaces import SPACES, loss_of, narrower, trained

CONTEXTS = np.random.default_rng(2).random((1500, 2)).astype(np.float32)


def log_of(agent, *, narrow):
    """A log of the agent's decisions, half of which are narrowed if `narrow`."""
    space = agent.space
    within = [None, narrower(space)] * (len(CONTEXTS) // 2) if narrow and (space.is_named or space.is_number) else None
    decisions = agent.decide_many(CONTEXTS, within)
    columns = [decisions.actions, decisions.densities]
    losses = np.array([loss_of(space, decision.action) for decision in decisions])
    if space.is_number:
        ends = decisions.lows, decisions.highs
        return manul.Log(CONTEXTS, *columns, losses, *ends, floors=decisions.floors, action_range=space.ends)
    rest = {"densities_by_knob": decisions.densities_by_knob, "floors": decisions.floors, "within": within}
    return manul.Log(CONTEXTS, *columns, losses, knobs=space, **rest)


@pytest.fixture(scope="module", params=SPACES)
def agent(request):
    return trained(SPACES[request.param])


@pytest.mark.parametrize("narrow", [False, True])
def test_an_agent_has_the_densities_and_the_loss_of_its_own_log(agent, narrow):
    log = log_of(agent, narrow=narrow)
    estimate = manul.evaluate(agent, log, "snips")
    assert estimate.mean_weight == pytest.approx(1.0, rel=1e-9)
    assert estimate.largest_weight == pytest.approx(1.0, rel=1e-9)
    assert estimate.value == pytest.approx(log.losses.mean(), rel=1e-9)


@pytest.mark.parametrize("narrow", [False, True])
def test_the_doctor_finds_no_error_in_the_log_of_an_agent(agent, narrow):
    findings = manul.offpolicy.doctor(log_of(agent, narrow=narrow))
    assert [str(finding) for finding in findings if finding.severity == "error"] == []


def test_the_doctor_finds_densities_that_are_too_small(agent):
    log = log_of(agent, narrow=False)
    by_knob = log.densities_by_knob and {name: column / 4 for name, column in log.densities_by_knob.items()}
    space = {"action_range": log.action_range} if log.knobs is None else {"knobs": log.knobs}
    small = 4.0 ** -len(agent.space.knobs) * log.densities
    changed = manul.Log(CONTEXTS, log.actions, small, log.losses, densities_by_knob=by_knob, **space)
    assert "wrong densities" in {finding.title for finding in manul.offpolicy.doctor(changed)}


@pytest.mark.parametrize("kind", [name for name in SPACES if name not in ("several", "limited")])
def test_the_weights_of_a_function_average_one(kind):
    agent = manul.Auto(actions=SPACES[kind], epsilon=1.0)
    action = agent.space.action([1.0 if agent.space.knobs[0][1].is_option else 0.3])
    action = agent.best(CONTEXTS[0]) if kind == "steps" else action
    estimate = manul.evaluate(lambda _: action, log_of(agent, narrow=False), "snips", "bernstein")
    assert estimate.mean_weight == pytest.approx(1.0, abs=0.3)
    assert estimate.low <= estimate.value <= estimate.high
