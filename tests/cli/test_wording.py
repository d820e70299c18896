"""Advice on the command line names its options: no sentence has parameters as Python writes them."""

import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

import manul
from manul.cli import main
from manul.cli._wording import PHRASES

PYTHON = re.compile(r"\b[a-z_]+=[({\['\"A-Za-z0-9<]|\bmanul\.[A-Za-z]+|\b[a-z]+_[a-z]+\b")
TEXTS = {  # logs with something wrong, by file name
    "losses.csv": ["x,action,density,loss", *(f"{n},{n / 99},1,{n}" for n in range(99))],
    "actions.csv": ["x,action,density,loss", *(f"{n},{n},1,{n % 2}" for n in range(99))],
    "rewards.csv": ["x,action,density,reward", *(f"{n},{n / 99},1,{n % 2}" for n in range(99))],
    "undensed.csv": ["x,action,loss", "1,0.5,1"],
    "bad.csv": ["x,action,density,loss", "1,0.5,0,1"],
    "knobs.csv": ["x,action.price,action.days,density,loss", "1,20,3,0.1,1"],
    "table.csv": ["x,y", *(f"{n},{n % 7}" for n in range(30))],
}
MISTAKES = {
    "check losses.csv": "Declare the range with --losses LOW HIGH.",
    "check losses.csv --json": "Declare the range with --losses LOW HIGH.",
    "check actions.csv": "Declare the range with --actions LOW HIGH.",
    "check rewards.csv --losses 0 1": "Declare the range with --rewards LOW HIGH.",
    "check losses.csv --rewards 0 1": "--rewards is for logs of rewards; this one has losses. Use --losses LOW HIGH.",
    "check losses.csv --losses 0 1 --rewards 0 1": "--losses and --rewards exclude each other, got (0.0, 1.0) and (0.0, 1.0).",
    "check losses.csv --actions 1 0": "--actions must be finite with low < high, got (1.0, 0.0).",
    "check undensed.csv": "Estimate it with manul convert --estimate-density.",
    "check bad.csv": "Fix the row, or skip invalid rows with manul convert --skip-bad.",
    "check knobs.csv": "Declare them with manul convert --knobs JSON.",
    "evaluate policy.manul losses.csv": "Declare the range with --losses LOW HIGH.",
    "evaluate policy.manul bad.csv": "Fix the row, or skip invalid rows with manul convert --skip-bad.",
    "evaluate policy.manul losses.csv --level 2": "--level must be in (0, 1), got 2.0. Try 0.95.",
    "optimize losses.csv": "Declare the range with --losses LOW HIGH.",
    "optimize actions.csv": "Declare the range with --actions LOW HIGH.",
    "optimize losses.csv --losses 0 99 --engine ray --resume folder": "--engine ",
    "optimize losses.csv --candidate auto --grid paper": "--grid has trees, ",
    "convert losses.csv out.csv --losses 0 1": "Declare the range with manul convert --losses LOW HIGH, or skip invalid rows with",
    "convert losses.csv out.csv --rewards 0 1": "--rewards is for logs of rewards; this one has losses. Use manul convert --losses",
    "convert losses.csv out.csv --actions 1 0": "--actions must be finite with low < high, got (1.0, 0.0).",
    "convert losses.csv out.csv --losses 0 1 --rewards 0 1": "--losses and --rewards exclude each other, got (0.0",
    "convert losses.csv out.csv --first 1/2 --last 1/2": "--first and --last cannot be combined.",
    "convert losses.dat out.csv": "use --format vw or another name.",
    "run table.csv": "--target must be a column of table.csv, got none.",
    "run table.csv --target y --epsilon 2": "--epsilon must be in [0, 1], got 2.0.",
    "run table.csv --target y --agent auto --leaves 8": "agent auto has no setting leaves, got 8.",
    "run table.csv --target y --losses auto --rewards auto": "--losses and --rewards exclude each other, got 'auto' and 'auto'.",
    "run table.dat --target y": "If it is in one of these formats, use --format vw or another; otherwise convert it.",
    "reproduce online --data table.dat --target y": "If it is in one of these formats, rename it; otherwise convert it.",
    "inspect policy.manul --context x": "--context must be a JSON array",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("wording")
    for name, lines in TEXTS.items():
        (path / name).write_text("\n".join(lines) + "\n")
    (path / "table.dat").write_text((path / "table.csv").read_text())
    agent = manul.Cats(leaves=8, bandwidth=1 / 8)
    manul.simulate(agent, manul.worlds.linear(rounds=20))
    agent.save(path / "policy.manul")
    return path


@pytest.mark.parametrize("line", MISTAKES)
def test_advice_names_options(folder, line, monkeypatch):
    monkeypatch.chdir(folder)
    result = CliRunner().invoke(main, shlex.split(line), catch_exceptions=False)
    printed = result.stdout + result.stderr
    assert result.exit_code in (1, 2)
    assert MISTAKES[line] in printed
    assert not PYTHON.search(printed), printed


def test_every_range_that_a_sentence_asks_for_is_an_option_on_the_command_line():
    sources = Path(manul.__file__).parent.rglob("*.py")
    asked = {phrase for path in sources for phrase in re.findall(r"\b[a-z][a-z_]*=\(low, high\)", path.read_text())}
    assert asked - PHRASES.keys() == set()


def test_every_option_in_a_phrase_exists():
    commands = [main.get_command(None, name) for name in ("check", "optimize", "convert")]
    commands.append(main.get_command(None, "rollout").commands["start"])
    known = {name for command in commands for param in command.params for name in param.opts}
    assert {word for phrase in PHRASES.values() for word in re.findall(r"--[a-z-]+", phrase)} <= known
