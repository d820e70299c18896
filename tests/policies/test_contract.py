"""A class of one's own: what it must have, what is checked, and how it is saved."""

import dataclasses
import re

import numpy as np
import pytest

import manul
from manul import checks
from manul.agents.player_host import host_of
from manul.errors import FileError, InputError, ParameterError
from manul.policies import Constant, Linear, policy_class, saveable


class SlopeLearner:
    def __init__(self, returned=None):
        self.mean, self.returned = np.zeros(1), returned

    def action(self, context, within):
        return float(self.mean[0]) if self.returned is None else self.returned

    def learn(self, context, decision, loss):
        self.mean += (decision.action - self.mean) * 0.1 * (1 - loss)

    def state(self):
        return {"mean": self.mean.copy()}

    def restore(self, arrays):
        self.mean = arrays["mean"].copy()


@dataclasses.dataclass(frozen=True)
class Middle:
    returned: float | None = None

    def start(self, width, actions, bandwidth):
        return SlopeLearner(self.returned)


@pytest.fixture
def registered():
    saveable(Middle)
    yield
    policy_class._SAVEABLE.pop("Middle", None)


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("check", checks.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("agent", [manul.agents.SmoothedGreedy, manul.agents.ParetoGreedy])
def test_a_class_of_ones_own_passes(agent, check):
    setting = {"bandwidth": 1 / 8} if agent is manul.agents.SmoothedGreedy else {"bandwidths": (1 / 8, 1 / 4)}
    check(lambda seed: agent(policies=Middle(), seed=seed, **setting))


@pytest.mark.parametrize("returned", [1.5, float("nan"), float("inf")])
def test_an_action_outside_the_range_is_refused(returned):
    agent = manul.agents.SmoothedGreedy(policies=Middle(returned), bandwidth=1 / 8)
    with pytest.raises(InputError, match=r"policy must return an action in \[0, 1\], got"):
        agent.decide_many([[1.0], [2.0]])
    assert host_of(agent).decisions == 0


def test_an_unregistered_class_is_not_saved(tmp_path):
    with pytest.raises(FileError, match=re.escape("cannot save an agent with policies=Middle(")):
        manul.agents.SmoothedGreedy(policies=Middle(), bandwidth=1 / 8).save(tmp_path / "agent.manul")


@pytest.mark.usefixtures("registered")
def test_a_class_that_is_gone_is_named(tmp_path):
    manul.agents.SmoothedGreedy(policies=Middle(), bandwidth=1 / 8).save(tmp_path / "agent.manul")
    policy_class._SAVEABLE.pop("Middle")
    with pytest.raises(FileError, match=r"unknown policy class Middle\. Register it"):
        manul.load(tmp_path / "agent.manul")


def test_only_dataclasses_are_saveable():
    with pytest.raises(ParameterError, match="a saveable class must be a dataclass"):
        saveable(SlopeLearner)


@pytest.mark.parametrize("policies", [[], [lambda _: 0.5], None, Linear, Constant])
def test_what_is_no_class_is_refused(policies):
    with pytest.raises(ParameterError, match=re.escape("policies must have a method start(width, actions, bandwidth)")):
        manul.agents.SmoothedGreedy(policies=policies, bandwidth=1 / 8)


def test_a_trained_tree_refuses_texts_because_each_batch_would_number_them_anew():
    log = manul.simulate(manul.Cats(leaves=8, bandwidth=1 / 8), manul.worlds.linear(rounds=100, width=2)).log
    policy = manul.policies.train_tree(log, leaves=8, bandwidth=1 / 8)
    with pytest.raises(InputError, match="must be numbers like the first ones, got 'Oslo' in column 'city'"):
        policy.actions_many({"city": ["Oslo", "Rome"]})
