"""What holds for every command: its example runs, and an error is one line with a suggestion."""

import contextlib
import json
import re
import shlex
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import manul
from manul.cli import main
from manul.service.store.backup import backup
from manul.service.store.store_registry import open_store


def leaves(group, prefix=""):
    """All commands by name; those of a group have two words."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from leaves(command, f"{prefix}{name} ")
        else:
            yield f"{prefix}{name}", command


COMMANDS = dict(leaves(main))
# The examples of these serve, or need a service.
ENDING = [name for name in COMMANDS if not name.startswith(("serve", "rollout", "mcp", "budget"))]
LONG = ("demo", "reproduce")  # play worlds for many rounds
LONG_AND_SHORT = [pytest.param(name, marks=pytest.mark.whole) if name in LONG else name for name in ENDING]
CARS = "age,fuel,doors,price\n" + "".join(
    f"{age},{fuel},{'' if age == 3 else 5},{20_000 - 1500 * age + 900 * (fuel == 'diesel')}\n"
    for age in range(9)
    for fuel in ("petrol", "diesel", "")
)
# Where a command asks for files of these names, they are there.
MISSPELT = {
    "cars.csv": "cas.csv",
    "run.parquet": "rum.parquet",
    "policy.manul": "polcy.manul",
    "log.vw": "lg.vw",
    "decisions.db": "decision.db",
    "monday.zip": "munday.zip",
}
SUFFIXES = {"cars.csv": "cars.csvv", "run.parquet": "run.parket", "policy.manul": "policy.mnul", "log.vw": "log.vww"}


def invoked(arguments):
    return CliRunner().invoke(main, arguments, prog_name="manul")


def example_text(name):
    (line,) = re.findall(r"^\s+(manul .*)$", COMMANDS[name].epilog.partition("Example:")[2], re.MULTILINE)
    return line


def example(name):
    return shlex.split(example_text(name))[1:]


WITH_FILES = [name for name in COMMANDS if set(example(name)[1:2]) & set(MISSPELT)]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """The files that the examples read."""
    path = tmp_path_factory.mktemp("prepared")
    with contextlib.chdir(path):
        Path("cars.csv").write_text(CARS)
        made = invoked(["run", "cars.csv", "--target", "price", "--log", "run.parquet", "--out", "policy.manul"])
        assert made.exit_code == 0, made.output
        log = manul.simulate(manul.Cats(leaves=8, bandwidth=1 / 8), manul.worlds.linear(rounds=50)).log
        manul.Log(log.contexts, log.actions, log.densities, log.losses).write("log.vw")
        open_store("decisions.db").close()
        backup("decisions.db", "monday.zip")
    return path


@pytest.fixture
def folder(prepared, tmp_path, monkeypatch):
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def folders(prepared, tmp_path_factory):
    """One for each example: where it has run before, `reproduce` does not play its rounds again."""
    return {name: shutil.copytree(prepared, tmp_path_factory.mktemp("example") / "files") for name in ENDING}


@pytest.mark.parametrize("name", LONG_AND_SHORT)
def test_the_help_ends_with_an_example_that_runs(folders, monkeypatch, name):
    monkeypatch.chdir(folders[name])
    assert invoked([name, "--help"]).stdout.rstrip().endswith(f"Example:\n    {example_text(name)}")
    result = invoked(example(name))
    assert result.exit_code in ((0, 1) if name == "check" else (0,)), result.output
    assert result.stdout


@pytest.mark.parametrize("name", LONG_AND_SHORT)
def test_json_is_the_whole_of_the_standard_output(folders, monkeypatch, name):
    monkeypatch.chdir(folders[name])
    result = invoked([*example(name), "--json"])
    assert isinstance(json.loads(result.stdout), dict)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_unknown_option_names_the_closest(name):
    option = next(o for p in COMMANDS[name].params for o in p.opts if o.startswith("--") and len(o) > 5)
    result = invoked([*example(name), option[:-1] + "x"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == f"unknown option '{option[:-1]}x'. Did you mean {option}?\n"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", WITH_FILES)
def test_a_missing_file_names_the_closest(name):
    words = example(name)
    for place, word in enumerate(words):
        if word in MISSPELT and words[place - 1] not in ("--log", "--out"):
            result = invoked([*words[:place], MISSPELT[word], *words[place + 1 :]])
            assert (result.exit_code, result.stdout) == (1, "")
            assert one_sentence(result) == f"{MISSPELT[word]}: no such file. Did you mean {word}?"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", WITH_FILES)
def test_a_wrong_suffix_names_the_closest(name):
    words = example(name)
    for place, word in enumerate(words):
        if word in SUFFIXES:
            result = invoked([*words[:place], SUFFIXES[word], *words[place + 1 :]])
            assert (result.exit_code, result.stdout) == (2, "")
            assert re.fullmatch(
                rf".* (must end with .*, got|has the unknown suffix) .* Did you mean [a-z]*\.{word.split('.')[1]}\?",
                one_sentence(result),
            )


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ("policy.mnul", "Did you mean policy.manul?"),
        ("policy.manul.gz", "Did you mean policy.manul?"),
        ("", "See manul inspect --help."),
        ("..", "See manul inspect --help."),
    ],
)
def test_a_wrong_suffix_is_never_answered_with_the_rule_itself(given, advice):
    result = invoked(["inspect", given])
    assert one_sentence(result) == f"FILE must end with .manul, got {given!r}. {advice}"


@pytest.mark.parametrize("name", WITH_FILES)
def test_a_file_of_another_kind_is_one_sentence(folder, name):
    words = example(name)
    for word in (word for word in words[1:2] if word in MISSPELT):
        (folder / word).write_bytes(b"\x00\xff nothing \n of any kind")
        result = invoked(words)
        assert result.exit_code == 1
        assert word in one_sentence(result)


def with_type(kind):
    return [(name, param) for name, command in COMMANDS.items() for param in command.params if param.type.name == kind]


@pytest.mark.parametrize(("name", "param"), with_type("choice"), ids=lambda each: getattr(each, "name", each))
def test_a_wrong_choice_names_the_closest(name, param):
    before = [param.opts[0]] if isinstance(param, click.Option) else []
    result = invoked([*example(name), *before, param.type.choices[0] + "x"])
    assert result.exit_code == 2
    assert one_sentence(result).endswith(f"got '{param.type.choices[0]}x'. Did you mean {param.type.choices[0]}?")


@pytest.mark.parametrize(("name", "param"), with_type("number"), ids=lambda each: getattr(each, "name", each))
def test_fractions_are_read_as_written(name, param):
    assert param.type.convert("1/4", param, None) == 1 / 4
    result = invoked([*example(name), param.opts[0], "a sixteenth"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "must be a number or a fraction such as 1/16, got 'a sixteenth'" in one_sentence(result)


@pytest.mark.parametrize(("name", "param"), with_type("integer"), ids=lambda each: getattr(each, "name", each))
def test_a_number_that_is_not_whole_is_refused(name, param):
    refused = one_sentence(invoked([*example(name), param.opts[0], "1.5"]))
    assert re.search(r"must be an integer( of at least \d+| from \d+ to \d+)?, got '1\.5'", refused)


@pytest.mark.parametrize("name", WITH_FILES)
def test_a_missing_argument_is_one_sentence(name):
    assert re.fullmatch(rf"missing argument [A-Z]+\. See manul {name} --help\.", one_sentence(invoked([name])))


def test_a_log_with_a_misspelt_column_names_it(folder):
    (folder / "run.csv").write_text("action,densty,loss\n1,1,1\n")
    assert one_sentence(invoked(["check", "run.csv"])).endswith("Rename densty to density.")


def test_files_are_completed_by_the_shell(monkeypatch):
    monkeypatch.setenv("_MANUL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "manul che")
    monkeypatch.setenv("COMP_CWORD", "1")
    assert "check" in invoked([]).stdout
    monkeypatch.setenv("COMP_WORDS", "manul check ru")
    monkeypatch.setenv("COMP_CWORD", "2")
    assert invoked([]).stdout.startswith("file")


@pytest.mark.parametrize("name", COMMANDS)
def test_everything_is_described(name):
    assert COMMANDS[name].help
    assert COMMANDS[name].epilog.startswith("\b\nExample:\n  manul ")
    assert all(param.help for param in COMMANDS[name].params if isinstance(param, click.Option))


def one_sentence(result):
    assert isinstance(result.exception, SystemExit)
    lines = [line for line in result.stderr.splitlines() if line and "rounds/s" not in line and "rows/s" not in line]
    assert len(lines) == 1, result.stderr
    return lines[0]
