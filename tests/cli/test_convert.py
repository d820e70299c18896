import numpy as np
import pytest
from click.testing import CliRunner

import manul
from manul.cli import main
from manul.logs.log import Log
from tests.logs.formats.logs import dense, narrowed, rows


def manul_convert(*arguments):
    return CliRunner().invoke(main, ["convert", *map(str, arguments)])


def test_a_log_is_written_in_another_format(tmp_path):
    dense().write(tmp_path / "run.vw")
    result = manul_convert(tmp_path / "run.vw", tmp_path / "run.parquet")
    assert (result.exit_code, result.stdout) == (0, f"{tmp_path / 'run.parquet'}: 7 rows\n")
    assert "rows/s" in result.stderr
    assert rows(Log.read(tmp_path / "run.parquet")) == rows(dense())


def test_declared_ranges_are_kept(tmp_path):
    dense().write(tmp_path / "run.csv")
    manul_convert(tmp_path / "run.csv", tmp_path / "run.parquet", "--actions", 0, 2, "--losses", -1, 1)
    log = Log.read(tmp_path / "run.parquet")
    assert (log.action_range, log.loss_range) == ((0, 2), (-1, 1))


def test_a_bad_row_stops_it_and_leaves_no_file(tmp_path):
    (tmp_path / "run.vw").write_text("ca 1:1:1 | 0:1\nca 1:1:0 | 0:1\n")
    result = manul_convert(tmp_path / "run.vw", tmp_path / "run.csv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"{tmp_path / 'run.vw'}, row 2: density must be above 0 and finite, got 0.0. Fix the row" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["run.vw"]


def test_skip_bad_counts_what_it_skips(tmp_path):
    (tmp_path / "run.vw").write_text("ca 1:1:1 | 0:1\nca 1:1:0 | 0:1\nwhat\n")
    result = manul_convert(tmp_path / "run.vw", tmp_path / "run.csv", "--skip-bad")
    assert result.stdout == f"{tmp_path / 'run.csv'}: 1 row, 2 invalid rows skipped\n"


def test_what_is_left_out_is_said(tmp_path):
    narrowed().write(tmp_path / "run.parquet")
    result = manul_convert(tmp_path / "run.parquet", tmp_path / "run.vw")
    assert (result.exit_code, "run.vw omits low, high, time, " in result.stderr) == (0, True)


def test_predictions_of_vowpal_wabbit_are_joined_with_their_features(tmp_path):
    (tmp_path / "log.acp").write_text("0.5:0.25:1\n")
    (tmp_path / "data.vw").write_text("0.75 |house cold:3\n")
    result = manul_convert(tmp_path / "log.acp", tmp_path / "run.jsonl", "--features", tmp_path / "data.vw")
    assert result.exit_code == 0
    assert list(Log.read(tmp_path / "run.jsonl").context_rows()) == [{"house^cold": 3.0}]


@pytest.mark.parametrize(("source", "target"), [("run.csv", "run.xls"), ("run.doc", "run.csv"), ("run.csv", "run.csv")])
def test_names_that_cannot_be_are_a_usage_error(tmp_path, source, target):
    dense().write(tmp_path / "run.csv")
    before = (tmp_path / "run.csv").read_bytes()
    result = manul_convert(tmp_path / source, tmp_path / target)
    assert (result.exit_code, result.stdout) == (2, "")
    assert (tmp_path / "run.csv").read_bytes() == before


def test_an_impossible_range_is_a_usage_error(tmp_path):
    dense().write(tmp_path / "run.csv")
    result = manul_convert(tmp_path / "run.csv", tmp_path / "run.vw", "--actions", 2, 1)
    assert result.exit_code == 2
    assert "--actions must be finite with low < high, got (2.0, 1.0)" in result.stderr


def test_densities_are_estimated_and_the_log_says_so(tmp_path):
    lines = [f"{index % 7},{(index * 0.37) % 1},{(index * 0.61) % 1}" for index in range(200)]
    (tmp_path / "history.csv").write_text("\n".join(["age,action,loss", *lines]) + "\n")
    refused = manul_convert(tmp_path / "history.csv", tmp_path / "log.parquet")
    assert (refused.exit_code, "--estimate-density" in refused.stderr) == (1, True)
    result = manul_convert(tmp_path / "history.csv", tmp_path / "log.parquet", "--estimate-density")
    assert result.stdout == f"{tmp_path / 'log.parquet'}: 200 rows\n"
    assert Log.read(tmp_path / "log.parquet").densities_estimated
    manul_convert(tmp_path / "history.csv", tmp_path / "last.parquet", "--estimate-density", "--last", 0.2)
    assert len(Log.read(tmp_path / "last.parquet")) == 40


KNOBS = {"price": (10, 50), "days": manul.Stepped(1, 14, 1), "kind": manul.Choice(["a", 2])}
KNOBS_JSON = '{"price": [10, 50], "days": {"low": 1, "high": 14, "step": 1}, "kind": {"options": ["a", 2]}}'


@pytest.fixture
def knob_log():
    drawn = manul.Auto(actions=KNOBS, seed=7).decide_many(np.zeros((40, 2), np.float32))
    return manul.Log(
        np.zeros((40, 2), np.float32),
        drawn.actions,
        drawn.densities,
        np.linspace(0, 1, 40),
        knobs=KNOBS,
        densities_by_knob=drawn.densities_by_knob,
    )


def test_a_log_with_several_knobs_is_the_same_after_a_tour_of_the_formats(knob_log, tmp_path):
    knob_log.write(tmp_path / "0.parquet")
    for source, target in (("0.parquet", "1.csv"), ("1.csv", "2.jsonl.gz"), ("2.jsonl.gz", "3.parquet")):
        knobs = [] if source == "0.parquet" else ["--knobs", KNOBS_JSON]
        result = CliRunner().invoke(main, ["convert", str(tmp_path / source), str(tmp_path / target), *knobs])
        assert result.exit_code == 0, result.stderr
    assert manul.Log.read(tmp_path / "3.parquet").table.equals(knob_log.table, check_metadata=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "sets the knobs price, days, kind but does not say their ranges."),
        (["--knobs", "{"], "--knobs must be JSON such as"),
        (["--knobs", "3"], "--knobs must be JSON such as"),
        (["--knobs", '{"price": 3}'], "--knobs: price must be two numbers (low, high), got 3."),
        (["--knobs", '{"price": {"low": 1}}'], "--knobs: price must have a high too."),
        (["--knobs", '{"price": [50, 10]}'], "--knobs: "),
        (["--knobs", '{"a": [1, 2], "a": [1, 3]}'], "--knobs: actions must have one knob per name."),
        (["--knobs", '{"price": [10, 50]}'], "has an unknown knob 'days'. The knobs are price."),
        (
            ["--knobs", KNOBS_JSON, "--actions", "0", "1"],
            "--actions is for logs with one knob; this one has several.",
        ),
        (["--knobs", KNOBS_JSON, "--estimate-density"], "Estimating densities takes logs with one knob"),
    ],
)
def test_what_does_not_fit_several_knobs_is_refused_in_a_sentence(knob_log, tmp_path, options, sentence):
    knob_log.write(tmp_path / "log.csv")
    result = CliRunner().invoke(main, ["convert", str(tmp_path / "log.csv"), str(tmp_path / "log.parquet"), *options])
    assert result.exit_code != 0
    assert sentence in result.stderr
    assert not (tmp_path / "log.parquet").exists()


def test_vowpal_wabbit_does_not_take_several_knobs(knob_log, tmp_path):
    knob_log.write(tmp_path / "log.parquet")
    result = CliRunner().invoke(main, ["convert", str(tmp_path / "log.parquet"), str(tmp_path / "log.vw")])
    assert result.exit_code != 0
    assert "Vowpal Wabbit has one number per action and cannot store the knobs price, days, kind." in result.stderr


def test_a_log_with_several_knobs_is_checked(knob_log, tmp_path):
    knob_log.write(tmp_path / "log.csv")
    result = CliRunner().invoke(main, ["check", str(tmp_path / "log.csv"), "--knobs", KNOBS_JSON])
    assert result.exit_code == 0, result.stderr
    assert "note: several knobs." in result.stdout
