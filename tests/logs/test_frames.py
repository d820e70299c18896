"""Logs from and to pandas, polars and Arrow."""

import datetime
import json

import numpy as np
import pandas
import polars
import pyarrow as pa
import pytest
from pyarrow import parquet

from manul.errors import FileError, InputError, ParameterError
from manul.logs.log import Log
from manul.outcomes import Outcome
from tests.logs.formats.logs import dense, narrowed, own, rows, sparse

COLUMNS = {"action": [0.1, 0.2], "density": [1.0, 2.0], "loss": [0.0, 0.5]}
RANGES = {"action_range": (-1.0, 2.0), "loss_range": (-3.0, 4.0)}


def named_features(tmp_path):
    (tmp_path / "log.vw").write_text("ca 0.1:0:1 'a|n x:1\nca 0.2:0.5:2 'b|n y:0.3 odd%20name\nca 0.3:1:0.5 |\n")
    return Log.read(tmp_path / "log.vw")


@pytest.fixture(
    params=["dense", "narrowed", "own", "sparse", "features", "empty", "rewards", "estimated", "floors", "arms"]
)
def log(request, tmp_path):
    if request.param == "features":
        return named_features(tmp_path)
    return {
        "dense": lambda: dense(**RANGES),
        "narrowed": narrowed,
        "own": lambda: own(id=["a", None, "c"], time=[1e9 + 0.1, None, 3.25]),
        "sparse": sparse,
        "empty": lambda: dense(width=0),
        "rewards": lambda: dense(rewards=True),
        "estimated": lambda: dense(densities_estimated=True, rewards=True),
        "floors": lambda: dense(floors=np.array([0.1, np.nan, 0, 0.05, 0.1, 0.1, 0.1])),
        "arms": lambda: dense(arms=["learner", None, *["baseline"] * 5]),
    }[request.param]()


def described(log):
    floors = None if log.floors is None else [*log.floors.astype(object)]
    shown = [
        *rows(log),
        floors,
        log.arms,
        log.rewards is None,
        log.densities_estimated,
        log.contexts.tolist() if log.fields is None else None,
    ]
    return repr(shown)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_a_log_survives(log, kind):
    again = getattr(Log, f"from_{kind}")(getattr(log, f"to_{kind}")())
    assert described(again) == described(log)
    if kind != "polars":
        assert (again.action_range, again.loss_range) == (log.action_range, log.loss_range)


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_frames_have_rewards_and_estimated_densities_under_their_names(kind):
    frame = getattr(dense(rewards=True, densities_estimated=True), f"to_{kind}")()
    names = frame.column_names if kind == "arrow" else [*frame.columns]
    assert names[:3] == ["action", "estimated_density", "reward"]


@pytest.mark.parametrize("outcome", [Outcome("churn"), Outcome("profit", better="high", range=(-1, 4))])
def test_a_frame_of_pandas_keeps_the_name_of_the_outcome(outcome):
    log = Log(np.zeros((2, 1), np.float32), np.ones(2), np.ones(2), np.zeros(2), outcome=outcome)
    assert Log.from_pandas(log.to_pandas()).outcome == outcome


def test_rows_of_numbers_are_columns_of_a_frame():
    assert [*dense(width=2).to_pandas().columns][3:] == ["context_0", "context_1"]
    assert dense(width=2).to_polars().columns[3:] == ["context_0", "context_1"]


def test_a_frame_may_be_filtered_and_shuffled_first():
    frame = pandas.DataFrame({**COLUMNS, "age": [30, 41]})
    assert Log.from_pandas(frame[frame.age > 35].iloc[::-1]).fields["age"].tolist() == [41]


def test_categories_and_times_of_frames_are_read():
    days = pandas.to_datetime(["2024-01-02", "2024-01-03T00:00:00.5"], format="ISO8601")
    frame = pandas.DataFrame({**COLUMNS, "time": days, "city": pandas.Categorical(["Oslo", None])})
    for log in (Log.from_pandas(frame), Log.from_polars(polars.from_pandas(frame))):
        assert log.times.tolist() == [1704153600.0, 1704240000.5]
        assert log.fields["city"].tolist() == ["Oslo", None]


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda frame: frame.set_index("age"), r"index, 'age'. Make it a column with reset_index\(\)"),
        (lambda frame: frame.set_axis(["x", "y"]), "index, without a name"),
        (lambda frame: frame.set_index(["age", "loss"]), "index, 'age', 'loss'"),
        (lambda frame: frame.rename(columns={"age": "loss"}), "two columns named 'loss'"),
        (lambda frame: pandas.concat([frame, frame], axis=1, keys=["a", "b"]), "columns of several levels"),
        (
            lambda frame: frame.assign(age=["x", 3]),
            "field 'age' must have one kind, got text in one context and a number in another",
        ),
        (
            lambda frame: frame.assign(context=[{"a": 1}, None]).drop(columns="age"),
            "context of row 1 must be a mapping",
        ),
        (
            lambda frame: frame.assign(context=[{"a": "x"}, {}]).drop(columns="age"),
            "features of contexts must be numbers",
        ),
    ],
)
def test_a_frame_that_cannot_be_used_is_refused_in_a_sentence(change, sentence):
    with pytest.raises(InputError, match=sentence):
        Log.from_pandas(change(pandas.DataFrame({**COLUMNS, "age": [30, 41]})))


def test_invalid_rows_of_frames_are_refused_or_skipped():
    frame = polars.DataFrame({**COLUMNS, "density": [0.0, 1.0]})
    with pytest.raises(FileError, match="table, row 1: density must be above 0"):
        Log.from_polars(frame)
    assert len(Log.from_polars(frame, skip_bad=True)) == 1


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_another_kind_of_table_is_refused(kind):
    with pytest.raises(ParameterError, match=r"got dict\. Use Log\.from_table for others"):
        getattr(Log, f"from_{kind}")(COLUMNS)


def test_what_is_no_table_is_refused():
    with pytest.raises(InputError, match="table must be an Arrow table, a data frame, or a dict of columns"):
        Log.from_table({"action": [1], "density": [1, 2]})


def test_attributes_of_others_are_ignored():
    frame = pandas.DataFrame({**COLUMNS, "age": [30, 41]})
    frame.attrs["manul"] = 7
    assert Log.from_pandas(frame).action_range is None


def test_a_table_of_arrow_is_a_log():
    assert len(Log.from_arrow(pa.table({**COLUMNS, "age": [30, 41]}))) == 2


DATES = [{"$date": "1970-01-02"}, {"$date": "1970-01-01T01:30+01:00"}]


@pytest.mark.parametrize("kind", ["columns", "rows", "pandas", "polars", "arrow", "log"])
def test_dates_of_json_are_dates(kind):
    table = {"at": DATES, **COLUMNS}
    log = {
        "columns": lambda: Log.from_table(table),
        "rows": lambda: Log.from_table(
            [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
        ),
        "pandas": lambda: Log.from_pandas(pandas.DataFrame(table)),
        "polars": lambda: Log.from_polars(polars.DataFrame(table)),
        "arrow": lambda: Log.from_arrow(pa.table(table)),
        "log": lambda: Log([{"at": date} for date in DATES], *COLUMNS.values()),
    }[kind]()
    zone = datetime.timezone(datetime.timedelta(hours=1))
    expected = [datetime.date(1970, 1, 2), datetime.datetime(1970, 1, 1, 1, 30, tzinfo=zone)]
    assert log.fields["at"].tolist() == expected


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_a_bad_date_of_json_is_a_bad_row(tmp_path, suffix):
    table = pa.table({"at": [DATES[0], {"$date": "2023-02-29"}], **COLUMNS})
    path = tmp_path / f"log{suffix}"
    if suffix == ".parquet":
        parquet.write_table(table, path)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in table.to_pylist()))
    with pytest.raises(FileError, match=r"at must be a date such as \{\"\$date\": \"2024-02-29\"\}, got .*2023-02-29"):
        Log.read(path)
    assert Log.read(path, skip_bad=True).fields["at"].tolist() == [datetime.date(1970, 1, 2)]


def test_a_missing_date_of_json_is_missing():
    log = Log.from_table({"at": [None, DATES[0]], **COLUMNS})
    assert [*map(str, log.fields["at"])] == ["None", "1970-01-02"]
