"""`manul evaluate` and `manul optimize` on a log with several knobs."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import manul
from manul.cli import main

KNOBS = {"price": (10, 50), "template": manul.Choice(["a", "b"])}


@pytest.fixture
def run(tmp_path):
    rng = np.random.default_rng(0)
    actions = {"price": rng.uniform(10, 50, 600), "template": rng.choice(np.array(["a", "b"], object), 600)}
    losses = 0.2 + 0.5 * abs(actions["price"] - 30) / 20
    log = manul.Log(rng.random((600, 2), np.float32), actions, np.full(600, 1 / 80), losses, knobs=KNOBS)
    log.rows(slice(450)).write(tmp_path / "run.parquet")
    log.rows(slice(450, None)).write(tmp_path / "later.parquet")
    paths = {"log": tmp_path / "run.parquet", "later": tmp_path / "later.parquet", "policy": tmp_path / "best.manul"}
    return lambda command: CliRunner().invoke(main, command.format(**paths).split())


def test_optimize_writes_a_policy_that_evaluate_reads(run):
    result = run("optimize {log} --out {policy} --json")
    assert (result.exit_code, json.loads(result.stdout)["verdict"]["status"]) == (0, "rests on a model")
    result = run("evaluate {policy} {later}")
    assert (result.exit_code, result.stdout.splitlines()[1].split()[:2]) == (0, ["dm", result.stdout.split()[13]])
    assert result.stdout.splitlines()[2].startswith("warning: rests on a model. Weights average ")


def test_an_estimate_on_the_rows_of_the_training_exits_with_1(run):
    assert run("optimize {log} --out {policy}").exit_code == 0
    result = run("evaluate {policy} {log}")
    assert result.exit_code == 1
    assert "error: trained on these rows. The policy was trained on about 100 % of these rows" in result.stdout


def test_refused_weights_exit_with_1(run):
    assert run("optimize {log} --out {policy}").exit_code == 0
    result = run("evaluate {policy} {log} --estimator snips")
    assert result.exit_code == 1
    assert "Weights average" in result.output or "density 0 at every logged action" in result.output


def test_an_estimate_without_an_interval_is_null_in_json(run):
    assert run("optimize {log} --out {policy}").exit_code == 0
    (estimate,) = json.loads(run("evaluate {policy} {log} --json").stdout)["estimates"]
    assert (estimate["interval"], estimate["low"], estimate["high"]) == ("none", None, None)


@pytest.mark.parametrize(
    "option", ["--candidate cats", "--leaves 8 --bandwidths 1/8", "--actions 0 1", "--plot map.png"]
)
def test_what_applies_to_one_knob_is_refused(run, option):
    result = run(f"optimize {{log}} {option}")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
