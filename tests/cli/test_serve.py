"""`manul serve` and `manul token`: what starts, what ends, and what is refused before anything listens."""

import json
import logging
import re
import shlex
import signal
import socket
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from manul.cli import main
from manul.cli.serve import serve
from manul.service.configuration import Configuration, Limits
from manul.service.http import tokens
from tests.cli.test_commands import example_text, one_sentence

MANUL = Path(sys.executable).with_name("manul")


def refused(*words, status=1):
    result = CliRunner().invoke(main, ["serve", *words], prog_name="manul")
    assert (result.exit_code, result.stdout) == (status, "")
    return one_sentence(result)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder of its own; what a service sets for its process is undone."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(logging.root, "handlers", [])
    level, interval = logging.root.level, sys.getswitchinterval()
    yield tmp_path
    logging.root.setLevel(level)
    sys.setswitchinterval(interval)


@pytest.mark.whole
def test_the_help_ends_with_an_example_that_serves_until_it_is_told_to_stop():
    shown = CliRunner().invoke(main, ["serve", "--help"]).stdout
    assert shown.rstrip().endswith(f"Example:\n    {example_text('serve')}")
    words = shlex.split(example_text("serve"))[1:]
    with subprocess.Popen([MANUL, *words, "--port", "0"], stderr=subprocess.PIPE, text=True) as process:
        said = next(line for line in process.stderr if "listening" in line)
        process.send_signal(signal.SIGTERM)
        rest = process.stderr.read()
    assert process.returncode == 0
    assert json.loads(said)["port"] > 0
    assert json.loads(rest.splitlines()[-1])["message"] == "stopped"


def test_the_defaults_in_the_help_are_those_of_the_settings():
    serve.get_help(click.Context(serve))
    said = {param.name: re.search(r"\[default: (.*)\]", param.help) for param in serve.params}
    for kind in (Configuration, Limits):
        for name, default in zip(kind.__struct_fields__, kind.__struct_defaults__, strict=True):
            if default not in (None, ()) and name != "limits":
                assert said[name][1] == (default if isinstance(default, str) else f"{default:.10g}")


def test_every_setting_is_an_option():
    known = {*Configuration.__struct_fields__, *Limits.__struct_fields__} - {"limits"}
    assert {param.name for param in serve.params} == known | {"config"}


def test_a_port_that_does_not_exist_is_refused():
    assert refused("--port", "65536", status=2) == (
        "--port must be an integer from 0 to 65535, got '65536'. See manul serve --help."
    )
    assert "rate must be a number of at least 0.1 per second, got inf" in refused("--max-rate", "inf", status=2)
    assert "--snapshot-seconds must be at least 0.1, got '1/20'" in refused("--snapshot-seconds", "1/20", status=2)


def test_a_port_in_use_is_one_sentence():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert refused("--port", str(port), status=2) == (f"port {port} is already in use. Choose another with --port.")


def test_a_host_that_is_not_of_this_machine_is_one_sentence(folder):
    (folder / "tokens").write_text(tokens.line("secret", ["admin"]))
    words = ("--host", "192.0.2.1", "--port", "0", "--token-file", "tokens")
    assert "cannot listen on 192.0.2.1" in refused(*words, status=2)
    assert not (folder / "decisions.db").exists()


def test_missing_files_name_the_closest(folder):
    (folder / "service.toml").write_text("port = 0\n")
    (folder / "tokens").write_text(tokens.line("secret", ["admin"]))
    assert refused("--config", "servce.toml").endswith("Did you mean service.toml?")
    assert refused("--token-file", "token").endswith("Did you mean tokens?")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("prot = 1", "has an unknown setting, 'prot'. Did you mean port?"),
        ("[limits]\nloop = 1", "has an unknown setting, 'loop'. Did you mean loops?"),
        ("port = 'a'", "is not a valid configuration: Expected int, got str for port. See manul serve --help."),
        ("port = 70000", "is not a valid configuration: Expected int <= 65535 for port. See manul serve --help."),
        ("port = ", "is not a valid configuration: "),
    ],
)
def test_a_file_of_settings_that_cannot_be_used_is_one_sentence(folder, text, expected):
    (folder / "service.toml").write_text(text)
    assert expected in refused("--config", "service.toml", status=2)


def test_a_store_that_cannot_be_one_is_one_sentence(folder):
    (folder / "decisions.db").write_text("nothing of the kind")
    assert "decisions.db" in refused("--store", "decisions.db")
    assert "cannot open" in refused("--store", "nowhere/decisions.db")


def test_a_token_is_added_to_the_others_and_counts(folder):
    for rights in (["decide"], ["decide", "report"]):
        made = json.loads(CliRunner().invoke(main, ["token", *rights, "--json"]).stdout)
        assert made["rights"] == rights
        tokens.read(folder / made["file"]).require(f"Bearer {made['token']}".encode(), "decide")
    assert len((folder / "tokens").read_text().splitlines()) == 2


def test_a_token_may_be_for_some_loops_and_have_a_rate_of_its_own(folder):
    words = ["token", "decide", "--loop", "heating", "--loop", "price-*", "--rate", "100", "--json"]
    made = json.loads(CliRunner().invoke(main, words).stdout)
    assert (made["loops"], made["rate"]) == (["heating", "price-*"], 100)
    access = tokens.read(folder / "tokens").find(f"Bearer {made['token']}".encode())
    assert (access.includes("price-1"), access.includes("heating-2"), access.rate) == (True, False, 100)


@pytest.mark.parametrize(
    ("words", "expected", "status"),
    [
        (
            ("--loop", "a b"),
            "--loop must be a name, or the beginning of names and a star such as price-*, got 'a b'",
            2,
        ),
        (("--rate", "0"), "--rate must be at least 0.1, got '0'. See manul token --help.", 2),
        (("--rate", "inf"), "--rate must be a number of at least 0.1 per second, got inf", 2),
    ],
)
def test_a_token_for_nothing_sensible_is_not_created(folder, words, expected, status):
    result = CliRunner().invoke(main, ["token", "decide", *words], prog_name="manul")
    assert (one_sentence(result), result.exit_code) == (expected, status)
    assert not (folder / "tokens").exists()


def test_a_file_that_cannot_be_added_to_is_one_sentence(folder):
    result = CliRunner().invoke(main, ["token", "decide", "--file", str(folder)])
    assert result.exit_code == 1
    assert one_sentence(result) == f"cannot write {folder}: Is a directory"


def test_paths_in_a_configuration_file_are_texts(folder):
    (folder / "service.toml").write_text('token_file = "tokens.txt"\narchive = "old"\nport = 0\n')
    assert refused("--config", "service.toml").startswith("tokens.txt: no such file")
