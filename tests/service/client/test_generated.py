"""A client that somebody else's generator makes from the OpenAPI description works with a service."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from manul.service.http.openapi import document
from tests.service.processes import Process

pytestmark = pytest.mark.whole
GENERATOR = Path(sys.executable).with_name("openapi-python-client")
SCRIPT = """
import json, sys
from generated import Client
from generated.api.default import create, decide, report_loss, rollout, start_rollout, status
from generated.models import NewDecision, NewDecisionContextType1, NewLoop, NewRollout

client = Client(base_url=sys.argv[1])
created = create.sync(client=client, body=NewLoop(name="heating", actions=[20.0, 70.0]))
context = NewDecisionContextType1.from_dict({"city": "Oslo", "age": 4})
decision = decide.sync("heating", client=client, body=NewDecision(context=context, within=[30.0, 40.0], id="visit-1"))
loss = report_loss.sync("heating", decision.id, client=client, body={"loss": 0.25})
started = start_rollout.sync("heating", client=client, body=NewRollout(baseline=45.0))
refused = decide.sync("none", client=client, body=NewDecision())
told = {"name": created.name, "action": decision.action, "density": decision.density, "loss": loss.status}
told |= {"rollout": started.baseline, "refused": refused.error.message, "decisions": status.sync("heating", client=client).decisions}
print(json.dumps(told, default=str))
"""


def test_a_generated_client_decides_reports_and_reads_errors(tmp_path):
    (tmp_path / "openapi.json").write_text(json.dumps(document(tokens=False)))
    words = ["generate", "--path", "openapi.json", "--output-path", "generated", "--meta", "none"]
    made = subprocess.run([GENERATOR, *words], cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert made.returncode == 0, made.stdout + made.stderr
    # It has no word for Parquet files; everything else is understood.
    assert (made.stdout + made.stderr).count("WARNING") == 1
    assert "Unsupported content_type application/vnd.apache.parquet" in " ".join((made.stdout + made.stderr).split())
    (tmp_path / "script.py").write_text(SCRIPT)
    process = Process(tmp_path)
    try:
        words = [sys.executable, "script.py", f"http://127.0.0.1:{process.port}"]
        said = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    finally:
        process.kill()
    assert said.returncode == 0, said.stderr
    told = json.loads(said.stdout)
    assert 30 <= told.pop("action") <= 40
    assert told.pop("density") == pytest.approx(0.1)
    message = "loop 'none' does not exist. Create it with POST /v1/loops."
    assert told == {"name": "heating", "loss": "recorded", "rollout": 45.0, "refused": message, "decisions": 1}
