"""Batches of named contexts give the bytes of the single forms, from every kind of table."""

import datetime
import random

import numpy as np
import pandas
import polars
import pyarrow
import pytest
import scipy.sparse

import manul
from manul.errors import InputError
from manul.utils import model_files
from tests.saved_agents import AGENTS, NATIVE_NAMES

DAY = datetime.datetime(2024, 2, 29, 23, 30)
TABLES = {
    "pandas": pandas.DataFrame,
    "polars": polars.DataFrame,
    "arrow": pyarrow.table,
    "record batch": lambda columns: pyarrow.record_batch(pyarrow.table(columns).to_batches()[0].columns, list(columns)),
    "mappings": lambda columns: [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)],
}


def generated(seed, count):
    """Contexts of all kinds of values, in which fields and levels appear later."""
    rng = random.Random(seed)
    kinds = {
        "number": lambda n: rng.choice([rng.gauss(0, 1), -0.0, n, None, float("nan"), np.float32(n / 3)]),
        "text": lambda n: rng.choice(["", "Oslo", "Rome", f"level {n // 10}", None]),
        "flag": lambda _: rng.choice([True, False, None]),
        "tags": lambda _: rng.sample(["a", "b", "c"], rng.randrange(3)),
        "nested": lambda n: {"os": rng.choice("xyz"), "sizes": [rng.random(), None, n], "deep": {"é": rng.random()}},
        "at": lambda n: rng.choice([DAY + datetime.timedelta(hours=n), None]),
        "late": lambda n: float(n),
        **{f"many {index}": lambda n: n / 7 for index in range(40)},
    }
    for n in range(count):
        names = [name for name in kinds if rng.random() < 0.5 and (name != "late" or n > count / 2)]
        yield {name: kinds[name](n) for name in names} or {"number": 1.0}


def learned_one_by_one(agent, contexts, losses):
    decisions = [agent.decide(context) for context in contexts]
    for context, decision, loss in zip(contexts, decisions, losses, strict=True):
        agent.learn(context, decision, loss)
    return [(decision.action, decision.density) for decision in decisions]


def learned_at_once(agent, contexts, losses):
    decisions = agent.decide_many(contexts)
    agent.learn_many(contexts, decisions, losses)
    return list(zip(decisions.actions, decisions.densities, strict=True))


@pytest.mark.parametrize("name", NATIVE_NAMES)
def test_a_batch_of_mappings_gives_the_bytes_of_single_calls(name):
    single, batch = AGENTS[name](), AGENTS[name]()
    for seed in range(3):
        contexts, losses = list(generated(seed, 60)), np.random.default_rng(seed).uniform(size=60)
        if name.startswith("mapped"):
            contexts = [{name: each for name, each in context.items() if name != "at"} for context in contexts]
        assert learned_one_by_one(single, contexts, losses) == learned_at_once(batch, contexts, losses)
        assert model_files.dumps(single) == model_files.dumps(batch)


@pytest.mark.parametrize("name", [name for name in NATIVE_NAMES if name != "mapped-crosses"])
def test_densities_moments_and_repeated_decisions_equal_the_single_ones(name):
    agent, contexts = AGENTS[name](), list(generated(1, 50))
    learned_at_once(agent, contexts, [0.5] * 50)
    again = agent.decide_many_again(range(50), contexts)
    single = [agent.decide_again(number, context) for number, context in enumerate(contexts)]
    assert again.actions.tolist() == [each.action for each in single]
    distributions = [agent.distribution(context) for context in contexts]
    densities = agent.distributions(contexts).density(again.actions)
    np.testing.assert_allclose(densities, [each.density for each in single])
    means, squares = agent.distributions(contexts).moments()
    np.testing.assert_allclose(means, [each.mean() for each in distributions])
    np.testing.assert_allclose(squares, [each.square() for each in distributions])


@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", ["cats", "auto", "discrete-tree"])
def test_every_table_gives_the_bytes_of_its_rows(name, table):
    columns = {
        "age": [31.5, None, -0.0, 7.0],
        "rooms": [3, 4, 2**60 + 1, 0],
        "whole": [1, None, 3, 2**60 + 1],
        "city": ["Oslo", None, "Rome", "Oslo"],
        "new": [True, False, True, True],
        "known": [True, None, False, True],
        "at": [DAY, None, DAY + datetime.timedelta(days=3), DAY],
        "tags": [["a"], ["b", "c"], [], None],
    }
    columns = {name: values * 5 for name, values in columns.items()}
    if table == "pandas":
        columns["whole"] = pandas.array(columns["whole"], dtype="Int64")
        columns["tags"] = pandas.Series(columns["tags"], dtype=object)
    single, batch = AGENTS[name](), AGENTS[name]()
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    losses = np.linspace(0, 1, 20)
    assert learned_one_by_one(single, rows, losses) == learned_at_once(batch, TABLES[table](columns), losses)
    assert model_files.dumps(single) == model_files.dumps(batch)


def test_categories_and_times_of_pandas_are_read_as_texts_and_times():
    frame = pandas.DataFrame(
        {"city": pandas.Categorical(["Oslo", None, "Rome"]), "at": pandas.to_datetime([DAY, None, DAY], utc=True)}
    )
    rows = [{"city": "Oslo", "at": DAY}, {"city": None, "at": None}, {"city": "Rome", "at": DAY}]
    single, batch = AGENTS["cats"](), AGENTS["cats"]()
    assert learned_at_once(single, rows, [0.5] * 3) == learned_at_once(batch, frame, [0.5] * 3)
    assert model_files.dumps(single) == model_files.dumps(batch)


@pytest.mark.parametrize("form", ["csr_matrix", "csc_array", "coo_array"])
def test_sparse_rows_give_the_bytes_of_their_rows(form, rng):
    table = getattr(scipy.sparse, form)(np.where(rng.uniform(size=(30, 9)) < 0.3, rng.normal(size=(30, 9)), 0))
    rows = table.tocsr()
    single, batch = AGENTS["cats"](), AGENTS["cats"]()
    single.decide({"1": 0.0}), batch.decide({"1": 0.0})
    played = learned_one_by_one(single, [rows[[number]] for number in range(30)], [0.25] * 30)
    assert played == learned_at_once(batch, table, [0.25] * 30)
    assert model_files.dumps(single) == model_files.dumps(batch)


@pytest.mark.parametrize(
    "bad", [{"a": "text"}, {"b": 1.0}, {"c": object()}, {"n": {"x": float("inf")}}, {3: 1.0}, {"\ud800": 1}]
)
@pytest.mark.parametrize("row", [0, 3, 5])
@pytest.mark.parametrize("name", ["cats", "auto", "adaptive"])
@pytest.mark.parametrize("fresh", [True, False])
def test_a_bad_context_anywhere_leaves_the_state_unchanged(name, row, bad, fresh):
    agent = AGENTS[name]()
    contexts = [{"a": 1.0, "b": "text", f"new {n}": {"x": "y"}} for n in range(6)]
    decisions = manul.Decisions(np.full(6, 0.5), np.ones(6))
    if not fresh:
        agent.learn_many(contexts[:1], manul.Decisions(np.array([0.5]), np.ones(1)), [0.5])
    elif row == 0:
        bad = {**bad, "n": {"x": float("inf")}}
    before = model_files.dumps(agent)
    contexts[row] = bad
    for call in (
        lambda: agent.learn_many(contexts, decisions, [0.5] * 6),
        lambda: agent.learn_many([*contexts[:row], {}, *contexts[row + 1 :]], decisions, [0.5] * 5 + [7.0]),
    ):
        with pytest.raises(InputError):
            call()
        assert model_files.dumps(agent) == before
    agent.learn_many([{"new 3": 7.0}], manul.Decisions(np.array([0.5]), np.ones(1)), [0.5])


def test_columns_with_the_same_name_are_refused():
    frame = pandas.DataFrame([[1.0, 2.0]], columns=["a", "a"])
    with pytest.raises(InputError, match="contexts must have distinct column names, got 'a' twice"):
        manul.Cats(leaves=8, bandwidth=1 / 8).decide_many(frame)


def test_no_contexts_are_an_empty_batch():
    agent = AGENTS["cats"]()
    agent.decide({"a": 1.0})
    assert len(agent.decide_many([]).actions) == len(agent.decide_many(pandas.DataFrame({"a": []})).actions) == 0


def test_narrowed_ranges_hold_for_each_row():
    agent = manul.Auto()
    decisions = agent.decide_many([{"a": n / 9} for n in range(10)], [(0.0, 0.5), (0.5, 1.0)] * 5)
    assert all(
        low <= action <= high
        for action, low, high in zip(decisions.actions, decisions.lows, decisions.highs, strict=True)
    )
    with pytest.raises(InputError, match="within must lie inside"):
        agent.decide_many([{"a": 1.0}], [(0.5, 1.5)])
