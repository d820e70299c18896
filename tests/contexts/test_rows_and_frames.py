"""Rows and frames of every kind give the bytes of the same values in plain dicts, wherever contexts go in."""

import collections
import datetime
import decimal

import duckdb
import narwhals
import numpy as np
import pandas
import polars
import pyarrow
import pytest

import manul
from manul.contexts.typical import sweep
from manul.errors import InputError
from manul.utils import model_files

DAY = datetime.datetime(2024, 2, 29, 23, 30)
COLUMNS = {
    "age": [31.5, None, -0.0, 7.0, 12.25, 3.0],
    "rooms": [3, 4, 2**60 + 1, 0, 1, 2],
    "city": ["Oslo", None, "Rome", "Oslo", "Bath", "Rome"],
    "new": [True, False, True, True, False, False],
    "at": [DAY, None, DAY + datetime.timedelta(days=3), DAY, DAY, DAY],
    "fee": [1.5, 2.25, 0.5, 3.0, 4.0, 8.0],
}
DICTS = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*COLUMNS.values(), strict=True)]
LOSSES = [0.1, 0.9, 0.4, 0.6, 0.3, 0.2]
KNOBS = {"price": (10, 50), "days": manul.Stepped(1, 14, 1), "template": manul.Choice(["a", "b"])}
AGENTS = {
    "cats": lambda: manul.Cats(leaves=16, bandwidth=1 / 16, seed=3),
    "auto": lambda: manul.Auto(seed=3),
    "knobs": lambda: manul.Auto(actions=KNOBS, seed=3),
    "discrete": lambda: manul.agents.DiscreteLinear(leaves=16, seed=3),
    "adaptive": lambda: manul.AdaptiveCats(leaves=16, seed=3),
}


class Exported:
    """A table of a library that manul does not know."""

    columns = tuple(COLUMNS)

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def pandas_frame():
    columns = {**COLUMNS, "city": pandas.Categorical(COLUMNS["city"]), "at": pandas.to_datetime(COLUMNS["at"])}
    columns["rooms"] = pandas.array(COLUMNS["rooms"], dtype="Int64")
    return pandas.DataFrame({**columns, "fee": list(map(decimal.Decimal, COLUMNS["fee"]))})


def numpy_scalars():
    kinds = {"rooms": np.int64, "new": np.bool_, "city": np.str_, "age": np.float64, "fee": np.float32}
    return [
        {name: value if value is None or name == "at" else kinds[name](value) for name, value in row.items()}
        for row in DICTS
    ]


def missing_values():
    gaps = {"age": pandas.NA, "city": float("nan"), "at": pandas.NaT}
    return [{name: gaps[name] if value is None else value for name, value in row.items()} for row in DICTS]


FRAMES = {
    "pandas": pandas_frame,
    "polars": lambda: polars.DataFrame({**COLUMNS, "fee": list(map(decimal.Decimal, COLUMNS["fee"]))}),
    "arrow": lambda: pyarrow.table(COLUMNS),
    "arrow batch": lambda: pyarrow.RecordBatch.from_pydict(COLUMNS),
    "arrow types in pandas": lambda: pyarrow.table(COLUMNS).to_pandas(types_mapper=pandas.ArrowDtype),
    "duckdb": lambda: duckdb.from_arrow(pyarrow.table(COLUMNS)),
    "narwhals": lambda: narwhals.from_native(polars.DataFrame(COLUMNS)),
    "pycapsule": lambda: Exported(pyarrow.table(COLUMNS)),
    "mapping of lists": lambda: COLUMNS,
    "mapping of arrays": lambda: {
        **{name: tuple(COLUMNS[name]) for name in COLUMNS},
        "rooms": np.array(COLUMNS["rooms"]),
        "new": np.array(COLUMNS["new"]),
        "at": np.array(COLUMNS["at"], dtype="datetime64[ns]"),
    },
    "mapping of columns of libraries": lambda: {
        **COLUMNS,
        "age": pandas.Series(COLUMNS["age"]),
        "city": pandas.Categorical(COLUMNS["city"]),
        "new": polars.Series(COLUMNS["new"]),
        "at": pyarrow.array(COLUMNS["at"]),
        "rooms": pandas.Index(COLUMNS["rooms"]),
    },
}
ROWS = {
    "series": lambda: [row for _, row in pandas_frame().iterrows()],
    "itertuples": lambda: list(pandas_frame().itertuples()),
    "itertuples without index": lambda: list(pandas_frame().itertuples(index=False, name="House")),
    "pandas records": lambda: pandas_frame().to_dict("records"),
    "named tuples": lambda: [collections.namedtuple("House", row)(**row) for row in DICTS],
    "polars rows": lambda: polars.DataFrame(COLUMNS).rows(named=True),
    "arrow rows": lambda: pyarrow.table(COLUMNS).to_pylist(),
    "numpy scalars": numpy_scalars,
    "decimals": lambda: [{**row, "fee": decimal.Decimal(row["fee"])} for row in DICTS],
    "missing values": missing_values,
    "timestamps": lambda: [{**row, "at": row["at"] and pandas.Timestamp(row["at"])} for row in DICTS],
    "mapping proxies": lambda: [collections.ChainMap(row) for row in DICTS],
}


def one_by_one(agent, rows):
    decisions = [agent.decide(row) for row in rows]
    for row, decision, loss in zip(rows, decisions, LOSSES, strict=True):
        agent.learn(row, decision, loss)
    best, first = [agent.best(row) for row in rows], agent.distribution(rows[0])
    return repr([decisions, best, first]), model_files.dumps(agent)


def at_once(agent, contexts):
    decisions = agent.decide_many(contexts)
    agent.learn_many(contexts, decisions, LOSSES)
    densities = agent.distributions(contexts).density(decisions.actions)
    return list(decisions), densities.tolist(), model_files.dumps(agent)


@pytest.mark.parametrize("name", ["cats", "auto", "knobs"])
@pytest.mark.parametrize("kind", ROWS)
def test_a_row_of_any_kind_gives_the_bytes_of_its_dict(kind, name):
    assert one_by_one(AGENTS[name](), ROWS[kind]()) == one_by_one(AGENTS[name](), DICTS)
    assert at_once(AGENTS[name](), ROWS[kind]()) == at_once(AGENTS[name](), DICTS)


@pytest.mark.parametrize("name", AGENTS)
@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_of_any_kind_gives_the_bytes_of_its_rows(kind, name):
    assert at_once(AGENTS[name](), FRAMES[kind]()) == at_once(AGENTS[name](), DICTS)


@pytest.mark.parametrize("name", AGENTS)
def test_a_batch_gives_the_decisions_and_the_state_of_single_calls(name):
    single, batch = AGENTS[name](), AGENTS[name]()
    decisions = batch.decide_many(pandas_frame())
    assert list(decisions) == [single.decide(row) for row in DICTS] == [decisions[row] for row in range(6)]
    for row, decision, loss in zip(pandas_frame().itertuples(), decisions, LOSSES, strict=True):
        single.learn(row, decision, loss)
    batch.learn_many(pandas_frame(), decisions, LOSSES)
    assert model_files.dumps(single) == model_files.dumps(batch)


@pytest.mark.parametrize("kind", [*ROWS, *FRAMES])
def test_plots_take_every_kind(kind):
    contexts = (ROWS | FRAMES)[kind]()
    for feature in COLUMNS:
        one, other = (sweep(each, feature) for each in (contexts, DICTS))
        assert repr([one.contexts, *map(list, (one.positions, one.observed))]) == repr(
            [other.contexts, *map(list, (other.positions, other.observed))]
        )
    assert AGENTS["cats"]().plot("city", contexts, LOSSES).get_xlabel() == "city"


@pytest.mark.parametrize("feature", COLUMNS)
def test_a_learned_policy_is_drawn_over_any_feature(feature):
    agent = AGENTS["cats"]()
    agent.learn_many(DICTS, agent.decide_many(DICTS), LOSSES)
    axes = agent.plot(feature, pandas_frame(), LOSSES)
    axes.figure.canvas.draw()
    labels = [label.get_text() for label in axes.get_xticklabels()]
    assert {"city": "Bath", "new": "False", "at": "Mar"}.get(feature, labels[0]) in " ".join(labels)


@pytest.mark.parametrize("kind", [*ROWS, *FRAMES])
def test_logs_take_every_kind(kind):
    agent, contexts = AGENTS["auto"](), (ROWS | FRAMES)[kind]()
    decisions = agent.decide_many(contexts)
    logs = [manul.Log(each, decisions.actions, decisions.densities, np.array(LOSSES)) for each in (contexts, DICTS)]
    assert logs[0].to_pandas().equals(logs[1].to_pandas())
    assert logs[0].fields["city"].tolist() == COLUMNS["city"]


@pytest.mark.parametrize("kind", FRAMES)
def test_every_frame_is_the_same_world(kind):
    one, other = (manul.worlds.Regression(each, LOSSES) for each in (FRAMES[kind](), COLUMNS))
    assert one.contexts.tobytes() == other.contexts.tobytes()
    runs = [manul.simulate(manul.Cats(leaves=8, bandwidth=1 / 8), world).log.actions.tolist() for world in (one, other)]
    assert runs[0] == runs[1]


@pytest.mark.parametrize("name", ["auto", "knobs"])
def test_decisions_beside_a_frame_and_losses_are_a_log(name):
    agent, frame = AGENTS[name](), pandas_frame()
    within = [{"price": (10.0, 20.0), "template": ["a"]}, None] * 3 if name == "knobs" else [(0.2, 0.8)] * 6
    decisions = agent.decide_many(frame, within)
    table = pandas.concat([frame, decisions.to_pandas()], axis=1).assign(loss=LOSSES)
    log = manul.Log.from_table(table, knobs=KNOBS if name == "knobs" else None)
    assert log.densities.tolist() == decisions.densities.tolist()
    assert log.floors.tolist() == decisions.floors.tolist()
    assert (log.lows.tolist() if name == "auto" else list(log.within)) == (
        [0.2] * 6 if name == "auto" else [{"price": (10.0, 20.0), "template": ["a"]}, None] * 3
    )


@pytest.mark.parametrize("name", ["auto", "knobs"])
def test_a_part_of_the_decisions_is_learned_like_the_same_rows(name):
    one, two = AGENTS[name](), AGENTS[name]()
    decisions = one.decide_many(DICTS)
    two.decide_many(DICTS)
    one.learn_many(DICTS[1:4], decisions[1:4], LOSSES[1:4])
    for row in (1, 2, 3):
        two.learn(DICTS[row], decisions[row], LOSSES[row])
    assert model_files.dumps(one) == model_files.dumps(two)
    assert len(decisions[np.array([True, False] * 3)]) == 3
    assert decisions[-1] == list(decisions)[-1]
    with pytest.raises(IndexError):
        decisions[6]


def test_narrowed_decisions_keep_their_ranges():
    single, batch = AGENTS["auto"](), AGENTS["auto"]()
    within = [(0.1 * row, 0.1 * row + 0.5) for row in range(6)]
    decisions = batch.decide_many(DICTS, within)
    expected = [single.decide(row, ends) for row, ends in zip(DICTS, within, strict=True)]
    assert list(decisions) == expected == [decisions[row] for row in range(6)] == list(decisions[:])


def test_an_agent_of_numbers_takes_rows_of_frames_without_their_names():
    frame = pandas.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    agents = [manul.Cats(leaves=8, bandwidth=1 / 8) for _ in range(6)]
    for agent in agents:
        agent.decide([0.0, 0.0])
    expected = agents[0].decide_many([[1.0, 3.0], [2.0, 4.0]]).actions.tolist()
    for agent, each in zip(agents[1:], [frame, polars.DataFrame(frame), list(frame.itertuples())], strict=False):
        assert agent.decide_many(each).actions.tolist() == expected
    assert [agents[4].decide(row).action for _, row in frame.iterrows()] == expected
    assert [agents[5].decide(row).action for row in frame.itertuples()] == expected


BAD = {
    "twice": (lambda: pandas.DataFrame([[1.0, 2.0]], columns=["a", "a"]), "distinct column names, got 'a' twice"),
    "twice in arrow": (lambda: pyarrow.table([[1.0], [2.0]], ["a", "a"]), "distinct column names, got 'a' twice"),
    "numbers as names": (lambda: pandas.DataFrame([[1.0, 2.0]]), "must have text as column names, got 0"),
    "levels": (
        lambda: pandas.DataFrame([[1.0]], columns=pandas.MultiIndex.from_tuples([("a", "b")])),
        r"must have text as column names, got \('a', 'b'\)",
    ),
    "a key that is no text": (lambda: {3: [1.0]}, "must have text as column names, got 3"),
    "lengths": (lambda: {"a": [1.0], "b": [1.0, 2.0]}, "columns of one length, got lengths 1, 2"),
    "one row": (lambda: {"a": 1.0, "b": "x"}, "columns of values, got 1.0 in 'a'. For one context"),
    "one text": (lambda: {"b": "Oslo"}, "columns of values, got 'Oslo' in 'b'"),
    "a matrix in a column": (lambda: {"b": np.zeros((2, 2))}, "columns of values, got array.* in 'b'"),
    "a set": (lambda: {"b": {1.0, 2.0}}, "columns of values, got {1.0, 2.0} in 'b'"),
    "a frame in a column": (lambda: {"b": pandas.DataFrame({"x": [1.0]})}, "columns of values, got .* in 'b'"),
    "no columns": (dict, "columns of one length, got no columns"),
    "lost names": (
        lambda: list(pandas.DataFrame({"fuel type": [1.0]}).itertuples()),
        r"field '_1', because itertuples cannot keep the name",
    ),
    "a series with a name twice": (
        lambda: [pandas.Series([1.0, 2.0], index=["a", "a"])],
        "context must have distinct column names, got 'a' twice",
    ),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("name", ["cats", "knobs"])
@pytest.mark.parametrize("fresh", [True, False])
def test_bad_tables_get_one_sentence_and_change_nothing(kind, name, fresh):
    agent, (make, sentence) = AGENTS[name](), BAD[kind]
    if not fresh:
        agent.learn_many(DICTS, agent.decide_many(DICTS), LOSSES)
    before = model_files.dumps(agent)
    with pytest.raises(InputError, match=sentence) as error:
        agent.decide_many(make())
    assert "\n" not in str(error.value)
    assert model_files.dumps(agent) == before


@pytest.mark.parametrize("frame", [pandas_frame(), polars.DataFrame(COLUMNS), pyarrow.table(COLUMNS)])
def test_a_table_is_not_one_context(frame):
    with pytest.raises(InputError, match=r"context must be one row.* _many methods") as error:
        AGENTS["auto"]().decide(frame)
    assert "\n" not in str(error.value)


def test_all_contexts_of_a_log_have_names_or_none_has():
    with pytest.raises(
        InputError, match=r"contexts must all have named fields, like the first one, got \[2\] in row 1"
    ):
        manul.Log([{"a": 1}, [2]], np.ones(2), np.ones(2), np.ones(2))


def test_text_does_not_fit_an_agent_of_numbers():
    agent = manul.Auto()
    agent.decide([1.0, 2.0])
    with pytest.raises(InputError, match="contexts must be numbers like the first ones, got 'Oslo' in column 'city'"):
        agent.decide_many({"city": ["Oslo", "Rome"], "age": [1.0, 2.0]})


def test_columns_are_fitted_to_frames_and_applied_to_their_rows():
    frame = pandas.DataFrame({"size": pandas.array([1, None, 3], dtype="Int64"), "kind": ["a", pandas.NA, "b"]})
    columns = manul.maps.Columns.fit(frame)
    assert columns == manul.maps.Columns.fit({"size": [1, None, 3], "kind": ["a", None, "b"]})
    agent = manul.Mapped(agent=manul.Auto(seed=3), features=columns)
    many = manul.Mapped(agent=manul.Auto(seed=3), features=columns).decide_many(frame)
    assert [agent.decide(row) for row in frame.itertuples()] == list(many)


DAYS = [DAY, None, DAY + datetime.timedelta(days=3), DAY]
NESTED = {
    "date": [each and each.date() for each in DAYS],
    "aware": [each and each.replace(tzinfo=datetime.UTC) for each in DAYS],
    "clock": [each and each.time() for each in DAYS],
    "tags": [["new"], [], None, ["new", "red"]],
    "sizes": [[1.0, 2.0], [], None, [3.0]],
    "device": [{"os": "x", "age": 3}, None, {"os": "y", "age": None}, {"os": "x", "age": 1}],
    "new": [True, None, False, True],
}
NESTED_ROWS = [dict(zip(NESTED, row, strict=True)) for row in zip(*NESTED.values(), strict=True)]
LIBRARIES = {
    "arrow": lambda: pyarrow.table(NESTED),
    "pandas": lambda: pandas.DataFrame(NESTED, dtype=object),
    "polars": lambda: polars.DataFrame(NESTED),
    "duckdb": lambda: duckdb.from_arrow(pyarrow.table(NESTED)),
    "narwhals": lambda: narwhals.from_native(pyarrow.table(NESTED)),
    "pycapsule": lambda: Exported(pyarrow.table(NESTED)),
}


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("name", ["cats", "auto"])
def test_dates_lists_and_objects_of_any_library_are_those_of_dicts(library, name):
    one, other, frame = AGENTS[name](), AGENTS[name](), LIBRARIES[library]()
    expected, decisions = one.decide_many(NESTED_ROWS), other.decide_many(frame)
    one.learn_many(NESTED_ROWS, expected, LOSSES[:4])
    other.learn_many(frame, decisions, LOSSES[:4])
    assert manul.dumps(other) == manul.dumps(one)
    logs = [manul.Log(each, expected, LOSSES[:4], like=one) for each in (NESTED_ROWS, frame)]
    assert [*logs[1].context_rows()] == [*logs[0].context_rows()]
    values = [manul.evaluate(each, log, interval="none").value for each, log in zip((one, other), logs, strict=True)]
    assert values[0] == values[1]


@pytest.mark.parametrize("take", [pyarrow.table, polars.DataFrame, duckdb.from_arrow, pandas.DataFrame.from_arrow])
@pytest.mark.parametrize("name", ["auto", "knobs"])
def test_any_library_takes_logs_and_decisions(take, name):
    agent = AGENTS[name]()
    decisions = agent.decide_many(DICTS)
    log = manul.Log(DICTS, decisions, LOSSES, like=agent)
    again = manul.Log.from_table(take(log), like=agent)
    assert [*again.context_rows()] == [*log.context_rows()]
    assert (again.losses.tolist(), again.densities.tolist()) == (log.losses.tolist(), log.densities.tolist())
    assert pyarrow.table(decisions).column_names == [*decisions.to_pandas().columns]


def test_options_of_several_types_are_no_column_of_arrow():
    decisions = manul.Auto(actions=manul.Choice(["plain", 3]), seed=1).decide_many(np.zeros((20, 1)))
    with pytest.raises(InputError, match="actions have options of several types"):
        pyarrow.table(decisions)
