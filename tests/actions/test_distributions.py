"""The distributions of many rows, beyond the laws of every space: learners in Python, maps, windows and rollouts."""

import numpy as np
import pytest

import manul
from manul.actions.distributions import Windows, distributions_of
from manul.errors import InputError
from manul.logs.rows import Rows
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog

CONTEXTS = np.random.default_rng(1).random((30, 2)).astype(np.float32)
ACTIONS = np.random.default_rng(2).random(30)


def learn(agent):
    decisions = agent.decide_many(CONTEXTS)
    agent.learn_many(CONTEXTS, decisions, np.abs(decisions.actions - 0.3))
    return agent


def test_those_of_a_learner_in_python_stay_as_they_were():
    agent = learn(manul.agents.ParetoGreedy(policies=manul.policies.Linear(), bandwidths=(0.1, 0.2), seed=3))
    played = agent.distributions(CONTEXTS)
    before = played.density(ACTIONS)
    learn(agent)
    assert played.density(ACTIONS).tolist() == before.tolist()


def test_an_agent_behind_a_map_has_the_points_of_its_distribution():
    agent = manul.Mapped(agent=manul.Auto(nearby=0.5, epsilon=0.2, seed=3), features=lambda context: context)
    for _ in range(5):
        learn(agent)
    rows = Rows.of(manul.Log(CONTEXTS, ACTIONS, np.ones(30), ACTIONS))
    for mine, inside in zip(PolicyOnLog(agent).points(rows), PolicyOnLog(agent.agent).points(rows), strict=True):
        assert mine.tolist() == inside.tolist()


@pytest.mark.parametrize("epsilon", [0.0, 0.25])
def test_windows_answer_for_all_rows_as_for_each(epsilon):
    ends = np.column_stack([ACTIONS / 2, ACTIONS / 2 + 0.5])
    windows = Windows.around(ACTIONS, 0.2, ends, epsilon)
    for actions in (ACTIONS, ends[:, 0], windows.points()[0][:, 3]):
        single = [each.density(action) for each, action in zip(windows, actions, strict=True)]
        assert windows.density(actions) == pytest.approx(single)
    assert windows.largest() == pytest.approx([each.largest_density() for each in windows])
    assert windows.moments()[1] == pytest.approx([each.square() for each in windows])
    points, shares = windows.points()
    assert (points * shares).sum(axis=1) == pytest.approx(windows.moments()[0])


def test_those_of_a_rollout_mix_both_arms_and_raise_after_it_has_learned():
    rollout = manul.Rollout(learn(manul.Auto(seed=3)), baseline=0.5, steps=(0.5,), budget=1e9)
    played = rollout.distributions(CONTEXTS)
    each = [rollout.distribution(context) for context in CONTEXTS]
    assert played.density(ACTIONS) == pytest.approx([one.density(a) for one, a in zip(each, ACTIONS, strict=True)])
    assert played.moments()[1] == pytest.approx([one.square() for one in each])
    assert played.largest() == pytest.approx([one.largest_density() for one in each])
    decision = rollout.decide(CONTEXTS[0])
    rollout.learn(CONTEXTS[0], decision, 0.5)
    with pytest.raises(InputError, match="has learned since"):
        played.density(ACTIONS)


def test_a_policy_of_a_user_needs_a_distribution_of_a_context_only():
    class Halves:
        def distribution(self, context):
            return manul.Distribution.uniform(0.0, 0.5 if context[0] < 0.5 else 1.0)

    played = distributions_of(Halves(), CONTEXTS)
    assert set(played.largest()) == {1.0, 2.0}
    assert (played.moments()[0] == 0.5 / played.largest()).all()


def test_the_first_contexts_of_an_agent_may_be_rejected():
    agent = manul.Auto()
    with pytest.raises(InputError):
        agent.distributions([{"age": object()}]).density([0.5])
    assert agent.schema.width is None
    with pytest.raises(InputError, match="actions must have one number for each of the 30 contexts"):
        agent.distributions(CONTEXTS).density([0.5])
