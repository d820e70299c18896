"""The settings of SmoothedGreedy and ParetoGreedy."""

import re

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.errors import FileError, ParameterError
from manul.policies import Constant, Linear, theory
from manul.utils import model_files


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"bandwidths": ()}, "bandwidths must be 1 to 10000 numbers, got 0."),
        ({"bandwidths": 0.5}, "bandwidths must be 1 to 10000 numbers, got 0.5."),
        (
            {"bandwidths": theory.BandwidthGrid(horizon=1000)},
            "bandwidths must be 1 to 10000 numbers, got 3998001.",
        ),
        (
            {"bandwidths": (0.1, 0.0)},
            "bandwidths must be above 0 and at most the length of the range of actions, 1, got 0.0.",
        ),
        (
            {"bandwidths": (0.1, float("nan"))},
            "bandwidths must be above 0 and at most the length of the range of actions, 1, got nan.",
        ),
        (
            {"bandwidths": "ab"},
            "bandwidths must be above 0 and at most the length of the range of actions, 1, got 'a'.",
        ),
        ({"epsilon": 0}, "epsilon must be in (0, 1], got 0."),
        ({"epsilon": 0, "horizon": 10}, "epsilon must be in (0, 1], got 0."),
        ({"horizon": 0}, "horizon must be an integer of at least 1, got 0."),
        ({"horizon": "ten"}, "horizon must be an integer of at least 1, got ten."),
        ({"constant": -1}, "constant must be in [0, inf), got -1."),
        ({"policies": Linear(), "horizon": 10}, "log_class_size is required with a horizon"),
    ],
)
def test_setting_is_refused(setting, sentence):
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        manul.agents.ParetoGreedy(**{"policies": Constant(), **setting})


def test_the_default_bandwidths_are_geometric():
    agent = manul.agents.ParetoGreedy(policies=Linear(), actions=(0.0, 32.0))
    assert agent.bandwidths == (16.0, 8.0, 4.0, 2.0, 1.0, 0.5, 0.25)


def test_the_papers_grid_is_in_shares_of_the_range():
    agent = manul.agents.ParetoGreedy(
        policies=Linear(), actions=(0.0, 10.0), bandwidths=theory.BandwidthGrid(horizon=2)
    )
    assert (agent.bandwidths[0], agent.bandwidths[-1], len(agent.bandwidths)) == (2.5, 10.0, 13)


def test_learners_without_an_estimate_are_paid_before_they_learn(rng):
    agent = manul.agents.ParetoGreedy(policies=Linear(), bandwidths=(1 / 4, 1 / 16), epsilon=0.2)
    alone = [manul.agents.SmoothedGreedy(policies=Linear(), bandwidth=h, epsilon=0.0) for h in agent.bandwidths]
    paid = np.zeros(2)
    for context in rng.standard_normal((200, 2)):
        decision = agent.decide(context)
        loss = abs(decision.action - 0.3)
        paid += [each.distribution(context).density(decision.action) / decision.density * loss for each in alone]
        for each in (agent, *alone):
            each.learn(context, decision, loss)
    assert host_of(agent).state()["estimates"] == pytest.approx(paid)


def test_rounds_after_the_horizon_are_played():
    agent = manul.agents.ParetoGreedy(policies=Constant(choices=9), horizon=3)
    for _ in range(5):
        agent.learn(None, agent.decide(None), 0.5)
    assert host_of(agent).decisions == 5


@pytest.mark.parametrize(
    "agent",
    [
        manul.agents.SmoothedGreedy(policies=Linear(rate=0.02), bandwidth=2.5, actions=(0, 32), losses=(-1, 1), seed=9),
        manul.agents.ParetoGreedy(policies=Constant(choices=33), bandwidths=(0.1, 1.0), horizon=50, constant=2.0),
    ],
)
def test_settings_come_back(tmp_path, agent):
    agent.save(tmp_path / "agent.manul")
    assert repr(manul.load(tmp_path / "agent.manul")) == repr(agent)


def test_arrays_that_do_not_fit_the_settings_are_refused(tmp_path):
    agent = manul.agents.ParetoGreedy(policies=Constant(choices=33), bandwidths=(0.1, 1.0))
    agent.decide(None)
    kind, parameters, arrays = _saved(agent, tmp_path / "agent.manul")
    model_files.write(tmp_path / "agent.manul", kind, {**parameters, "bandwidths": [0.1]}, arrays)
    with pytest.raises(FileError, match="the arrays do not match the settings"):
        manul.load(tmp_path / "agent.manul")


def _saved(agent, path):
    agent.save(path)
    return model_files.read(path)
