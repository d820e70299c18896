"""Logs with several knobs come back equal from every format that can hold them."""

import pytest

from manul import Choice, Log
from manul.errors import FileError
from manul.logs.log import LogWriter
from tests.logs.formats.knob_logs import contents, knob_log

SUFFIXES = [".parquet", ".jsonl", ".csv", ".csv.gz"]
SEEDS = range(25)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_log_comes_back_equal_from_a_file(seed, suffix, tmp_path):
    log = knob_log(seed)
    log.write(tmp_path / f"log{suffix}")
    again = Log.read(tmp_path / f"log{suffix}", knobs=log.knobs)
    assert contents(again) == contents(log)
    assert again.table.equals(log.table, check_metadata=True)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_log_comes_back_equal_from_frames(seed):
    log = knob_log(seed)
    assert contents(Log.from_pandas(log.to_pandas())) == contents(log)
    assert contents(Log.from_arrow(log.to_arrow())) == contents(log)
    assert contents(Log.from_polars(log.to_polars(), knobs=log.knobs)) == contents(log)


def test_parquet_records_the_knobs(tmp_path):
    log = knob_log(3)
    log.write(tmp_path / "log.parquet")
    assert Log.read(tmp_path / "log.parquet").knobs == log.knobs


@pytest.mark.parametrize("suffix", [".jsonl", ".csv"])
def test_text_files_without_knobs_are_refused(suffix, tmp_path):
    knob_log(3).write(tmp_path / f"log{suffix}")
    with pytest.raises(FileError, match=r"does not say their ranges. Declare them with knobs=\{...\}"):
        Log.read(tmp_path / f"log{suffix}")


@pytest.mark.parametrize("suffix", [".vw", ".json", ".dsjson"])
def test_formats_of_vowpal_wabbit_refuse_several_knobs(suffix, tmp_path):
    log = knob_log(3)
    with pytest.raises(FileError, match="one number per action and cannot store the knobs"):
        log.write(tmp_path / f"log{suffix}")
    assert not [*tmp_path.iterdir()]
    with pytest.raises(FileError, match="one number per action and cannot store the knobs"):
        Log.read(tmp_path / f"log{suffix}", knobs=log.knobs)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_parts_and_appended_rows_are_the_whole(suffix, tmp_path):
    log, path = knob_log(4, rows=12), tmp_path / f"log{suffix}"
    log.rows(slice(5)).write(path)
    with LogWriter(path, append=True, knobs=log.knobs) as writer:
        writer.write(log.rows(slice(5, None)))
    batches = [*Log.batches(path, 3, knobs=log.knobs)]
    assert len(batches[0]) == 3
    assert contents(Log.concat(batches)) == contents(log)


def test_splits_keep_the_knobs():
    log = knob_log(4, rows=12)
    first, second = log.split(0.5, by="random", seed=3)
    assert len(first) == len(second) == 6
    assert first.knobs == second.knobs == log.knobs


def test_logs_with_other_knobs_are_not_joined():
    one, other = (Log([[1.0]], {"n": [1]}, [1.0], [0.5], knobs={"n": Choice(c)}) for c in ([1, 2], [1, 3]))
    with pytest.raises(ValueError, match="logs must all have the same knobs"):
        Log.concat([one, other])


def test_a_context_named_like_a_knobs_column_is_refused_by_csv_and_kept_by_others(tmp_path):
    columns = {"action": [{"price": 3.0}], "density": [1.0], "loss": [0.5], "action.old": [2.0]}
    log = Log.from_table(columns, knobs={"price": (0, 9)})
    with pytest.raises(FileError, match=r"the context 'action.old' has the name of a knob's column"):
        log.write(tmp_path / "log.csv")
    with pytest.raises(FileError, match=r"the context 'action.old' has the name of a knob's column"):
        log.to_pandas()
    log.write(tmp_path / "log.jsonl")
    assert contents(Log.read(tmp_path / "log.jsonl", knobs=log.knobs)) == contents(log)


def test_a_log_with_one_knob_may_have_such_columns():
    columns = {
        "action": [3.0],
        "density": [1.0],
        "loss": [0.5],
        "action.old": [2.0],
        "within": ["x"],
        "density.old": [1.0],
    }
    assert next(Log.from_table(columns).context_rows()) == {"action.old": 2.0, "within": "x", "density.old": 1.0}
