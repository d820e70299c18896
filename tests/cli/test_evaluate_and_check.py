import json

import pytest
from click.testing import CliRunner

import manul
from manul.cli import main
from manul.offpolicy import Finding, doctor
from manul.offpolicy.evaluation import report
from manul.offpolicy.evaluation.intervals import INTERVALS


@pytest.fixture(scope="module")
def log():
    return manul.simulate(manul.Cats(leaves=8, bandwidth=1 / 8, epsilon=0.0), manul.worlds.linear(rounds=4000)).log


def test_the_table_has_one_line_per_estimator_and_objection(log):
    estimates = [manul.evaluate(lambda _: 0.5, log, name, "normal", bandwidth=0.25) for name in ("ips", "snips")]
    lines = report.estimates_table(estimates).splitlines()
    assert [line.split()[0] for line in lines] == ["estimator", "ips", "snips", "warning:"]
    assert f"{estimates[1].value:.4f}" in lines[2]


def test_the_json_has_every_field(log):
    estimate = manul.evaluate(lambda _: 0.5, log, "ips", "normal", bandwidth=0.25)
    (stored,) = json.loads(report.estimates_json([estimate]))["estimates"]
    stored["objections"] = tuple(manul.offpolicy.Objection(**objection) for objection in stored["objections"])
    assert estimate.objections
    assert stored.pop("rewards") is False
    assert manul.Estimate(**stored, outcome=log.outcome) == estimate


def test_findings_say_in_json_whether_the_log_is_fit(log):
    found = json.loads(report.findings_json(doctor(log)))
    assert not found["fit"]
    assert Finding(**found["findings"][0]).title == "missing exploration"


@pytest.mark.parametrize("command", ["evaluate", "check"])
def test_help_says_what_a_command_does(command):
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert "--json" in result.stdout


def test_a_policy_that_is_not_there_is_one_sentence(tmp_path):
    result = CliRunner().invoke(main, ["evaluate", str(tmp_path / "none.manul"), str(tmp_path / "log.parquet")])
    assert (result.exit_code, result.stderr.count("\n")) == (1, 1)
    assert ": no such file" in result.stderr


def test_a_log_is_read_once_per_pass(tmp_path, monkeypatch):
    world = manul.worlds.linear(rounds=200, width=2)
    run = manul.simulate(manul.Cats(leaves=8, bandwidth=1 / 8), world)
    path, policy = tmp_path / "run.parquet", tmp_path / "policy.manul"
    run.log.write(path)
    manul.Cats(leaves=8, bandwidth=1 / 8).save(policy)
    opened = []
    monkeypatch.setattr(manul.Log, "batches", lambda path, *_, **_options: opened.append(path) or iter([run.log]))
    estimators = [word for name in ("ips", "snips", "dr") for word in ("--estimator", name)]
    CliRunner().invoke(main, ["evaluate", str(policy), str(path), *estimators], catch_exceptions=False)
    # For each estimator, a look at the first rows and a pass; dr also counts and fits its model.
    assert len(opened) == 3 * 2 + 3


@pytest.fixture
def files(tmp_path):
    log = manul.simulate(manul.Cats(leaves=8, bandwidth=1 / 8, epsilon=0.5), manul.worlds.linear(rounds=2000)).log
    log.write(tmp_path / "run.parquet")
    for name, bandwidth in (("narrow", 1 / 8), ("wide", 1 / 2)):
        manul.Cats(leaves=8, bandwidth=bandwidth).save(tmp_path / f"{name}.manul")
    return tmp_path


def run(*words):
    return CliRunner().invoke(main, ["evaluate", *map(str, words)], catch_exceptions=False)


def test_the_command_knows_every_interval():
    (interval,) = (parameter for parameter in main.get_command(None, "evaluate").params if parameter.name == "interval")
    assert {*interval.type.choices} == {*INTERVALS.names()}


def test_several_policies_are_compared(files):
    result = run(files / "narrow.manul", files / "wide.manul", files / "run.parquet", "--json")
    rows = json.loads(result.stdout)["comparisons"]
    assert [(row["policy"], row["against"]) for row in rows] == [("narrow", "logged"), ("wide", "logged")]
    assert rows[0]["low"] <= rows[0]["difference"] <= rows[0]["high"]


def test_policies_are_compared_with_one_of_them_by_name(files):
    result = run(files / "narrow.manul", files / "wide.manul", files / "run.parquet", "--against", "wide")
    assert result.stdout.splitlines()[1].split()[:2] == ["narrow", "wide"]


def test_an_option_that_a_comparison_does_not_use_is_refused(files):
    result = run(files / "narrow.manul", files / "run.parquet", "--against", "logged", "--interval", "normal")
    assert result.exit_code == 2
    assert "apply to one policy" in result.stderr


def test_policies_without_a_log_are_refused(files):
    result = run(files / "narrow.manul", files / "wide.manul")
    assert (result.exit_code, "missing argument LOGS" in result.stderr) == (2, True)


def test_an_estimate_that_must_not_be_used_is_printed_and_exits_with_1(files):
    log = manul.Log.read(files / "run.parquet")
    wrong = manul.Log(log.contexts, log.actions, log.densities / 4, log.losses)
    wrong.write(files / "wrong.parquet")
    for options in ((), ("--against", "logged"), ("--json",)):
        result = run(files / "wide.manul", files / "wrong.parquet", *options)
        assert result.exit_code == 1
        assert "not 1." in result.stdout


def test_check_tests_the_weights_of_a_policy(tmp_path):
    run = manul.simulate(manul.Cats(leaves=8, bandwidth=1 / 8, epsilon=0.2), manul.worlds.linear(rounds=3000, width=2))
    run.log.write(tmp_path / "run.parquet")
    manul.Cats(leaves=8, bandwidth=1 / 4).save(tmp_path / "near.manul")
    manul.Cats(leaves=256, bandwidth=1 / 2000, epsilon=0.0, seed=1).save(tmp_path / "far.manul")
    near, far = (
        CliRunner().invoke(main, ["check", str(tmp_path / "run.parquet"), "--policy", str(tmp_path / f"{name}.manul")])
        for name in ("near", "far")
    )
    assert (near.exit_code, far.exit_code, near.stderr) == (0, 1, "")
    assert "note: weights of the policy. This policy has mean weight" in near.stdout
    assert near.stdout.endswith("No problems found: the log is suitable for off-policy evaluation.\n")
    assert "error: small effective sample" in far.stdout
