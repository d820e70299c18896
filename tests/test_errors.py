"""Errors say which parameter or column they are about."""

import pickle
import traceback

import numpy as np
import pytest

import manul
from manul.errors import FileError, InputError


@pytest.mark.parametrize(
    ("setting", "field"),
    [
        ({"epsilon": 2}, "epsilon"),
        ({"seed": -1}, "seed"),
        ({"actions": (1, 0)}, "actions"),
    ],
)
def test_a_setting_that_cannot_work_is_named(setting, field):
    with pytest.raises(manul.ManulError) as caught:
        manul.Auto(**setting)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("context", "within", "field"),
    [([np.nan], None, "context"), ([1.0], (2, 1), "within"), ({"age": float("inf")}, None, "context")],
)
def test_what_decide_does_not_take_is_named(context, within, field):
    with pytest.raises(InputError) as caught:
        manul.Auto().decide(context, within)
    assert caught.value.field == field


def test_the_column_of_a_bad_row_is_named(tmp_path):
    path = tmp_path / "run.csv"
    path.write_text("action,density,loss,age\n0.5,1,0.5,3\n0.5,0,0.5,3\n")
    with pytest.raises(FileError) as caught:
        manul.Log.read(path)
    assert caught.value.field == "density"


def test_an_error_keeps_its_field_between_processes():
    assert pickle.loads(pickle.dumps(InputError("loss must be in [0, 1], got 2", "loss"))).field == "loss"


@pytest.mark.parametrize("bad", [{"age": "old"}, {"age": float("inf")}, {"age": object()}, [1.0], {1: 2}])
@pytest.mark.parametrize(
    "make", [manul.Auto, lambda: manul.Auto(actions={"price": (0, 1)}), lambda: manul.Cats(leaves=8, bandwidth=1 / 8)]
)
def test_a_traceback_shows_no_internal_exception(make, bad):
    agent = make()
    learned, decision = agent.decide({"age": 31.0}), agent.decide({"age": 31.0})
    agent.learn({"age": 31.0}, learned, 0.5)
    for use in (agent.decide, agent.distribution, agent.best, lambda each: agent.learn(each, decision, 0.5)):
        with pytest.raises(InputError) as caught:
            use(bad)
        assert "Rejected" not in "".join(traceback.format_exception(caught.value))
