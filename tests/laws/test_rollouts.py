"""Laws of rollouts, for every space of actions: densities of the mixture, batches, copies, narrower ranges, checks."""

import copy
import pickle

import numpy as np
import pytest

import manul
from manul import checks
from manul.actions.space import ActionSpace
from tests.laws.spaces import CONTEXTS, SPACES, baseline_of, loss_of, narrower, trained, uniform_over

STEPS = {"steps": (0.6, 0.9), "budget": 1e9, "seed": 3}


def make(actions, baseline=None, **settings):
    agent = trained(actions, **{"epsilon": 0.9, **settings.pop("agent", {})})
    return manul.Rollout(
        agent, baseline=baseline_of(agent.space) if baseline is None else baseline, **STEPS, **settings
    )


@pytest.fixture(scope="module", params=SPACES)
def rollout(request):
    made = make(SPACES[request.param])
    decisions = made.decide_many(CONTEXTS)
    made.learn_many(CONTEXTS, decisions, [loss_of(made.space, each.action) for each in decisions])
    return made


def copied(rollout):
    return manul.loads(manul.dumps(rollout))


@pytest.mark.whole
@pytest.mark.parametrize("baseline", ["action", "caller", "policy"])
@pytest.mark.parametrize("space", SPACES)
def test_the_mean_of_uniform_over_own_density_is_one(space, baseline):
    agent = manul.Auto(actions=SPACES[space], epsilon=0.9, seed=5)
    own = baseline_of(agent.space)
    given = {"action": own, "caller": "caller", "policy": manul.Auto(actions=SPACES[space], seed=9)}[baseline]
    drawn = manul.Rollout(agent, baseline=given, **STEPS)
    contexts = np.tile(CONTEXTS, (30, 1))
    decisions = drawn.decide_many(contexts, actions=[own] * len(contexts) if baseline == "caller" else None)
    ratios = uniform_over(drawn.space, decisions)
    # A single number counts as spread over 1/1024 of its range, in which the density of the learner may have an edge.
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / np.sqrt(len(ratios)) + 0.01


def test_single_decisions_equal_batches(rollout):
    one, many = copied(rollout), copied(rollout)
    within = [narrower(rollout.space)] * len(CONTEXTS)
    for ranges in (None, within):
        singles = [one.decide(row, None if ranges is None else ranges[0]) for row in CONTEXTS]
        assert list(many.decide_many(CONTEXTS, ranges)) == singles
    assert manul.dumps(one) == manul.dumps(many)


def test_own_densities_are_those_of_the_mixture(rollout):
    drawn = copied(rollout)
    for context in CONTEXTS[:10]:
        for within in (None, narrower(rollout.space)):
            expected = drawn.distribution(context, within)
            looked_up = copied(drawn)
            decision = drawn.decide(context, within)
            assert decision.density == pytest.approx(expected.density(decision.action))
            ranges = None if within is None else [within]
            again = looked_up.distributions(context[np.newaxis], ranges).density([decision.action])[0]
            assert again == pytest.approx(decision.density)
            assert 0 < decision.floor <= decision.density
            assert expected.integral() == pytest.approx(1)


def test_the_baseline_plays_its_action_and_both_arms_stay_within(rollout):
    drawn, within = copied(rollout), narrower(rollout.space)
    decisions = [drawn.decide(context, within) for context in CONTEXTS]
    assert {each.arm for each in decisions} == {"learner", "baseline"}
    played = [each.action for each in decisions if each.arm == "baseline"]
    assert all(action == baseline_of(rollout.space) for action in played)
    for decision in decisions:
        assert all(rollout.space.contains(within, rollout.space.positions(decision.action)))


@pytest.mark.parametrize("copied", [copied, lambda each: pickle.loads(pickle.dumps(each)), copy.deepcopy])
def test_copies_decide_alike_and_have_the_same_bytes(rollout, copied):
    other = copied(rollout)
    assert manul.dumps(other) == manul.dumps(rollout)
    assert list(other.decide_many(CONTEXTS)) == list(copied(rollout).decide_many(CONTEXTS))
    assert repr(other) == repr(rollout)


@pytest.mark.parametrize("kind", ["losses", "rewards"])
@pytest.mark.parametrize("space", SPACES)
def test_an_outcome_range_judges_agents_without_a_range(space, kind):
    agent = manul.Auto(actions=SPACES[space], **{kind: "auto"})
    drawn = manul.Rollout(agent, baseline=baseline_of(agent.space), outcome_range=(0, 10), **STEPS)
    for _ in range(3):
        decisions = drawn.decide_many(CONTEXTS)
        values = np.where(decisions.arms == "learner", 30.0, 5.0)
        drawn.learn_many(CONTEXTS, decisions, **{kind: values})
    assert drawn.evidence.beyond == sum(drawn.progress.left_out.judged[:1])
    assert f"{kind.capitalize()} beyond the range, which count as its ends: {drawn.evidence.beyond}." in str(
        drawn.evidence
    )
    assert manul.dumps(copied(drawn)) == manul.dumps(drawn)


@pytest.mark.whole
@pytest.mark.parametrize("space", SPACES)
def test_rollouts_of_every_space_pass_the_checks(space):
    # The highest action has the largest loss, so that the learner keeps its traffic.
    highest = {name: knob.sweep(4)[-1] for name, knob in ActionSpace(SPACES[space]).knobs}
    baseline = ActionSpace(SPACES[space]).unwrap(highest)
    checks.check_agent(lambda seed: make(SPACES[space], baseline, agent={"rounds": 0, "seed": seed}))


def test_actions_that_a_space_does_not_have_are_refused_in_one_sentence(rollout):
    for wrong in ({"nothing": 1}, object(), None):
        with pytest.raises(manul.ManulError, match=r"baseline must be an action, a policy or 'caller', got .*\.$"):
            manul.Rollout(rollout.agent, baseline=wrong)
    caller = manul.Rollout(rollout.agent, baseline="caller")
    for wrong in ({"nothing": 1}, object(), None):
        with pytest.raises(manul.ManulError, match="action must be what you would choose, since the baseline is the"):
            caller.decide(CONTEXTS[0], action=wrong)


def test_a_baseline_that_breaks_the_limits_in_a_narrower_range_is_named():
    agent = manul.Auto(actions={"price": (10, 50), "discount": (0, 0.5)}, limits=["discount <= 1 - 9 / price"])
    rollout = manul.Rollout(agent, baseline={"price": 20, "discount": 0.1})
    with pytest.raises(
        manul.errors.InputError, match=r"^baseline \{.*\}, which is \{.*\} within \{.*\}: action must keep"
    ):
        rollout.decide(CONTEXTS[0], {"price": (10, 11), "discount": (0.3, 0.5)})
