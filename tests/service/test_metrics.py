"""What people watch a service by: metrics that never fail, ids of requests, lines of the log, and readiness."""

import json
import re

import pytest

from manul.service.engine.loop import Loop
from manul.service.http import metrics
from manul.service.store import StoreFailure
from tests.service.conftest import Service, run, until
from tests.service.processes import Process
from tests.service.wire import exchanged, request

HEAT = {"name": "heat", "actions": [20, 70]}
DECIDE = "/v1/loops/heat/decisions"


def values(text):
    """Samples by name and labels."""
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in text.splitlines() if line[0] != "#"}


async def scraped(service):
    answer = await service.client.get("/metrics")
    assert answer.status_code == 200, answer.text
    return values(answer.text)


@run
async def test_answers_are_counted_by_route_and_status_with_their_latency(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        await service.post("/heat/decisions", context=[1, 2])
        await service.post("/heat/decisions", 422, context="hello")
        await service.post("/heat/losses", 422, losses=[])
        found = await scraped(service)
    assert found['manul_requests_total{route="decide",status="200"}'] == 1
    assert found['manul_requests_total{route="decide",status="422"}'] == 1
    assert found['manul_requests_total{route="report_losses",status="422"}'] == 1
    assert found['manul_request_seconds_count{route="decide"}'] == 2
    assert found['manul_request_seconds_bucket{route="decide",le="+Inf"}'] == 2
    buckets = [value for name, value in found.items() if name.startswith('manul_request_seconds_bucket{route="decide"')]
    assert buckets == sorted(buckets)


@run
async def test_the_state_of_the_service_is_in_the_metrics(service):
    async with service.running():
        await service.post("", 201, **HEAT)
        made = await service.post("/heat/decisions", context=[1, 2])
        await service.post(f"/heat/decisions/{made['id']}/loss", loss=0.5)
        await service.learned("heat", 1)
        found = await scraped(service)
    expected = {
        "store_up": 1,
        "store_failing": 0,
        "healthy": 1,
        "writer_alive": 1,
        "writer_queue": 0,
        "learner_alive": 1,
    }
    assert {name: found[f"manul_{name}"] for name in expected} == expected
    assert found["manul_leader"] == 1
    assert found['manul_learner_lag{loop="heat"}'] == 0
    assert found["manul_resident_bytes"] > 2**20


@pytest.mark.parametrize("failure", ["fails", "hangs"])
@run
async def test_metrics_are_answered_while_the_store_cannot_be_read(tmp_path, monkeypatch, failure):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        await service.post("", 201, **HEAT)
        hanging = metrics.threading.Event()

        def counts(_):
            if failure == "hangs":
                hanging.wait(20)
            raise StoreFailure("gone")

        monkeypatch.setattr(metrics, "STORE_SECONDS", 0.05)
        with monkeypatch.context() as outage:
            outage.setattr(service.engine.store, "counts", counts)
            for _ in range(3):
                found = await scraped(service)
                assert found["manul_store_up"] == 0
                assert 'manul_decisions_total{loop="heat"}' not in found
            hanging.set()
        monkeypatch.setattr(metrics, "STORE_SECONDS", 20.0)
        assert (await scraped(service)).get("manul_store_up") in (0, 1)
        assert (await scraped(service))["manul_store_up"] == 1


@pytest.mark.parametrize("thread", ["learner", "writer"])
@run
async def test_a_thread_that_has_died_shows(tmp_path, monkeypatch, thread):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        assert (await service.client.get("/readyz")).status_code == 200
        with monkeypatch.context() as death:
            death.setattr(getattr(service.engine, thread), "is_alive", lambda: False)
            answer = await service.client.get("/readyz")
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert f"the {thread} has stopped" in answer.json()["error"]["message"]
            assert (await scraped(service))[f"manul_{thread}_alive"] == 0


@pytest.mark.parametrize(
    ("given", "kept"),
    [("mine-1.A_b", True), ("a" * 64, True), ("a" * 65, False), ("a b", False), ("\xe9", False), ("", False)],
)
@pytest.mark.parametrize("path", ["/healthz", "/nothing", DECIDE])
@run
async def test_every_answer_has_the_id_of_its_request(tmp_path, path, given, kept):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        answer = await service.client.post(path, content=b"{}", headers={"X-Request-Id": given.encode("latin-1")})
    found = answer.headers["x-request-id"]
    assert (found == given) == kept
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,64}", found)


@run
async def test_a_request_that_fails_is_one_json_answer_and_one_line_of_the_log(tmp_path, monkeypatch, caplog):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        await service.post("", 201, **HEAT)
        monkeypatch.setattr(service.engine.groups, "add", lambda *_: 1 / 0)
        monkeypatch.setattr(Loop, "status", lambda *_: 1 / 0)
        for method, path, route in (("POST", DECIDE, "decide"), ("GET", "/v1/loops/heat", "status")):
            caplog.clear()
            answer = await service.client.request(method, path, content=b"{}", headers={"X-Request-Id": "mine"})
            assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
            assert "Error" not in answer.json()["error"]["message"]
            (line,) = [record for record in caplog.records if record.levelname == "ERROR"]
            assert (line.request_id, line.route, line.status) == ("mine", route, 500)


@pytest.mark.whole
def test_a_refusal_is_a_line_of_json_with_its_request(tmp_path):
    server = Process(tmp_path)
    exchanged(server.port, request("POST", DECIDE, b"{}", "X-Request-Id: mine"), count=1)
    for _ in range(100):
        exchanged(server.port, b"nonsense\r\n\r\n", count=1)
    server.stop()
    lines = [json.loads(line) for line in (tmp_path / "service.log").read_text().splitlines()]
    refusals = [line for line in lines if line["message"] == "a request was refused"]
    assert {"level": "warning", "request_id": "mine", "route": "decide", "status": 404}.items() <= refusals[0].items()
    assert refusals[0]["ms"] >= 0
    assert {line["status"] for line in refusals[1:]} == {400}
    assert len(refusals) < 100


@run
async def test_a_body_of_impossible_length_is_refused(tmp_path):
    service = Service(tmp_path / "decisions.db")
    async with service.running():
        for path in ("/v1/loops", DECIDE):
            answer = await service.client.post(path, content=b"{}", headers={"Content-Length": "9" * 5000})
            assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@run
async def test_callers_that_are_gone_leave_nothing_behind(tmp_path):
    server = Service(tmp_path / "decisions.db")
    async with server.running():
        await server.post("", 201, **HEAT)
        await until(lambda: server.engine.ready)
        sent = []

        async def receive():
            return {"type": "http.disconnect"}

        async def send(message):
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "path": DECIDE,
            "headers": [(b"host", b"localhost")],
            "http_version": "1.1",
        }
        await server.client._transport.app(scope, receive, send)
        assert sent == []
        assert server.engine.store.counts(1).decisions == 0
