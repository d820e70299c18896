"""Columns fitted to all rows of a log, however it is cut into batches."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from manul.errors import InputError, ParameterError
from manul.logs import column_fitting
from manul.logs.column_fitting import fit_columns
from manul.logs.log import Log
from manul.logs.sample import Sample

FLOATS = st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=20)


def log(rows=500, seed=0):
    rng = np.random.default_rng(seed)
    late = np.arange(rows) >= rows // 2
    kind = np.where(late, rng.choice(["b", "c", "ü|: d"], rows), None)
    size = np.where(rng.random(rows) < 0.1, np.nan, rng.normal(size=rows) * 10.0 ** rng.integers(-9, 9, rows))
    decided = {"action": rng.random(rows), "density": np.ones(rows), "loss": rng.random(rows)}
    return Log.from_table({"kind": pa.array(kind.tolist(), pa.string()), "size": size, **decided})


def cut(whole, count):
    edges = np.linspace(0, len(whole), count + 1).astype(int)
    return [whole.rows(slice(first, last)) for first, last in pairwise(edges)]


@given(FLOATS, FLOATS)
def test_sums_are_exact(one, other):
    total = column_fitting.add_exactly(column_fitting.add_exactly(0, np.array(one)), np.array(other))
    values = [Fraction(value) for value in (*one, *other)]
    assert column_fitting.exact_mean(total, len(values)) == (float(sum(values) / len(values)) if values else 0.0)


@pytest.mark.parametrize("count", [7, 600])
def test_columns_do_not_depend_on_the_batches(count):
    whole = log()
    assert fit_columns(cut(whole, count)) == fit_columns(whole)
    assert fit_columns(whole).names() == ["kind=?", "kind=b", "kind=c", "kind=ü|: d", "size", "size=?"]


@pytest.mark.parametrize("count", [7, 600])
def test_pieces_do_not_depend_on_the_batches(count):
    one, other = (
        np.concatenate([rows.contexts for rows in Sample.of(each).pieces(64)]) for each in (log(), cut(log(), count))
    )
    assert one.tobytes() == other.tobytes()


def test_a_column_may_be_missing_in_a_batch_or_have_another_place():
    decided = {"action": [0.5], "density": [1.0], "loss": [0.0]}
    batches = [
        Log.from_table({"kind": pa.nulls(1), "size": [1.0], **decided}),
        Log.from_table({"size": [3.0], **decided}),
        Log.from_table({"kind": ["a"], "size": pa.array([None], pa.string()), **decided}),
        Log.from_table({"size": [5.0], "kind": ["b"], **decided}),
    ]
    (rows,) = Sample.of(batches).pieces()
    missing = {"kind": None, "size": 1}, {"kind": "a", "size": None}
    assert rows.to_dicts() == [missing[0], {"kind": None, "size": 3}, missing[1], {"kind": "b", "size": 5}]
    assert fit_columns(batches).names() == ["kind=?", "kind=a", "kind=b", "size", "size=?"]
    assert rows.contexts[:, -2].tolist() == [1, 3, 3, 5]


def test_numbers_and_text_in_one_column_are_refused():
    decided = {"action": [0.5], "density": [1.0], "loss": [0.0]}
    batches = [Log.from_table({"kind": kind, **decided}) for kind in ([1.0], ["a"])]
    with pytest.raises(InputError, match="column 'kind' has numbers in one batch and text in another"):
        fit_columns(batches)


def test_named_contexts_and_rows_of_numbers_do_not_mix():
    rows = Log(np.zeros((2, 3), np.float32), np.ones(2), np.ones(2), np.ones(2))
    for attempt in (fit_columns, lambda batches: list(Sample.of(batches).pieces())):
        with pytest.raises(InputError, match="All batches must have rows of numbers, or all must have named contexts"):
            attempt([log(), rows])


def test_a_text_of_its_own_in_every_row_takes_bounded_memory(monkeypatch):
    monkeypatch.setattr(column_fitting, "MOST_TEXTS", 40)
    monkeypatch.setattr(column_fitting, "BLOCK", 16)
    names = [f"id{row}" if row % 3 else "common" for row in range(500)]
    whole = Log.from_table({"kind": names, "action": [0.5] * 500, "density": [1.0] * 500, "loss": [0.0] * 500})
    columns = fit_columns(whole)
    assert columns == fit_columns(cut(whole, 7)) == fit_columns(cut(whole, 500))
    assert "kind=common" in columns.names()


def test_an_iterator_is_refused_only_if_contexts_must_be_encoded():
    (rows,) = Sample.of(iter([log()])).pieces()
    assert len(rows.to_dicts()) == 500
    with pytest.raises(ParameterError, match="Encoding named contexts reads the log twice, but log is an iterator"):
        _ = rows.contexts
