"""A field that a context lacks is a missing one, as in every table."""

import datetime

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.errors import InputError
from tests.saved_agents import AGENTS, NATIVE_NAMES


def learned(contexts, agent=None):
    agent = manul.Auto() if agent is None else agent
    decisions = agent.decide_many(contexts)
    agent.learn_many(contexts, decisions, np.arange(len(contexts)) % 2)
    return agent


@pytest.mark.parametrize("name", NATIVE_NAMES)
def test_an_agent_decides_alike_without_a_field_and_with_a_missing_one(name):
    agent = learned([{"age": 3, "x": 1}, {"x": 1}] * 20, AGENTS[name]())
    assert agent.best({"x": 1}) == agent.best({"x": 1, "age": None})


@pytest.mark.parametrize(
    "value", [3, "Oslo", True, datetime.date(2024, 2, 29), datetime.time(12), ["new"], [1.5], {"os": "x"}, [{"os": 1}]]
)
def test_learning_without_a_known_field_is_learning_that_it_is_missing(value):
    known = [{"x": 1, "field": value}, {"x": 2, "field": value}]
    assert learned([*known, {"x": 3}]).report() == learned([*known, {"x": 3, "field": None}]).report()


@pytest.mark.parametrize("empty", [[], {}])
def test_an_empty_list_or_object_is_not_missing(empty):
    whole = ["new"] if empty == [] else {"os": 1}
    names = host_of(learned([{"field": whole}, {"field": None}, {"field": empty}])).native.names.values()
    before = host_of(learned([{"field": whole}, {"field": empty}])).native.names.values()
    assert "field=?" in names
    assert "field=?" not in before


def test_an_absent_member_of_an_object_is_missing_and_an_absent_item_of_a_list_is_not():
    agent = learned([{"device": {"os": "x", "size": 1}, "sizes": [1, 2]}, {"device": {"os": "x"}, "sizes": [1]}])
    names = {*host_of(agent).native.names.values()}
    assert "device.size=?" in names
    assert not any("sizes[1]=?" in name for name in names)


@pytest.mark.parametrize("members", [255, 256, 257])
def test_an_absent_member_of_an_object_of_more_than_256_members_is_0(members):
    whole = {f"word {number}": 1.0 for number in range(members)}
    agent = learned([whole, {"word 0": 1.0}])
    assert ("word 1=?" in host_of(agent).native.names.values()) == (members <= 256)


def test_absent_columns_of_sparse_rows_are_0():
    agent = learned([{"0": 1.0, "17": 2.0}, {"0": 1.0}])
    assert not any(name.endswith("=?") for name in host_of(agent).native.names.values())


def test_a_field_that_was_never_absent_while_learning_changes_no_decision():
    agent = learned([{"x": 1, "age": 3}, {"x": 2, "age": 4}] * 20)
    unknown = learned([{"x": 1, "age": 3}, {"x": 2, "age": 4}] * 20)
    assert agent.best({"x": 1}) == unknown.best({"x": 1, "age": float("nan")})


def test_a_rejected_batch_leaves_no_field_behind():
    agent, other = learned([{"x": 1}]), learned([{"x": 1}])
    with pytest.raises(InputError, match="field 'x' must be a number"):
        learned([{"x": 1, "new": None, "size": 2}, {"x": "text"}], agent)
    for each in (agent, other):
        learned([{"x": 2}], each)
    assert host_of(agent).native.names == host_of(other).native.names


def test_a_saved_agent_knows_which_fields_may_be_missing():
    contexts = [
        {"x": 1, "rooms": [{"warm": True}], "at": datetime.date(2024, 2, 29)},
        {"x": 2, "rooms": [{}]},
        {"x": 1},
    ]
    agent = learned(contexts * 10)
    loaded = manul.loads(manul.dumps(agent))
    again = learned(contexts, agent), learned(contexts, loaded)
    assert manul.dumps(again[0]) == manul.dumps(again[1])
