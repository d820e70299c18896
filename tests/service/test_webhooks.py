"""Webhooks of rollouts, with a real receiver on loopback."""

import asyncio
import http.server
import json
import socket
import threading
from contextlib import asynccontextmanager, contextmanager

import pytest

from manul.service.engine import webhooks
from manul.service.engine.loop_rollout import LoopRollout
from manul.service.engine.rollout_control import RolloutControl
from manul.service.errors import Unavailable
from manul.service.rollout_schema import RolloutMove, Webhook
from tests.service.conftest import Service, run, until

SECRET = "the owner's own secret"
LOOP = {"name": "heat", "actions": [0, 1]}
PLAN = {"baseline": 0.5, "steps": [0.5, 1], "least_decisions": 50}
READABLE = ("", "/heat", "/heat/rollout", "/heat/report", "/heat/summary", "/heat/policy", "/heat/model", "/heat/log")


class Receiver(http.server.BaseHTTPRequestHandler):
    """Answers with the statuses of its server in order, then with 204, and keeps what it received."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.server.received.append((self.path, self.headers["X-Manul-Signature"], body))
        status = self.server.statuses.pop(0) if self.server.statuses else 204
        if status == "nonsense":
            self.wfile.write(b"nonsense\r\n\r\n")
            return
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/elsewhere")
        self.end_headers()

    do_GET = do_POST  # noqa: N815

    def log_message(self, *_):
        pass


@contextmanager
def receiving(*statuses, bound=None):
    """A receiver; on a socket that is already bound, if one is given."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver, bind_and_activate=bound is None)
    if bound is not None:
        server.socket.close()
        server.socket, server.server_port = bound, bound.getsockname()[1]
        server.server_activate()
    server.received, server.statuses = [], list(statuses)
    server.url = f"http://127.0.0.1:{server.server_port}/moves"
    thread = threading.Thread(target=server.serve_forever, args=[0.01])
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(webhooks, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(webhooks, "LONGEST_PAUSE", 0.01)


@pytest.fixture
def service(tmp_path):
    return Service(tmp_path / "decisions.db")


@asynccontextmanager
async def rolling_out(service, url):
    """A running service with a rollout that reports to a URL."""
    async with service.running(webhook_hosts=["127.0.0.1"]):
        await service.post("", 201, **LOOP)
        plan = {**PLAN, "webhook": {"url": url, "secret": SECRET}}
        answer = await service.client.put("/v1/loops/heat/rollout", json=plan)
        assert answer.status_code == 200, answer.text
        yield service


async def all_sent(service):
    await until(lambda: not service.engine.loop("heat").model.rollout.unsent)


async def abort(service):
    """Aborts the rollout; the answer hardly waits for the learner, who adds the move."""
    await service.post("/heat/rollout/abort")
    await until(lambda: service.engine.loop("heat").model.rollout.moves[-1].reason == "aborted")


def reasons(server):
    return [json.loads(body)["reason"] for _, _, body in server.received]


@run
async def test_each_move_is_sent_once_in_order_with_a_valid_signature(service):
    with receiving() as server:
        async with rolling_out(service, server.url):
            for verb in ("pause", "resume"):
                await service.post(f"/heat/rollout/{verb}")
            await abort(service)
            await all_sent(service)
            moves = (await service.get("/heat/rollout"))["moves"]
    assert [json.loads(body) for _, _, body in server.received] == [{"loop": "heat", **move} for move in moves]
    assert reasons(server) == ["started", "paused", "resumed", "aborted"]
    assert all(signature == webhooks.sign(SECRET, body) for _, signature, body in server.received)


@pytest.mark.parametrize("failure", [500, 404, 302, "nonsense"])
@run
async def test_a_move_is_sent_again_until_it_is_accepted(service, failure):
    with receiving(failure, failure) as server:
        async with rolling_out(service, server.url):
            await all_sent(service)
            await service.post("/heat/rollout/pause")
            await all_sent(service)
    assert reasons(server) == ["started", "started", "started", "paused"]
    assert {path for path, _, _ in server.received} == {"/moves"}


@run
async def test_a_receiver_that_cannot_be_reached_gets_the_moves_when_it_is_back(service, caplog):
    bound = socket.socket()  # refuses connections until somebody listens, and nobody else gets its port
    bound.bind(("127.0.0.1", 0))
    async with rolling_out(service, f"http://127.0.0.1:{bound.getsockname()[1]}/moves"):
        await service.post("/heat/rollout/pause")
        await until(lambda: "did not receive" in caplog.text)
        with receiving(bound=bound) as server:
            await all_sent(service)
    assert reasons(server) == ["started", "paused"]


@run
async def test_a_url_that_cannot_be_used_does_not_stop_the_others(service, caplog):
    with receiving() as server:
        async with rolling_out(service, server.url):
            await service.post("", 201, **{**LOOP, "name": "bad"})
            webhook = {"url": "http://some..where/", "secret": SECRET}
            await service.client.put("/v1/loops/bad/rollout", json={**PLAN, "webhook": webhook})
            await until(lambda: "did not receive" in caplog.text)
            await abort(service)
            await all_sent(service)
    assert reasons(server) == ["started", "aborted"]


@run
async def test_a_move_whose_receipt_is_not_stored_is_sent_again_after_a_restart(service, monkeypatch):
    async def fail(*_):
        raise Unavailable("the disk is full")

    with receiving() as server:
        with monkeypatch.context() as broken:
            broken.setattr(RolloutControl, "note_sent", fail)
            async with rolling_out(service, server.url):
                await until(lambda: server.received)
        sending = [each for each in threading.enumerate() if each.name == "manul-webhook"]
        await until(lambda: not any(each.is_alive() for each in sending))
        before = len(server.received)
        async with service.running(webhook_hosts=["127.0.0.1"]):
            await abort(service)
            await all_sent(service)
            assert (await service.get("/heat/rollout"))["unsent"] == 0
        again = server.received[before:]
    assert {body for *_, body in server.received[:before]} == {again[0][2]}
    assert [json.loads(body)["reason"] for *_, body in again] == ["started", "aborted"]


@run
async def test_what_was_received_is_not_sent_again_after_a_restart(service):
    with receiving() as server:
        async with rolling_out(service, server.url):
            await all_sent(service)
        async with service.running(webhook_hosts=["127.0.0.1"]):
            await service.post("/heat/rollout/pause")
            await all_sent(service)
    assert reasons(server) == ["started", "paused"]


@run
async def test_a_receiver_that_hangs_delays_neither_requests_nor_the_end(service, monkeypatch):
    monkeypatch.setattr(webhooks, "SEND_SECONDS", 600.0)
    monkeypatch.setattr(webhooks, "LONGEST_SEND", 600.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        async with asyncio.timeout(60):
            async with rolling_out(service, f"http://127.0.0.1:{silent.getsockname()[1]}/"):
                connection, _ = await asyncio.to_thread(silent.accept)
                assert (await service.post("/heat/rollout/pause"))["status"] == "paused"
        connection.close()


async def report_another_loop(service, server):
    """Start the rollout of another loop, and wait until its first move is received."""
    await service.post("", 201, **{**LOOP, "name": "other"})
    webhook = {"url": server.url, "secret": SECRET}
    await service.client.put("/v1/loops/other/rollout", json={**PLAN, "webhook": webhook})
    await until(lambda: server.received)
    assert {*reasons(server)} == {"started"}  # more than once, if the limit of time is too short on a busy machine


@run
async def test_a_loop_that_is_deleted_while_its_move_is_sent_does_not_stop_the_others(service):
    with receiving() as server, socket.create_server(("127.0.0.1", 0)) as slow:
        async with rolling_out(service, f"http://127.0.0.1:{slow.getsockname()[1]}/"):
            connection, _ = await asyncio.to_thread(slow.accept)
            assert (await service.client.delete("/v1/loops/heat")).status_code == 200
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            connection.close()
            await report_another_loop(service, server)


@run
async def test_a_receiver_that_sends_a_byte_now_and_then_does_not_stop_the_others(service, monkeypatch):
    monkeypatch.setattr(webhooks, "LONGEST_SEND", 0.05)
    with receiving() as server, socket.create_server(("127.0.0.1", 0)) as slow:
        async with rolling_out(service, f"http://127.0.0.1:{slow.getsockname()[1]}/"):
            connection, _ = await asyncio.to_thread(slow.accept)
            connection.sendall(b"HTTP/1.1 204")
            await report_another_loop(service, server)
            connection.close()


@run
async def test_what_was_received_is_noted_although_a_replica_followed_a_snapshot_meanwhile(service):
    with socket.create_server(("127.0.0.1", 0)) as slow:
        async with rolling_out(service, f"http://127.0.0.1:{slow.getsockname()[1]}/"):
            connection, _ = await asyncio.to_thread(slow.accept)
            loop = service.engine.loop("heat")
            with loop.model.hold() as model:
                model.rollout = LoopRollout.from_bytes(loop.settings, model.rollout.to_bytes())
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            await all_sent(service)
            assert loop.model.rollout.notified == len(loop.model.rollout.moves)
            connection.close()


@run
async def test_a_new_test_that_starts_while_a_move_is_sent_is_reported_too(service):
    with receiving() as server, socket.create_server(("127.0.0.1", 0)) as slow:
        async with rolling_out(service, f"http://127.0.0.1:{slow.getsockname()[1]}/"):
            connection, _ = await asyncio.to_thread(slow.accept)
            webhook = {"url": server.url, "secret": SECRET}
            await service.client.put("/v1/loops/heat/rollout", json={**PLAN, "webhook": webhook})
            connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
            connection.shutdown(socket.SHUT_WR)
            await all_sent(service)
            connection.close()
    assert reasons(server) == ["restarted"]


@run
async def test_no_route_shows_the_secret(service, caplog):
    with receiving(500) as server:
        async with rolling_out(service, server.url):
            made = await service.post("/heat/decisions", context=[1])
            await service.post(f"/heat/decisions/{made['id']}/loss", loss=0.5)
            await service.learned("heat", 1)
            await all_sent(service)
            paths = [f"/v1/loops{path}" for path in READABLE] + ["/metrics", "/openapi.json"]
            answers = [await service.client.get(path) for path in paths]
            plan = {**PLAN, "webhook": {"url": server.url, "secret": SECRET, "more": 1}}
            answers.append(await service.client.put("/v1/loops/heat/rollout", json=plan))
    assert [answer.status_code for answer in answers] == [200] * len(paths) + [422]
    assert not any(SECRET.encode() in answer.content for answer in answers)
    assert SECRET not in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:port/",
        "http://127.0.0.1:99999/",
        "http://[::1/",
        "https://:80/",
        "http://bücher.example/",
        "ftp://a/",
    ],
)
@run
async def test_a_url_that_nothing_can_be_sent_to_is_refused(service, url):
    async with service.running(webhook_hosts=["127.0.0.1"]):
        await service.post("", 201, **LOOP)
        plan = {**PLAN, "webhook": {"url": url, "secret": SECRET}}
        sentence = await service.refused(422, "/v1/loops/heat/rollout", plan, method="PUT", field="webhook.url")
        assert "url" in sentence
        assert (await service.client.get("/v1/loops/heat/rollout")).status_code == 404


@run
async def test_a_secret_that_is_too_short_is_refused_and_not_repeated(service):
    async with service.running(webhook_hosts=["127.0.0.1"]):
        await service.post("", 201, **LOOP)
        plan = {**PLAN, "webhook": {"url": "http://127.0.0.1/", "secret": "shorty"}}
        sentence = await service.refused(422, "/v1/loops/heat/rollout", plan, method="PUT", field="webhook.secret")
        assert "shorty" not in sentence


INNER = ["127.0.0.1", "localhost", "[::1]", "10.1.2.3", "169.254.169.254", "[::ffff:192.168.1.1]", "0.0.0.0"]


@pytest.mark.parametrize("host", INNER)
@run
async def test_an_inner_address_is_refused_unless_it_is_listed(service, host):
    plan = {**PLAN, "webhook": {"url": f"http://{host}:9/moves", "secret": SECRET}}
    for hosts, status in ([], 422), ([host.strip("[]")], 200):
        async with service.running(webhook_hosts=hosts):
            await service.client.post("/v1/loops", json=LOOP)
            answer = await service.client.put("/v1/loops/heat/rollout", json=plan)
            assert answer.status_code == status, answer.text
            assert status == 200 or "is an inner address" in answer.json()["error"]["message"]


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_name_that_leads_to_an_inner_address_is_not_connected_to(monkeypatch, scheme):
    inner = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("10.0.0.7", 80))]
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: inner)
    monkeypatch.setattr(socket, "create_connection", lambda *_: pytest.fail("connected"))
    webhook = Webhook(url=f"{scheme}://example.com/moves", secret=SECRET)
    with pytest.raises(OSError, match=r"example\.com is an inner address"):
        webhooks.send(webhook, "heat", MOVE)


MOVE = RolloutMove(time=1.0, event=1, judged=0, origin=0, target=1, reason="started", by="owner")
