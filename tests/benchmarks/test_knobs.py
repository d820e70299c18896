"""The benchmark of several knobs plays every world, and compares like with like."""

import numpy as np
import pytest
from benchmarks import gp_ucb, knobs, lightgbm_critic


@pytest.mark.parametrize("name", knobs.PROBLEMS)
def test_one_auto_per_knob_plays_every_world(name):
    world = knobs.PROBLEMS[name].draw(30, 0)
    actions = knobs.play_separately(world, 0)
    assert {name: len(column) for name, column in actions.items()} == dict.fromkeys(world.actions, 30)


@pytest.mark.parametrize("name", ["sep2", "templates", "whole2"])
def test_the_lightgbm_critic_chooses_what_it_predicts_to_be_best(name, monkeypatch):
    monkeypatch.setattr(lightgbm_critic, "fit", lambda *_: lambda rows: np.abs(rows[:, -1] - 0.3))
    monkeypatch.setattr(lightgbm_critic, "fading", np.zeros_like)
    world = knobs.PROBLEMS[name].draw(200, 0)
    last = list(knobs.play_lightgbm(world, 0).values())[-1][lightgbm_critic.FIRST_FIT :]
    share = last / 20 if name == "whole2" else last
    assert np.abs(share - 0.3).max() < 0.06


def test_the_process_chooses_the_lowest_confidence_bound(monkeypatch):
    class Process:
        parameters = None

        def __init__(self, *_):
            pass

        def predict(self, _, features):
            return features[:, -1], np.zeros(len(features))

        def add(self, *_):
            pass

    monkeypatch.setattr(gp_ucb, "Process", Process)
    actions = knobs.play_gp(knobs.PROBLEMS["sep2"].draw(40, 0), 0)
    assert actions["knob2"][gp_ucb.FIRST :].max() < 0.1


def test_the_last_fifth_of_the_best_actions_loses_nothing():
    (regret,) = knobs.last_fifth(knobs.PROBLEMS["cliff4"], lambda world, _: world.best, [3], 50)
    assert regret == 0
