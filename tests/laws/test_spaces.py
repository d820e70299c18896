"""Laws that hold for every space of actions: one knob of each kind, and several."""

import copy
import json
import pickle

import numpy as np
import pytest

import manul
from manul import checks
from manul.actions.distributions import distributions_of
from manul.actions.space import ActionSpace
from manul.agents.auto import window_centres
from manul.agents.player_host import host_of
from tests.laws.spaces import CONTEXTS, SPACES, loss_of, narrower, test_every_kind_is_tried, trained, uniform_over

__all__ = ["test_every_kind_is_tried"]


@pytest.fixture(scope="module", params=SPACES)
def agent(request):
    return trained(SPACES[request.param])


def test_single_decisions_equal_batches_and_are_repeated_to_the_bit(agent):
    one, many, again = (manul.loads(manul.dumps(agent)) for _ in range(3))
    within = [None, narrower(agent.space)] * 20
    numbers = np.arange(host_of(agent).decisions, host_of(agent).decisions + 40)
    batch = list(many.decide_many(CONTEXTS, within))
    singles = [one.decide(context, each) for context, each in zip(CONTEXTS, within, strict=True)]
    repeated = [again.decide_again(int(n), c, w) for n, c, w in zip(numbers, CONTEXTS, within, strict=True)]
    assert [each[:2] for each in batch] == [each[:2] for each in singles] == [each[:2] for each in repeated]
    assert [each.floor for each in batch] == [each.floor for each in singles]


@pytest.mark.parametrize(
    "copied", [lambda a: manul.loads(manul.dumps(a)), lambda a: pickle.loads(pickle.dumps(a)), copy.deepcopy]
)
def test_copies_decide_alike_and_have_the_same_bytes(agent, copied):
    other = copied(agent)
    assert type(other) is type(agent)
    assert isinstance(other, manul.Auto)
    assert manul.dumps(other) == manul.dumps(agent)
    assert list(other.decide_many(CONTEXTS)) == list(copied(agent).decide_many(CONTEXTS))


def test_a_space_survives_json(agent):
    space = ActionSpace.from_description(json.loads(json.dumps(agent.space.describe())))
    assert space == agent.space
    assert ActionSpace(space.actions) == space


def test_own_densities_are_those_of_the_distribution(agent):
    within = narrower(agent.space)
    for context in CONTEXTS[:10]:
        for each in (None, within):
            decision = manul.loads(manul.dumps(agent)).decide(context, each)
            assert agent.distribution(context, each).density(decision.action) == pytest.approx(decision.density)
            assert agent.distributions(context[np.newaxis], [each]).density([decision.action])[0] == pytest.approx(
                decision.density
            )


def test_the_mean_of_uniform_over_own_density_is_one(agent):
    explorer = manul.Auto(actions=agent.space, epsilon=0.9, seed=3)
    contexts = np.tile(CONTEXTS, (25, 1))
    decisions = explorer.decide_many(contexts)
    explorer.learn_many(contexts, decisions, [loss_of(explorer.space, each.action) for each in decisions])
    ratios = uniform_over(explorer.space, explorer.decide_many(contexts))
    assert abs(ratios.mean() - 1) < 5 * ratios.std() / np.sqrt(len(ratios)) + 1e-9


def test_decisions_and_best_actions_stay_within(agent):
    within = narrower(agent.space)
    for context in CONTEXTS:
        for action in (agent.decide(context, within).action, agent.best(context, within)):
            assert all(agent.space.contains(within, agent.space.positions(action)))


def test_the_best_action_is_as_good_as_any_random_one_by_the_same_model(agent):
    rng = np.random.default_rng(5)
    highs = [knob.core[1] if knob.is_option else 1 for _, knob in agent.space.knobs]
    table = rng.random((256, len(highs))) * highs
    columns = agent.space.unwrap(agent.space.columns(np.where(np.array(highs) > 1, np.floor(table), table)))
    for context in CONTEXTS[:5]:
        best = agent.space.unwrap(agent.space.columns_of([agent.best(context)]))
        lowest = agent.predict_losses(np.tile(context, (256, 1)), columns).min()
        assert agent.predict_losses(context[np.newaxis], best)[0] <= lowest + 0.02


def test_reports_and_plots_exist(agent):
    report = agent.report(CONTEXTS[0])
    curves = report.losses if agent.space.is_named else {"": report.losses}
    assert {*curves} == {*agent.space.names}
    assert all(np.isfinite(curve).all() for curve in curves.values())
    assert agent.distribution(CONTEXTS[0]).plot() is not None


class DistributionOnly:
    """A policy as a user writes it."""

    def __init__(self, agent):
        self.space, self.distribution = agent.space, agent.distribution


@pytest.mark.parametrize("policy_of", [lambda agent: agent, DistributionOnly])
def test_distributions_of_many_contexts_are_those_of_each(agent, policy_of):
    within = [None, narrower(agent.space)] * 20
    actions = manul.loads(manul.dumps(agent)).decide_many(CONTEXTS, within).actions
    many = distributions_of(policy_of(agent), CONTEXTS, within)
    each = [agent.distribution(*row) for row in zip(CONTEXTS, within, strict=True)]
    for single in (each, many):
        pairs = zip(single, agent.space.each(actions, 40), strict=True)
        assert many.density(actions) == pytest.approx([one.density(action) for one, action in pairs], rel=1e-9)
    if len(agent.space.knobs) == 1:
        assert many.largest() == pytest.approx([one.largest_density() for one in each], rel=1e-9)
    if agent.space.is_number:
        moments = [(one.mean(), one.square()) for one in each]
        assert np.transpose(many.moments()) == pytest.approx(np.array(moments), rel=1e-9)


def test_distributions_raise_after_the_agent_has_learned(agent):
    learner = manul.loads(manul.dumps(agent))
    decisions = learner.decide_many(CONTEXTS)
    played = learner.distributions(CONTEXTS)
    assert played.density(decisions.actions) == pytest.approx(decisions.densities)
    learner.learn_many(CONTEXTS, decisions, np.full(40, 0.5))
    for ask in (lambda: played.density(decisions.actions), lambda: played[0]):
        with pytest.raises(manul.errors.InputError, match=r"has learned since this distribution was made"):
            ask()


def test_the_largest_density_is_for_one_knob(agent):
    if len(agent.space.knobs) == 1:
        assert (agent.distributions(CONTEXTS).largest() > 0).all()
    else:
        with pytest.raises(manul.errors.ParameterError, match=r"is for actions \(low, high\), not for .*\.$"):
            agent.distributions(CONTEXTS).largest()


def test_what_is_only_for_numbers_says_so(agent):
    for ask in (
        lambda: agent.distributions(CONTEXTS).moments(),
        lambda: window_centres(agent, CONTEXTS, 5.0),
        lambda: agent.plot(0, CONTEXTS),
    ):
        if agent.space.is_number:
            ask()
        else:
            with pytest.raises(manul.errors.ParameterError, match=r"is for actions \(low, high\), not for .*\.$"):
                ask()


def test_effects_of_the_features_exist_if_a_knob_has_numbers(agent):
    if any(not knob.is_option for _, knob in agent.space.knobs):
        assert manul.inspection.effects(agent, CONTEXTS).features
    else:
        with pytest.raises(manul.errors.ParameterError, match="effects needs a knob with numbers"):
            manul.inspection.effects(agent, CONTEXTS)


@pytest.mark.whole
@pytest.mark.parametrize("space", SPACES)
def test_agents_of_every_space_pass_the_checks(space):
    checks.check_agent(lambda seed: manul.Auto(actions=SPACES[space], epsilon=0.5, seed=seed))


def test_bad_actions_and_ranges_are_refused_in_one_sentence(agent):
    decision = agent.decide(CONTEXTS[0])
    with pytest.raises(manul.ManulError, match=r"\.$"):
        agent.learn(CONTEXTS[0], decision._replace(action={"nothing": 1}), 0.5)
    with pytest.raises(manul.ManulError, match=r"\.$"):
        agent.decide(CONTEXTS[0], {"nothing": (0, 1)})
