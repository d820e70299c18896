"""A log keeps its columns together, in memory and in files of any size."""

import datetime
import os
import subprocess
import sys
import tracemalloc
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest

import manul
from manul.errors import FileError, InputError, ParameterError
from manul.logs.formats import csv
from manul.logs.log import Log, LogWriter
from tests.logs.formats.logs import SUFFIXES, dense, narrowed, own, rows, sparse

COLUMNS = (np.zeros((4, 2), np.float32), np.arange(4.0), np.ones(4), np.ones(4))


def test_a_split_keeps_the_ranges():
    train, held_out = Log(*COLUMNS, lows=np.arange(4.0), highs=np.arange(4.0) + 1).split(0.75)
    assert train.lows.tolist() == [0, 1, 2]
    assert held_out.highs.tolist() == [4]


def test_a_log_without_ranges_stays_without():
    assert Log(*COLUMNS).split(0.5)[0].lows is None


@pytest.mark.parametrize("ranges", [{"lows": np.zeros(4)}, {"lows": np.zeros(3), "highs": np.ones(3)}])
def test_half_a_range_is_refused(ranges):
    with pytest.raises(ParameterError, match=r"must have one length|must both be given"):
        Log(*COLUMNS, **ranges)


def test_a_split_by_time_puts_the_earliest_first():
    log = Log(*COLUMNS, times=np.array([3.0, 1.0, 2.0, 1.0]))
    train, held_out = log.split(0.5, by="time")
    assert train.actions.tolist() == [1, 3]
    assert held_out.actions.tolist() == [2, 0]


def test_a_random_split_is_the_seeds_and_loses_nothing():
    log = dense(rows=100)
    parts = log.split(0.8, by="random", seed=5)
    assert [rows(part) for part in parts] == [rows(part) for part in log.split(0.8, by="random", seed=5)]
    assert parts[0].losses.tolist() != log.split(0.8, by="random", seed=6)[0].losses.tolist()
    assert sorted([*parts[0].losses, *parts[1].losses]) == sorted(log.losses)
    assert [len(part) for part in parts] == [80, 20]


@pytest.mark.parametrize(
    ("by", "times", "error"),
    [("time", None, "has no times"), ("time", [0, np.nan, 1, 2], "row 1 has none"), ("luck", None, "by must be")],
)
def test_a_split_that_cannot_be_is_refused(by, times, error):
    with pytest.raises((InputError, ParameterError), match=error):
        Log(*COLUMNS, times=None if times is None else np.array(times, dtype=float)).split(0.5, by=by)


def test_a_log_joined_from_its_parts_is_the_log():
    for log in (narrowed(), own(), sparse()):
        assert rows(Log.concat([*log.split(0.5)])) == rows(log)


def test_logs_of_different_columns_do_not_join():
    for other in (dense(width=4), own(), narrowed()):
        with pytest.raises(InputError, match="logs must have the same columns, got 3 numbers per context and "):
            Log.concat([dense(), other])


def test_joined_logs_have_a_range_that_holds_both():
    ranges = [{"action_range": (0, 1)}, {"action_range": (0.5, 2), "loss_range": (0, 1)}]
    joined = Log.concat([dense(**said) for said in ranges])
    assert (joined.action_range, joined.loss_range) == ((0, 2), None)


def test_arrays_become_a_table_without_a_copy():
    log = dense()
    assert log.table["action"].chunk(0).buffers()[1].address == log.actions.ctypes.data
    assert log.table.schema.field("context").type == pa.list_(pa.float32(), 3)


def test_columns_of_text_are_named_when_numbers_are_asked_for():
    with pytest.raises(InputError, match=r"Column 'from' has values such as 'Bath', so contexts are not numbers\."):
        _ = own().contexts


def test_a_missing_number_is_nan_in_the_matrix():
    log = Log.from_table({"a": [1, None], "b": [True, False], "action": [0, 1], "density": [1, 1], "loss": [0, 1]})
    assert np.array_equal(log.contexts, [[1, 1], [np.nan, 0]], equal_nan=True)


def test_a_data_frames_times_become_seconds():
    times = pa.array([1, 2_500_000], pa.timestamp("us"))
    log = Log.from_table(pa.table({"time": times, "action": [0, 1], "density": [1, 1], "loss": [0, 1]}))
    assert log.times.tolist() == [1e-6, 2.5]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_batches_hold_every_row_in_order(tmp_path, suffix):
    log = dense(rows=23)
    log.write(tmp_path / f"run{suffix}")
    batches = Log.batches(tmp_path / f"run{suffix}", 5)
    assert [len(batch) for batch in batches] == [5, 5, 5, 5, 3]
    assert rows(Log.concat(list(batches))) == rows(log)


def write_and_fail(writer):
    writer.write(dense())
    raise KeyError


def test_a_writer_that_meets_an_error_leaves_what_was_there(tmp_path):
    for suffix in (*SUFFIXES, ".parquet.gz"):
        path = tmp_path / f"run{suffix}"
        path.write_text("before")
        with pytest.raises(KeyError), LogWriter(path) as writer:
            write_and_fail(writer)
        assert path.read_text() == "before"
    assert len(list(tmp_path.iterdir())) == len(SUFFIXES) + 1


def test_appending_keeps_the_rows_before(tmp_path):
    for suffix in SUFFIXES:
        path = tmp_path / f"run{suffix}"
        for seed in (1, 2):
            with LogWriter(path, append=True) as writer:
                writer.write(dense(seed=seed))
        assert rows(Log.read(path)) == rows(Log.concat([dense(seed=1), dense(seed=2)]))


def test_what_could_not_be_read_again_is_not_written(tmp_path):
    log = Log(COLUMNS[0], COLUMNS[1], np.array([1.0, 0.0, 1.0, 1.0]), COLUMNS[3])
    with pytest.raises(FileError, match=r"run\.csv, row 2: density must be above 0 and finite, got 0\.0"):
        log.write(tmp_path / "run.csv")
    with pytest.raises(FileError, match="must have at least one valid row"):
        dense(rows=0).write(tmp_path / "run.csv")
    with pytest.raises(FileError, match=r"Cannot write .*: No such file"):
        dense().write(tmp_path / "missing" / "run.csv")
    assert list(tmp_path.iterdir()) == []


def test_batches_of_another_width_do_not_fit_into_a_file(tmp_path):
    with pytest.raises(InputError, match="the same columns"), LogWriter(tmp_path / "run.csv") as writer:
        [writer.write(dense(width=width)) for width in (3, 4)]
    assert list(tmp_path.iterdir()) == []


def peak(path):
    """The most memory that Python and Arrow held at once while a file was streamed."""
    pool = pa.default_memory_pool()
    before, arrow = pool.bytes_allocated(), 0
    tracemalloc.start()
    for batch in Log.batches(path, 250):
        assert batch.contexts.shape[1] == 20
        arrow = max(arrow, pool.bytes_allocated() - before)
    python = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return arrow + python


@pytest.mark.whole
@pytest.mark.parametrize("suffix", SUFFIXES)
def test_streaming_a_log_ten_times_as_long_needs_no_more_memory(tmp_path, suffix, monkeypatch):
    monkeypatch.setattr(csv, "SAMPLE", 250)
    for times in (1, 10):
        with LogWriter(tmp_path / f"{times}{suffix}") as writer:
            for seed in range(2 * times):
                writer.write(dense(rows=250, width=20, seed=seed))
    peak(tmp_path / f"1{suffix}")
    short, long = (peak(tmp_path / f"{times}{suffix}") for times in (1, 10))
    assert long < 1.2 * short + 2**16


def test_a_simulations_log_says_its_ranges_and_is_written(tmp_path):
    agent = manul.Cats(actions=(0, 32), leaves=16, bandwidth=4.0)
    log = manul.simulate(agent, manul.worlds.linear(rounds=50, width=3)).log
    log.write(tmp_path / "run.parquet")
    read = Log.read(tmp_path / "run.parquet")
    assert (read.action_range, rows(read)) == ((0, 32), rows(log))
    agent.learn_many(read.contexts, manul.Decisions(read.actions, read.densities), read.losses)


@pytest.mark.whole
def test_importing_manul_imports_no_arrow():
    code = "import sys, manul; sys.exit('pyarrow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], env=os.environ).returncode == 0


@pytest.mark.parametrize("read", [Log.read, lambda path, **options: Log.concat([*Log.batches(path, 3, **options)])])
def test_a_format_is_read_whatever_the_file_is_called(read, tmp_path):
    (tmp_path / "train.dat").write_text("ca 21.4:0.3:0.24 |house cold:3\nca 1:0.5:0.1 | \n")
    assert read(tmp_path / "train.dat", format="vw").actions.tolist() == [21.4, 1.0]
    with pytest.raises(ParameterError, match=r"unknown suffix '.dat'.* use format='vw' or another name"):
        read(tmp_path / "train.dat")
    with pytest.raises(ParameterError, match=r"format must be 'csv', .* got 'vowpal'"):
        read(tmp_path / "train.dat", format="vowpal")


def dated(*values):
    return Log([{"at": value} for value in values], *np.ones((3, len(values))))


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_a_batch_with_missing_dates_only_is_written_after_others(tmp_path, suffix):
    day = datetime.date(2024, 2, 29)
    with LogWriter(tmp_path / f"run{suffix}") as writer:
        writer.write(dated(day, None))
        writer.write(dated(None))
    assert Log.read(tmp_path / f"run{suffix}").fields["at"].tolist() == [day, None, None]


def test_a_batch_whose_fields_have_wider_types_is_refused_in_a_sentence(tmp_path):
    with LogWriter(tmp_path / "run.parquet") as writer:
        writer.write(dated(datetime.date(2024, 2, 29)))
        with pytest.raises(FileError, match=r"the field 'at' is date32\[day\] in the first batch and timestamp"):
            writer.write(dated(datetime.datetime(2024, 2, 29, 12)))


def test_logs_of_times_of_several_zones_are_joined():
    times = [datetime.datetime(2024, 2, 29, 12, tzinfo=ZoneInfo(zone)) for zone in ("Europe/Oslo", "Asia/Tokyo")]
    joined = Log.concat([dated(time) for time in times])
    assert joined.schema.fields["at"].zone == "offsets"
    assert [time.utcoffset() for time in joined.fields["at"]] == [time.utcoffset() for time in times]
