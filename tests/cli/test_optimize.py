import json

import pytest
from click.testing import CliRunner

import manul
from manul.cli import main


@pytest.fixture
def optimize(monkeypatch):
    agent = manul.Cats.paper(leaves=4, bandwidth=1 / 4, epsilon=0.2)
    log = manul.simulate(agent, manul.worlds.linear(rounds=300, width=2)).log
    batches = staticmethod(lambda path, size: iter([log]))  # noqa: ARG005
    monkeypatch.setattr(manul.Log, "batches", batches, raising=False)
    return lambda *arguments: CliRunner().invoke(main, ["optimize", "run.parquet", *map(str, arguments)])


def test_the_table_has_a_line_for_each_cell(optimize):
    result = optimize("--grid", "authors", "--rule", "paper")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 1 + 78
    assert result.stdout.count("<- lowest") == 1


def test_the_policy_and_its_table_are_written(optimize, tmp_path):
    answer = json.loads(optimize("--json", "--out", tmp_path / "best.manul").stdout)
    policy = manul.load(tmp_path / "best.manul")
    assert (policy.bandwidth, policy.leaves) == (answer["chosen"]["bandwidth"], answer["chosen"]["leaves"])
    assert len(answer["table"]) == len((tmp_path / "best.csv").read_text().splitlines()) - 1 == 89


def test_a_setting_that_cannot_work_is_a_usage_error(optimize):
    result = optimize("--penalty", "small")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "penalty must be at least 0 and finite, got 'small'. Try 1, or 'paper'.\n"


def test_a_stopped_run_goes_on(optimize, tmp_path):
    first, second = (optimize("--resume", tmp_path / "run").stdout for _ in range(2))
    assert first == second
    assert (tmp_path / "run" / "progress.json").exists()
