"""The Dockerfile, the compose file and the systemd unit: they agree with each other and with `manul serve`."""

import json
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import time
import tomllib
import urllib.request
from pathlib import Path

import click
import pytest
import yaml

from manul.cli import main
from manul.cli.serve import serve
from manul.service.http.route_table import OPERATIONS
from tests.markdown import ROOT

COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
CADDY = (ROOT / "deploy/Caddyfile").read_text()
UNIT = (ROOT / "deploy/manul.service").read_text()
# What changes the whole machine; the tests run on machines that have a compiler already.
SYSTEM_WIDE = ("apt-get", "useradd")


def instructions():
    """The instructions of the Dockerfile and their arguments."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(maxsplit=1)) for line in lines]


def arguments(name):
    return [given for instruction, given in instructions() if instruction == name]


def environment():
    return dict(each.split("=", 1) for each in arguments("ENV"))


def health_check():
    return json.loads(arguments("HEALTHCHECK")[0].partition("CMD ")[2])


def settings_of_serve():
    return {f"MANUL_{option.name.upper()}" for option in serve.params}


def test_every_variable_is_a_setting_of_serve():
    composed = {name for each in COMPOSE["services"].values() for name in each.get("environment", {})}
    named = {name for name in (*environment(), *composed) if name.startswith("MANUL_")} - {"MANUL_SITE"}
    assert {"MANUL_STORE", "MANUL_TOKEN_FILE", "MANUL_HOST", "MANUL_PORT"} <= named <= settings_of_serve()


def test_ports_and_paths_agree():
    port = environment()["MANUL_PORT"]
    assert arguments("EXPOSE") == [port]
    upstreams = re.search(r"reverse_proxy (.*) \{", CADDY)[1].split()
    replicas = [name for name, each in COMPOSE["services"].items() if each["image"] == "manul"]
    assert upstreams == [f"{name}:{port}" for name in replicas]
    assert len(replicas) == 2
    probed = re.search(r"/\w+z\b", health_check()[2])[0]
    assert re.search(r"health_uri (\S+)", CADDY)[1] == probed
    assert probed in {each.path for each in OPERATIONS if each.right is None}


def test_the_image_does_not_run_as_root_and_keeps_its_data_in_the_volume():
    assert arguments("USER") == ["manul"]
    assert arguments("VOLUME") == arguments("WORKDIR") == ["/data"]
    assert all(environment()[name].startswith("/data/") for name in ("MANUL_STORE", "MANUL_TOKEN_FILE"))
    assert "useradd --system --uid 10001 --home-dir /data --create-home manul" in arguments("RUN")
    entry, command = (json.loads(arguments(name)[0]) for name in ("ENTRYPOINT", "CMD"))
    assert entry == ["manul"]
    assert [main.get_command(click.Context(main), word) for word in command] == [serve]


def test_the_image_has_a_python_and_an_extra_that_the_project_has():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert all(
        image.startswith(f"python:{project['requires-python'].removeprefix('>=')}-") for image in arguments("FROM")
    )
    assert (
        {"serve"}
        == set(re.findall(r"/src\[(\w+)\]", " ".join(arguments("RUN"))))
        <= set(project["optional-dependencies"])
    )


def test_the_compose_file_refers_to_what_it_has():
    services, volumes = COMPOSE["services"], COMPOSE["volumes"]
    for service in services.values():
        assert set(service.get("depends_on", ())) <= set(services)
        for source, _, _ in (mount.partition(":") for mount in service.get("volumes", ())):
            assert (ROOT / source).is_file() if source.startswith("./") else source in volumes
    store = services["manul-1"]["environment"]["MANUL_STORE"]
    user, host, database = re.fullmatch(r"postgresql://(\w+)@(\w+)/(\w+)", store).groups()
    assert services[host]["environment"].items() >= {"POSTGRES_USER": user, "POSTGRES_DB": database}.items()


def test_the_unit_starts_the_service_with_options_that_exist():
    program, *words = shlex.split(re.search(r"^ExecStart=(.*)$", UNIT, re.MULTILINE)[1])
    # Options would take precedence over the file of the environment.
    assert (Path(program).name, words) == ("manul", ["serve"])
    given = dict(each.split("=") for each in re.search(r"^Environment=(.*)$", UNIT, re.MULTILINE)[1].split())
    assert given["MANUL_HOST"] == "127.0.0.1"
    assert given["MANUL_TOKEN_FILE"] == "tokens"
    assert set(given) <= settings_of_serve()
    assert UNIT.index("\nEnvironment=") < UNIT.index("\nEnvironmentFile=")
    assert re.search(r"^StateDirectory=manul$", UNIT, re.MULTILINE)
    assert re.search(r"^WorkingDirectory=/var/lib/manul$", UNIT, re.MULTILINE)


def test_memory_is_limited_and_the_alert_comes_before():
    (alert,) = (
        rule
        for rule in yaml.safe_load((ROOT / "deploy/alerts.yaml").read_text())["groups"][0]["rules"]
        if rule["alert"] == "ManulMemory"
    )
    limits = [each["mem_limit"] for each in COMPOSE["services"].values() if each["image"] == "manul"]
    limits.append(re.search(r"^MemoryMax=(\w+)$", UNIT, re.MULTILINE)[1])
    assert {each.lower() for each in limits} == {"5g"}
    assert float(alert["expr"].rpartition("> ")[2]) <= 0.8 * 5 * 2**30


@pytest.mark.whole
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd")
def test_systemd_finds_no_fault_in_the_unit(tmp_path):
    unit = tmp_path / "manul.service"
    unit.write_text(UNIT.replace("/opt/manul/bin/manul", "/bin/true"))  # a path without spaces
    said = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=True)
    assert said.stderr == ""


def copy_context(target):
    """Copies what .dockerignore lets through."""
    listed = (ROOT / ".dockerignore").read_text().splitlines()
    ignored = [line.removeprefix("**/") for line in listed if line.startswith("**/")]
    for name in (line[1:] for line in listed if line.startswith("!")):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target / name, ignore=shutil.ignore_patterns(*ignored))
        else:
            shutil.copy(ROOT / name, target / name)


@pytest.fixture
def fresh(tmp_path):
    """Folders in place of those of the image, and its variables."""
    for name in ("src", "data", "opt"):
        (tmp_path / name).mkdir()
    copy_context(tmp_path / "src")

    def placed(text):
        return re.sub(r"(?<![\w.])/(src|data|opt)\b", rf"{tmp_path}/\1", text)

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    given = {name: placed(value) for name, value in environment().items()} | {
        "MANUL_HOST": "127.0.0.1",
        "MANUL_PORT": port,
    }
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    return placed, {**clean, **given, "PATH": given["PATH"].replace("$PATH", os.environ["PATH"])}


@pytest.mark.whole
@pytest.mark.skipif("MANUL_FRESH" not in os.environ, reason="builds everything anew: make soak")
def test_the_commands_of_the_dockerfile_install_and_start_a_service(fresh, tmp_path):
    placed, variables = fresh
    for command in arguments("RUN"):
        if not command.startswith(SYSTEM_WIDE):
            subprocess.run(["sh", "-c", placed(command)], env=variables, check=True)
    manul = [tmp_path / "opt/manul/bin" / word for word in json.loads(arguments("ENTRYPOINT")[0])]
    adding = [*manul, "token", "admin", "--file", variables["MANUL_TOKEN_FILE"]]
    token = subprocess.run(adding, env=variables, check=True, capture_output=True, text=True).stdout.strip()
    with subprocess.Popen([*manul, *json.loads(arguments("CMD")[0])], env=variables, cwd=tmp_path / "data") as service:
        while subprocess.run(health_check(), env=variables, capture_output=True, check=False).returncode:
            assert service.poll() is None
            time.sleep(0.2)
        request = urllib.request.Request(f"http://127.0.0.1:{variables['MANUL_PORT']}/v1/loops", method="POST")
        request.add_header("Authorization", f"Bearer {token}")
        with urllib.request.urlopen(request, b'{"name": "heating", "actions": [20, 70]}') as answer:
            assert answer.status == 201
        service.send_signal(signal.SIGTERM)
    assert service.returncode == 0
    assert (tmp_path / "data/decisions.db").exists()
