"""Inspection of agents that learn from rewards speaks of rewards."""

import json

import numpy as np
import pytest

import manul
from manul.inspection import plot_context
from manul.inspection.inspect import inspect
from manul.inspection.knob_effects import pair_effect

KNOBS = {"price": (10, 50), "template": manul.Choice(["a", "b"])}
KINDS = ("one knob", "several knobs", "mapped", "mapped knobs")


def taught(kind):
    """An agent whose reward is highest, 40, at a price of 30."""
    agent = manul.Auto(actions=KNOBS if "knobs" in kind else (10, 50), rewards=(0, 50))
    agent = manul.Mapped(agent=agent, features=manul.maps.Crosses()) if "mapped" in kind else agent
    rng = np.random.default_rng(0)
    for context in rng.random((150, 1)).tolist():
        decision = agent.decide(context)
        price = decision.action["price"] if "knobs" in kind else decision.action
        agent.learn(context, decision, reward=40.0 - abs(price - 30))
    return agent


@pytest.fixture(scope="module", params=KINDS)
def agent(request):
    return taught(request.param)


@pytest.fixture(scope="module")
def inspection(agent, tmp_path_factory):
    path = tmp_path_factory.mktemp("agents") / "agent.manul"
    agent.save(path)
    return inspect(path, [0.5])


def test_no_text_speaks_of_losses(inspection):
    text = f"{inspection} {inspection._repr_html_()}"
    assert "model of the reward" in text
    assert "predicted reward" in text
    assert "loss" not in text


def test_the_best_reward_is_printed_as_a_positive_number(inspection):
    (best,) = [
        line
        for line in str(inspection).splitlines()
        if line.endswith(("highest", "  best")) and any(map(str.isdigit, line))
    ][:1]
    assert 30 < float(best.split()[-2]) < 50


def test_json_has_the_rewards(inspection):
    played = json.loads(json.dumps(inspection.as_dict()))["played"][0]
    played = played["knobs"]["price"] if "knobs" in played else played
    assert [-loss for _, loss in played["curve"]] == [reward for _, reward in played["reward_curve"]]


def test_plots_have_rewards(agent, inspection):
    for figure in (inspection.plot(), plot_context(agent, [0.5])):
        labels = [axes.get_ylabel() for axes in figure.axes]
        assert "predicted reward" in labels
        assert "predicted loss" not in labels
        axes = figure.axes[labels.index("predicted reward")]
        assert axes.lines[0].get_ydata().min() > 0


def test_the_heat_map_of_a_pair_has_rewards():
    axes = pair_effect(taught("several knobs"), [0.5], "price", "template").plot()
    assert axes.figure.axes[-1].get_ylabel() == "predicted reward"
    assert axes.collections[0].get_array().min() > 0


def test_the_dot_on_a_curve_is_named_after_what_it_marks(tmp_path):
    manul.plotting.save(plot_context(taught("one knob"), [0.5]), tmp_path / "curve.png")
    table = (tmp_path / "curve.csv").read_text()
    assert "\nmiddle of the window," in table
    assert "\nbest," not in table
