"""Prometheus itself reads the alerts and the queries of the dashboard, and says when alerts fire."""

import json
import re
import shutil
import subprocess

import pytest
import yaml

from tests.markdown import ROOT

pytestmark = pytest.mark.whole
RULES = ROOT / "deploy/alerts.yaml"


@pytest.fixture(scope="module")
def promtool():
    """Calls promtool; `make promtool` gets it from Debian's package of Prometheus."""
    unpacked = ROOT / "build/prometheus/usr/bin/promtool"
    program = shutil.which("promtool") or (str(unpacked) if unpacked.exists() else None)
    if program is None:
        pytest.fail("promtool is missing: run make promtool, or install Debian's package prometheus")

    def call(*arguments):
        return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False, timeout=300)

    return call


@pytest.mark.parametrize("cases", ["alerts.yaml", "alerts_of_hours.yaml"])
def test_the_alerts_fire_when_they_should_and_not_otherwise(promtool, cases):
    said = promtool("test", "rules", ROOT / "tests" / cases)
    assert said.returncode == 0, said.stdout + said.stderr


def test_a_case_that_expects_something_else_fails(promtool, tmp_path):
    cases = yaml.safe_load((ROOT / "tests/alerts.yaml").read_text())
    cases["rule_files"] = [str(RULES)]
    cases["tests"] = [
        case for case in cases["tests"] if case["name"] == "a backup of yesterday, and one of two days ago"
    ]
    cases["tests"][0]["input_series"][1]["values"] = "90000x10"
    (tmp_path / "alerts.yaml").write_text(yaml.safe_dump(cases))
    assert promtool("test", "rules", tmp_path / "alerts.yaml").returncode != 0


def test_prometheus_finds_no_fault_in_the_alerts(promtool):
    said = promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)
    assert said.returncode == 0, said.stdout + said.stderr


def test_prometheus_understands_every_query_of_the_dashboard(promtool, tmp_path):
    panels = json.loads((ROOT / "deploy/grafana.json").read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel.get("targets", ())]
    # What Grafana puts in place of its variables.
    filled = [re.sub(r"\$\w+", ".*", each.replace("$__rate_interval", "5m")) for each in queries]
    rules = [{"record": f"query:{number}", "expr": expr} for number, expr in enumerate(filled)]
    file = tmp_path / "queries.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
    said = promtool("check", "rules", file)
    assert said.returncode == 0, said.stdout + said.stderr
    assert f"{len(queries)} rules found" in said.stdout
    assert len(queries) > 25
