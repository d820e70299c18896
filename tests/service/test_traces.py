"""Traces: a real receiver gets the spans of both paths, and without one the service answers as before."""

import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from manul.service.http import tokens
from tests.service.processes import MANUL, Process
from tests.service.wire import exchanged, request

pytestmark = pytest.mark.whole

HEAT = {"name": "heat", "actions": [20, 70], "agent": {"kind": "cats", "leaves": 16, "bandwidth": 5}}
PROGRAMS = {"fast": (MANUL,), "router": (sys.executable, Path(__file__).with_name("router_only.py"))}
TRACE, CALLER = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"traceparent: 00-{TRACE}-{CALLER}-01"
HOSTILE = [
    "traceparent: 00-" + "0" * 32 + "-" + "0" * 16 + "-01",
    "traceparent: ff-" + TRACE + "-" + CALLER + "-01",
    "traceparent: \xe9\xff",
    "traceparent: " + "a" * 20_000,
    "traceparent:",
    f"{PARENT}\r\n{PARENT}",
    "tracestate: =,=,,,\r\n" + PARENT.replace("01", "zz"),
]


class Receiver(http.server.BaseHTTPRequestHandler):
    """Collects what is sent to it."""

    def do_POST(self):
        self.server.received.append((self.path, self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        """Be quiet."""


@pytest.fixture
def collector():
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        server.received, server.url = [], f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def spans(collector):
    """All spans by name, with their attributes."""
    found = {}
    for path, body in collector.received:
        assert path == "/v1/traces"
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            assert "manul" in str(resource.resource)
            for span in (span for scope in resource.scope_spans for span in scope.spans):
                told = {each.key: each.value.string_value or each.value.int_value for each in span.attributes}
                found.setdefault(span.name, []).append((span, told))
    return found


@pytest.mark.parametrize("path", PROGRAMS)
def test_requests_transactions_and_learning_turns_are_traced(collector, tmp_path, path):
    server = Process(tmp_path, "decisions.db", "--otel-endpoint", collector.url, program=PROGRAMS[path])
    asked = ("POST", "/v1/loops/heat/decisions", {"context": [1, 2], "id": "o1"}, PARENT, "X-Request-Id: mine")
    server.ask("POST", "/v1/loops", HEAT)
    exchanged(server.port, request(*asked), request("POST", "/v1/loops/heat/decisions/o1/loss", {"loss": 0.5}), count=2)
    server.ask("GET", "/nowhere")
    assert server.stop() == 0
    found = spans(collector)
    ((decision, told),) = found["POST /v1/loops/{loop}/decisions"]
    assert (decision.trace_id.hex(), decision.parent_span_id.hex()) == (TRACE, CALLER)
    assert told == {
        "http.request.method": "POST",
        "http.route": "/v1/loops/{loop}/decisions",
        "http.response.status_code": 200,
        "manul.request_id": "mine",
        "manul.loop": "heat",
    }
    assert 0 < decision.end_time_unix_nano - decision.start_time_unix_nano < 30e9
    assert found["other"][0][1]["http.response.status_code"] == 404
    assert found["POST /v1/loops/{loop}/decisions/{id}/loss"][0][0].parent_span_id == b""
    assert sum(told["manul.operations"] for _, told in found["write"]) >= 3
    assert [told for _, told in found["learn"]] == [{"manul.loop": "heat", "manul.events": 1}]


def test_hostile_headers_start_a_trace_of_their_own(collector, tmp_path):
    server = Process(tmp_path, "decisions.db", "--otel-endpoint", collector.url)
    server.ask("POST", "/v1/loops", HEAT)
    for header in HOSTILE:
        asked = request("POST", "/v1/loops/heat/decisions", {"context": [1]}, "@").replace(
            b"@", header.encode("latin-1")
        )
        assert exchanged(server.port, asked, count=1)[0].status == 200, header
    assert server.stop() == 0
    traced = [span for span, _ in spans(collector)["POST /v1/loops/{loop}/decisions"]]
    assert len({span.trace_id for span in traced}) == len(HOSTILE)


def test_a_collector_that_is_down_changes_nothing(tmp_path):
    server = Process(tmp_path, "decisions.db", "--otel-endpoint", "http://127.0.0.1:9")
    assert server.ask("POST", "/v1/loops", HEAT)[0] == 201
    connection = server.connection()
    for _ in range(300):
        assert server.ask("POST", "/v1/loops/heat/decisions", {"context": [1]}, connection)[0] == 200
    connection.close()
    assert server.stop() == 0
    lines = [json.loads(line) for line in (tmp_path / "service.log").read_text().splitlines()]
    said = [each["message"] for each in lines if each["level"] != "info" and each["message"] != "a slow request"]
    assert said == ["traces cannot be sent and are dropped"]


def test_the_standard_variable_is_enough_and_its_service_name_counts(collector, tmp_path, monkeypatch):
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "manul of the heating")
    server = Process(tmp_path)
    server.ask("GET", "/healthz")
    assert server.stop() == 0
    assert "GET /healthz" in spans(collector)
    assert b"manul of the heating" in collector.received[0][1]


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (("--otel-endpoint", "collector:4318"), 2, "--otel-endpoint must be a URL such as http://127.0.0.1:4318"),
        (("--otel-endpoint", "http://127.0.0.1:9"), 1, "Install it: pip install 'manul[otel]'."),
    ],
)
def test_what_is_missing_is_said_before_anything_listens(tmp_path, words, status, expected):
    (tmp_path / "without.py").write_text(
        "import sys; sys.modules['opentelemetry.sdk'] = None; from manul.cli import main; main()"
    )
    command = [sys.executable, "without.py", "serve", "--port", "0", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout) == (status, "")
    assert expected in done.stderr
    assert not (tmp_path / "decisions.db").exists()


def test_no_secret_is_traced(collector, tmp_path):
    secret = tokens.add(tmp_path / "tokens", ["admin"])
    server = Process(tmp_path, "decisions.db", "--otel-endpoint", collector.url, "--token-file", tmp_path / "tokens")
    for path in ("/v1/loops", "/v1/loops/heat/decisions", f"/{secret}"):
        exchanged(server.port, request("POST", path, HEAT, f"Authorization: Bearer {secret}"), count=1)
    assert server.stop() == 0
    assert len(spans(collector)) >= 3
    assert not any(secret.encode() in body for _, body in collector.received)
