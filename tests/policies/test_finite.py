"""A finite class: exact sums, and one sentence for functions that are no policies."""

import re

import numpy as np
import pytest

import manul
from manul import checks
from manul.agents.player_host import host_of
from manul.errors import FileError, InputError, ParameterError
from manul.policies import Finite


def make_agent(*functions, **settings):
    return manul.agents.SmoothedGreedy(policies=Finite(functions), **{"bandwidth": 1 / 8, **settings})


@pytest.mark.parametrize(
    "check",
    [each for each in checks.CHECKS if each.__name__ != "saved_agents_resume_identically"],
    ids=lambda c: c.__name__,
)
@pytest.mark.parametrize("agent", [manul.agents.SmoothedGreedy, manul.agents.ParetoGreedy])
def test_agents_with_functions_pass(agent, check):
    setting = {"bandwidth": 1 / 8} if agent is manul.agents.SmoothedGreedy else {"bandwidths": (1 / 8, 1 / 2)}
    rules = [lambda _: 0.2, lambda context: min(max(float(sum(context)), 0.0), 1.0)]
    check(lambda seed: agent(policies=Finite(rules), seed=seed, **setting))


def test_an_empty_class_is_refused():
    with pytest.raises(ParameterError, match=re.escape("policies must have at least one function, got none")):
        Finite([])


def test_what_is_no_function_is_refused():
    with pytest.raises(ParameterError, match=re.escape("policies must be functions of a context, got 0.5")):
        Finite([0.5])


@pytest.mark.parametrize("returned", [1.5, -0.1, float("nan"), "high", None])
def test_deciding_with_a_policy_outside_the_range_is_refused(returned):
    agent = make_agent(lambda _: returned)
    with pytest.raises(InputError, match=r"policy 0 must return an action in \[0, 1\], got .*"):
        agent.decide([1.0])
    assert host_of(agent).decisions == 0


@pytest.mark.parametrize("agent", [manul.agents.SmoothedGreedy, manul.agents.ParetoGreedy])
def test_learning_with_a_policy_outside_the_range_changes_nothing(agent):
    setting = {"bandwidth": 1 / 8} if agent is manul.agents.SmoothedGreedy else {"bandwidths": (1 / 8, 1 / 2)}
    made = agent(policies=Finite([lambda _: 0.5, lambda x: float(x[0])]), **setting)
    decisions = made.decide_many([[0.1], [0.2], [7.0]])
    before = host_of(made).state()
    with pytest.raises(InputError, match=r"policy 1 must return an action in \[0, 1\], got 7\.0"):
        made.learn_many([[0.1], [0.2], [7.0]], decisions, [0.5, 0.5, 0.5])
    assert all(np.array_equal(host_of(made).state()[name], array) for name, array in before.items())


def test_functions_are_not_saved(tmp_path):
    with pytest.raises(FileError, match=re.escape("cannot save an agent with policies=Finite([")):
        make_agent(lambda _: 0.5).save(tmp_path / "agent.manul")
    assert not list(tmp_path.iterdir())


def test_functions_run_once_per_context_for_all_bandwidths():
    calls = []
    agent = manul.agents.ParetoGreedy(policies=Finite([lambda x: calls.append(x) or 0.5, lambda _: 0.2]))
    agent.learn([1.0], manul.Decision(0.5, 1.0), 0.5)
    assert len(calls) == 1


def test_an_action_outside_a_narrowed_range_moves_to_its_end():
    agent = make_agent(lambda _: 0.9, epsilon=0.0)
    assert agent.distribution([1.0], within=(0.0, 0.5)).edges.tolist() == [0.0, 0.375, 0.5]
