"""What is written in one format and read from another is the same log."""

import warnings
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from manul.logs.convert import convert
from manul.logs.log import Log
from tests.logs.formats.logs import ALL, SUFFIXES, dense, narrowed, own, rows, sparse

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NARROW = st.floats(allow_nan=False, allow_infinity=False, width=32)
POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
NAMES = st.text(min_size=1, max_size=8).filter(lambda name: "\x00" not in name and name.isprintable())


def through(log, *paths):
    """The log after it was in each of the files."""
    log.write(paths[0])
    for before, after in pairwise(paths):
        convert(before, after)
    return Log.read(paths[-1])


@pytest.mark.parametrize("second", ALL)
@pytest.mark.parametrize("first", ALL)
def test_a_dense_log_survives_every_pair_of_formats(tmp_path, first, second):
    log = dense()
    assert rows(through(log, tmp_path / f"one{first}", tmp_path / f"two{second}")) == rows(log)


@pytest.mark.parametrize("suffix", [suffix for suffix in ALL if ".vw" not in suffix])
def test_ranges_times_and_ids_survive(tmp_path, suffix):
    log = narrowed()
    assert rows(through(log, tmp_path / f"one{suffix}")) == rows(log)


@pytest.mark.parametrize("suffix", [suffix for suffix in ALL if ".vw" not in suffix])
def test_the_arms_of_a_rollout_survive(tmp_path, suffix):
    arms = ["learner", None, *["baseline"] * 5]
    assert through(dense(arms=arms), tmp_path / f"one{suffix}").arms == arms


@pytest.mark.parametrize("second", SUFFIXES)
@pytest.mark.parametrize("first", SUFFIXES)
def test_a_sparse_log_keeps_its_numbers(tmp_path, first, second):
    log = sparse()
    read = through(log, tmp_path / f"one{first}", tmp_path / f"two{second}")
    assert read.contexts.tobytes() == log.contexts.tobytes()


@pytest.mark.parametrize("second", [".parquet", ".csv", ".jsonl"])
@pytest.mark.parametrize("first", [".parquet", ".csv", ".jsonl"])
def test_columns_of_the_users_own_survive(tmp_path, first, second):
    assert rows(through(own(), tmp_path / f"one{first}", tmp_path / f"two{second}")) == rows(own())


@pytest.mark.parametrize("suffix", [".vw", ".json"])
def test_text_becomes_a_feature_of_vowpal_wabbit(tmp_path, suffix):
    read = through(own(), tmp_path / f"one{suffix}")
    assert list(read.context_rows()) == [{"age": 30.0, "from=Bath": 1.0}, {"from=über|all: x": 1.0}, {"age": 0.25}]


@pytest.mark.parametrize("suffix", ALL)
def test_the_same_log_gives_the_same_bytes(tmp_path, suffix):
    for name in ("one", "two"):
        dense().write(tmp_path / f"{name}{suffix}")
    assert (tmp_path / f"one{suffix}").read_bytes() == (tmp_path / f"two{suffix}").read_bytes()


@pytest.mark.parametrize("suffix", SUFFIXES)
@settings(max_examples=25)
@given(
    lines=st.lists(
        st.tuples(st.lists(NARROW, min_size=2, max_size=2), FLOATS, POSITIVE, FLOATS), min_size=1, max_size=5
    )
)
def test_odd_numbers_survive(suffix, lines):
    contexts, *decided = zip(*lines, strict=True)
    log = Log(np.array(contexts, dtype=np.float32), *(np.array(column) for column in decided))
    with TemporaryDirectory() as folder:
        read = through(log, Path(folder, f"log{suffix}"))
    assert rows(read) == rows(log)


@pytest.mark.parametrize("suffix", [".vw", ".json", ".jsonl", ".parquet"])
@settings(max_examples=25)
@given(name=NAMES, ident=NAMES)
def test_odd_names_survive(suffix, name, ident):
    context = "\\".join(["x", name])
    log = own(id=[ident, None, "b"], **{context: [1.0, 2.0, -0.5]})
    with TemporaryDirectory() as folder:
        read = through(log, Path(folder, f"log{suffix}"))
    assert [row[context] for row in read.context_rows()] == [1.0, 2.0, -0.5]
    assert read.ids == [ident, None, "b"]


def test_parquet_keeps_the_ranges(tmp_path):
    log = through(dense(action_range=(0, 2), loss_range=(-1, 1)), tmp_path / "run.parquet.gz")
    assert (log.action_range, log.loss_range) == ((0, 2), (-1, 1))


def test_what_the_text_of_vowpal_wabbit_cannot_hold_is_said(tmp_path):
    with pytest.warns(UserWarning, match=r"run\.vw omits low, high, time, which Vowpal"):
        narrowed().write(tmp_path / "run.vw")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Log.read(tmp_path / "run.vw").ids == narrowed().ids


def test_a_context_with_nothing_in_it_survives(tmp_path):
    for suffix in SUFFIXES:
        assert through(dense(width=0), tmp_path / f"run{suffix}").contexts.shape == (7, 0)


def test_a_text_column_of_csv_may_begin_with_ten_thousand_blanks(tmp_path):
    lines = ["action,density,loss,kind,none"] + ["0.5,1,0,,"] * 10_050 + ["0.5,1,0,b,"]
    (tmp_path / "log.csv").write_text("\n".join(lines))
    *_, last = Log.batches(tmp_path / "log.csv")
    assert list(last.context_rows())[-1] == {"kind": "b", "none": None}
