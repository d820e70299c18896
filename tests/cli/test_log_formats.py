"""`--format`: logs and tables whose suffix does not say their format."""

import gzip
import json

import numpy as np
import pytest
from click.testing import CliRunner

import manul
from manul.cli import main
from manul.logs.formats import format_names
from tests.logs.formats.logs import dense, rows

READERS = {
    "check": ["check", "LOG"],
    "evaluate": ["evaluate", "policy.manul", "LOG"],
    "optimize": ["optimize", "LOG", "--candidate", "cats", "--bandwidths", "1/4", "--leaves", "8"],
    "convert": ["convert", "LOG", "out.csv"],
    "inspect": ["inspect", "policy.manul", "--data", "LOG"],
}


def invoked(*words):
    return CliRunner().invoke(main, [*words], catch_exceptions=False)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("formats")
    agent = manul.Cats(leaves=8, bandwidth=1 / 8)
    log = manul.simulate(agent, manul.worlds.linear(rounds=200)).log
    manul.Log(log.contexts, log.actions, log.densities, log.losses).write(folder / "log.vw")
    agent.save(folder / "policy.manul")
    (folder / "log.dat").write_bytes((folder / "log.vw").read_bytes())
    (folder / "log.acpx.gz").write_bytes(gzip.compress((folder / "log.vw").read_bytes()))
    return folder


@pytest.mark.parametrize("name", ["log.dat", "log.acpx.gz"])
@pytest.mark.parametrize("command", READERS)
def test_every_command_reads_a_log_of_any_name(made, command, name, monkeypatch):
    monkeypatch.chdir(made)
    outputs = []
    for log, option in (("log.vw", []), (name, ["--format", "vw"])):
        words = [log if word == "LOG" else word for word in READERS[command]]
        outputs.append(invoked(*words, *option))
    assert outputs[1].stdout == outputs[0].stdout
    assert outputs[1].exit_code == outputs[0].exit_code < 2


@pytest.mark.parametrize("command", READERS)
def test_an_unknown_suffix_names_the_option(made, command, monkeypatch):
    monkeypatch.chdir(made)
    result = invoked(*("log.dat" if word == "LOG" else word for word in READERS[command]))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("log.dat has the unknown suffix '.dat'. Log files end with .csv, ")
    assert result.stderr.endswith("To read another file in one of these formats, use --format vw or another name.\n")


@pytest.mark.parametrize("name", format_names())
def test_every_format_is_read_from_a_file_of_another_name(tmp_path, name):
    dense().write(tmp_path / f"run.{name}")
    (tmp_path / f"run.{name}").rename(tmp_path / "run.log")
    result = invoked("convert", str(tmp_path / "run.log"), str(tmp_path / "out.parquet"), "--format", name)
    assert result.exit_code == 0, result.stderr
    assert rows(manul.Log.read(tmp_path / "out.parquet")) == rows(dense())


def test_a_file_that_is_written_needs_a_known_suffix(tmp_path):
    dense().write(tmp_path / "run.csv")
    result = invoked("convert", str(tmp_path / "run.csv"), str(tmp_path / "run.dat"))
    assert "format" not in result.stderr.partition("run.dat has")[2]


def test_a_table_of_vowpal_wabbit_may_have_any_name(tmp_path):
    values = np.random.default_rng(0).uniform(size=50)
    (tmp_path / "train.dat").write_text("".join(f"{value} | size:{value}\n" for value in values))
    refused = invoked("run", str(tmp_path / "train.dat"))
    assert refused.stderr.endswith(
        "If it is in one of these formats, use --format vw or another; otherwise convert it.\n"
    )
    result = invoked("run", str(tmp_path / "train.dat"), "--format", "vw", "--json")
    assert json.loads(result.stdout)["rows"] == 50


def test_contexts_are_read_from_logs_in_every_format(tmp_path):
    agent = manul.Cats(leaves=8, bandwidth=1 / 8)
    log = manul.simulate(agent, manul.worlds.linear(rounds=60)).log
    agent.save(tmp_path / "policy.manul")
    for name in ("vw", "jsonl", "csv"):
        manul.Log(log.contexts, log.actions, log.densities, log.losses).write(tmp_path / f"run.{name}")
        result = invoked("inspect", str(tmp_path / "policy.manul"), "--data", str(tmp_path / f"run.{name}"))
        assert "averaged over 60 contexts" in result.stdout, result.stderr
