"""Contexts as people have them: mappings, frames and sparse rows."""

import re

import numpy as np
import pandas
import polars
import pytest
import scipy.sparse

import manul
from manul.agents.player_host import host_of
from manul.errors import InputError

FIELDS = {
    "city": "Oslo",
    "age": 31,
    "vip": True,
    "device": {"os": "linux", "sizes": [1.0, 2.5]},
    "tags": ["a", "b"],
    "gap": None,
}
AGENTS = {
    "Cats": lambda: manul.Cats(leaves=16, bandwidth=1 / 16),
    "Cats.paper": lambda: manul.Cats.paper(leaves=16, bandwidth=1 / 16),
    "Auto": manul.Auto,
    "AdaptiveCats": lambda: manul.AdaptiveCats(leaves=16),
    "DiscreteLinear": lambda: manul.agents.DiscreteLinear(leaves=16),
}


def taught(agent, contexts, best):
    for context in contexts:
        decision = agent.decide(context)
        agent.learn(context, decision, min(1.0, abs(decision.action - best(context))))
    return agent


@pytest.mark.parametrize("name", ["Cats", "Auto", "AdaptiveCats"])
def test_text_decides_what_is_played(name, rng):
    contexts = [
        {"city": str(city), "age": float(age)}
        for city, age in zip(rng.choice(["Oslo", "Rome"], 4000), rng.normal(40, 9, 4000), strict=True)
    ]
    agent = taught(AGENTS[name](), contexts, lambda c: 0.2 if c["city"] == "Oslo" else 0.8)
    oslo, rome = (agent.distribution({"city": city, "age": 40.0}).mean() for city in ("Oslo", "Rome"))
    assert oslo < 0.4 < 0.6 < rome


@pytest.mark.parametrize("name", AGENTS)
def test_saved_names_go_on_identically(name, tmp_path):
    agent = taught(AGENTS[name](), [FIELDS, {"new": 1.0}, {}] * 20, lambda _: 0.3)
    agent.save(tmp_path / "agent.manul")
    loaded = manul.load(tmp_path / "agent.manul")
    for each in (agent, loaded):
        taught(each, [FIELDS, {"newer": "x"}] * 10, lambda _: 0.3)
    assert all(
        host_of(agent).state()[key].tobytes() == array.tobytes() for key, array in host_of(loaded).state().items()
    )


def test_deciding_leaves_no_trace():
    agent = taught(manul.Cats(leaves=16, bandwidth=1 / 16), [FIELDS] * 5, lambda _: 0.3)
    agent.decide({"never": "seen", "age": 5})
    assert "never" not in host_of(agent).native.fields
    agent.decide({"never": 3.0})


@pytest.mark.parametrize(
    ("context", "sentence"),
    [
        ({"age": "old"}, "field 'age' must be a number, like the first time, got another type."),
        ({"city": 7}, "field 'city' must be text, like the first time, got another type."),
        ({"device": {"os": True}}, "field 'device.os' must be text, like the first time"),
        ({"age": float("inf")}, "field 'age' must be a finite number, got infinity."),
        ({"age": 10**400}, "field 'age' must be a finite number, got infinity."),
        ({"when": object()}, "field 'when' must be a number, text, boolean, date, time, None, list or dict"),
        ({"a": {1: 2}}, "context must have text as keys, got another type in 'a'."),
        ([1.0, 2.0], "context must be a mapping like the first one, got a row of numbers."),
        (object(), "context must be a row of numbers or a mapping of fields, got <object"),
    ],
)
@pytest.mark.parametrize("method", ["decide", "learn"])
def test_bad_fields_are_refused_and_change_nothing(context, sentence, method):
    agent = taught(manul.Cats(leaves=16, bandwidth=1 / 16), [FIELDS] * 5, lambda _: 0.3)
    before, fields = host_of(agent).state(), dict(host_of(agent).native.fields)
    calls = {
        "decide": lambda: agent.decide(context),
        "learn": lambda: agent.learn(context, manul.Decision(0.5, 1.0), 0.5),
    }
    with pytest.raises(InputError, match=re.escape(sentence)):
        calls[method]()
    assert host_of(agent).native.fields == fields
    assert all(np.array_equal(before[name], array) for name, array in host_of(agent).state().items())


def test_deep_nesting_is_refused():
    context = {}
    for _ in range(100):
        context = {"a": context}
    with pytest.raises(InputError, match="nested at most 32 levels deep"):
        manul.Cats(leaves=16, bandwidth=1 / 16).decide({"b": 1, **context})


def test_a_mapping_does_not_fit_an_agent_of_rows():
    agent = manul.Cats(leaves=16, bandwidth=1 / 16)
    agent.decide([1.0, 2.0])
    with pytest.raises(InputError, match="context must be a row of 2 numbers like the first one, got a mapping"):
        agent.decide({"a": 1.0})


@pytest.mark.parametrize("empty", [None, {}, [], np.empty(0)])
def test_nothing_fits_every_agent(empty):
    for first in ({"a": 1.0}, None):
        agent = manul.Auto()
        agent.learn(first, agent.decide(first), 0.5)
        agent.learn(empty, agent.decide(empty), 0.5)
        assert agent.report().rounds == 2


def test_frames_are_rows_with_names():
    frame = {"age": [31.0, 42.0, None], "city": ["Oslo", "Rome", None]}
    rows = [{"age": 31.0, "city": "Oslo"}, {"age": 42.0, "city": "Rome"}, {"age": None, "city": None}]
    played = [
        manul.Cats(leaves=16, bandwidth=1 / 16, seed=3).decide_many(each).actions.tolist()
        for each in (pandas.DataFrame(frame), polars.DataFrame(frame), rows)
    ]
    assert played[0] == played[1] == played[2]


def test_sparse_rows_have_their_columns_as_names():
    table = scipy.sparse.csr_matrix(np.array([[0, 2.0, 0], [1.0, 0, 0]]))
    sparse, plain = (manul.Cats(leaves=16, bandwidth=1 / 16, seed=3) for _ in range(2))
    assert sparse.decide_many(table).actions.tolist() == plain.decide_many([{"1": 2.0}, {"0": 1.0}]).actions.tolist()
    assert sparse.decide(table[[0]]).density == plain.decide({"1": 2.0}).density


def test_a_frame_becomes_a_world():
    frame = pandas.DataFrame({"size": [1.0, None, 3.0], "color": ["red", "blue", "red"]})
    world = manul.worlds.Regression(frame, [0.1, 0.2, 0.3])
    assert world.contexts.tolist() == [[1, 0, 0, 1], [2, 1, 1, 0], [3, 0, 0, 1]]


def test_many_names_share_a_bounded_table():
    agent = manul.Cats(leaves=1024, bandwidth=1 / 32, table_bits=14)
    taught(agent, [{"user": f"user {i}", "city": "Oslo"} for i in range(3000)], lambda _: 0.3)
    size = agent.nbytes
    taught(agent, [{"user": f"visitor {i}", "city": "Oslo"} for i in range(3000)], lambda _: 0.3)
    assert agent.nbytes == size < 2**20
    assert abs(np.mean(agent.distribution({"user": "nobody", "city": "Oslo"}).densest()) - 0.3) < 0.1


def test_a_field_that_was_a_number_may_be_true_or_false():
    agent, other = (manul.Cats(leaves=8, bandwidth=1 / 8) for _ in range(2))
    for each in (agent, other):
        each.learn({"weekend": 1.0, "age": 3}, each.decide({"weekend": 1.0, "age": 3}), loss=0.5)
    assert agent.decide({"weekend": True, "age": 4}) == other.decide({"weekend": 1.0, "age": 4})
    assert agent.decide({"weekend": False, "age": 4}) == other.decide({"weekend": 0.0, "age": 4})
