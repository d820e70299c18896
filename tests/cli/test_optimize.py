import json

import pytest
from click.testing import CliRunner

import manul
from manul.cli import main


@pytest.fixture
def optimize(monkeypatch):
    agent = manul.Cats.paper(leaves=4, bandwidth=1 / 4, epsilon=0.2)
    log = manul.simulate(agent, manul.worlds.linear(rounds=300, width=2)).log
    batches = staticmethod(lambda *path, **options: [log])  # noqa: ARG005
    monkeypatch.setattr(manul.Log, "batches", batches, raising=False)
    return lambda *arguments: CliRunner().invoke(main, ["optimize", "run.parquet", *map(str, arguments)])


def test_the_table_has_a_line_for_each_of_the_ten_best_cells(optimize):
    result = optimize("--grid", "authors", "--rule", "paper", "--penalty", "1")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 1 + 10 + 1
    assert result.stdout.endswith("and 68 more candidates\n")
    assert result.stdout.count("<- lowest") == 1


def test_the_policy_and_its_table_are_written(optimize, tmp_path):
    arguments = ("--grid", "paper", "--penalty", "1", "--json", "--out", tmp_path / "best.manul")
    answer = json.loads(optimize(*arguments).stdout)
    policy = manul.load(tmp_path / "best.manul")
    assert (policy.bandwidth, policy.leaves) == (answer["chosen"]["bandwidth"], answer["chosen"]["leaves"])
    assert len(answer["table"]) == len((tmp_path / "best.csv").read_text().splitlines()) - 1 == 89


def test_the_critic_competes_with_trees_and_the_verdict_is_a_sentence(optimize):
    lines = optimize().stdout.splitlines()
    assert lines[1].startswith("auto ")
    assert sum(line.endswith("<- chosen") for line in lines) == 1
    assert lines[-1].startswith(
        "This log cannot tell whether the policy is better than the logged one: 25 of 300 decisions"
    )
    assert lines[-1].endswith("Try it on a share of the decisions to find out.")  # how long is not known either


def test_the_verdict_is_in_the_json(optimize):
    answer = json.loads(optimize("--candidate", "auto", "--json").stdout)
    assert answer["verdict"]["status"] in ("proven", "likely", "not shown")
    assert {row["candidate"] for row in answer["table"]} == {"auto"}


def test_a_setting_that_cannot_work_is_a_usage_error(optimize):
    result = optimize("--penalty", "small")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "--penalty must be at least 0 and finite, got 'small'. Try 1, 'paper' or 'measured'.\n"


def test_a_stopped_run_goes_on(optimize, tmp_path):
    first, second = (optimize("--resume", tmp_path / "run").stdout for _ in range(2))
    assert first == second
    assert (tmp_path / "run" / "progress.json").exists()


def test_json_has_null_for_what_is_not_known(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("x,action,density,loss\n1,0.5,1,0.25\n")
    result = CliRunner().invoke(main, ["optimize", str(path), "--candidate", "auto", "--json"])
    row = json.loads(result.stdout, parse_constant=pytest.fail)["table"][0]
    assert (row["estimate"], row["objective"]) == (None, None)


def test_a_plot_without_trees_is_refused_before_training(optimize, monkeypatch, tmp_path):
    monkeypatch.setattr(manul, "optimize", pytest.fail)
    result = optimize("--candidate", "auto", "--plot", tmp_path / "map.png")
    assert (result.exit_code, result.stderr) == (2, "plot needs trees, but there are none among the candidates.\n")


def test_a_log_that_cannot_show_anything_exits_with_1(tmp_path):
    path = tmp_path / "constant.csv"
    path.write_text("x,action,density,loss\n" + "1,0.5,1,0.25\n" * 40)
    result = CliRunner().invoke(main, ["optimize", str(path), "--candidate", "auto"])
    assert result.exit_code == 1
    assert "This log cannot show a gain over the logged policy. All 40 logged actions are 0.5" in result.stdout
