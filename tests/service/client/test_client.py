"""Both clients against a real service on loopback."""

import asyncio
import datetime
import functools
import re
import socket
import threading
import uuid
from contextlib import suppress

import httpx
import numpy as np
import pytest

import manul
from manul.errors import ParameterError, ServiceError
from manul.service.http import tokens
from tests.service.processes import Process

pytestmark = pytest.mark.whole

CATS = {"kind": "cats", "leaves": 32, "bandwidth": 2.0}


class Blocking:
    """An AsyncClient that can be called like the other one."""

    def __init__(self, *args, **settings):
        self.runner = asyncio.Runner()
        self.client = manul.AsyncClient(*args, **settings)

    def __getattr__(self, name):
        return lambda *args, **options: self.runner.run(getattr(self.client, name)(*args, **options))

    def __enter__(self):
        self.runner.run(self.client.__aenter__())
        return self

    def __exit__(self, *error):
        self.runner.run(self.client.__aexit__(*error))
        self.runner.close()


class LosesAnswers(threading.Thread):
    """A proxy that hands requests on, and loses the first answers."""

    def __init__(self, port, lost):
        super().__init__(daemon=True)
        self.upstream, self.lost = port, lost
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}"

    def run(self):
        while True:
            try:
                caller, _ = self.listening.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self.upstream))
            threading.Thread(target=self.pump, args=(caller, server), daemon=True).start()
            threading.Thread(target=self.answer, args=(server, caller), daemon=True).start()

    def pump(self, source, sink):
        try:
            while some := source.recv(65536):
                sink.sendall(some)
        except OSError:
            pass

    def answer(self, server, caller):
        with server, caller:
            while some := server.recv(65536):
                if self.lost:
                    self.lost -= 1
                    caller.shutdown(socket.SHUT_RDWR)
                    return
                caller.sendall(some)


@pytest.fixture(scope="module")
def running(tmp_path_factory):
    folder = tmp_path_factory.mktemp("service")
    given = {right: tokens.new_token() for right in tokens.RIGHTS}
    (folder / "tokens").write_text("".join(f"{tokens.line(given[right], [right])}\n" for right in given))
    process = Process(folder, "decisions.db", "--token-file", folder / "tokens")
    process.tokens, process.url = given, f"http://127.0.0.1:{process.port}"
    yield process
    process.kill()


@pytest.fixture(params=[manul.Client, Blocking], ids=["sync", "async"])
def client(request, running):
    with request.param(running.url, running.tokens["admin"]) as client:
        client.kind = request.param
        yield client


@pytest.fixture
def loop():
    """A name that no other test has."""
    return f"loop-{uuid.uuid4()}"


def learned(client, loop, outcomes):
    while client.status(loop).learned < outcomes:
        pass


def test_decides_and_reports(client, loop):
    assert client.create(loop, actions=(20, 70), agent=CATS).decisions == 0
    assert loop in [each.name for each in client.loops()]
    decision = client.decide(loop, np.array([4.5, 0.3]), within=(30, 40), id="order-1")
    assert 30 <= decision.action <= 40
    assert client.decide(loop, [4.5, 0.3], within=(30, 40), id="order-1") == decision
    assert client.report_loss(loop, decision, 0.25).status == "recorded"
    assert client.report_loss(loop, "order-1", 0.25).status == "repeated"
    assert client.status(loop).mean_loss == 0.25


def test_rewards_are_reported(client, loop):
    created = client.create(loop, actions=(20, 70), rewards=(0, 100), agent=CATS)
    assert (created.rewards, created.losses) == ((0, 100), (-100, 0))
    one, two = client.decide_many(loop, [[4.5, 0.3]] * 2)
    assert client.report_loss(loop, one, reward=25).status == "recorded"
    assert [each.status for each in client.report_losses(loop, rewards=[(two, 75)])] == ["recorded"]
    client.observe(loop, [4.5, 0.3], action=30, density=0.02, reward=50)
    assert client.status(loop).mean_loss == -50
    with pytest.raises(ServiceError, match="loss must not be reported to a loop with rewards; report its reward"):
        client.report_loss(loop, one, 0.25)


def test_rewards_wait_until_they_are_learned(client, loop):
    created = client.create(loop, actions=(20, 70), rewards=(0, 100), agent=CATS, wait=3600, default_reward=0)
    assert (created.wait, created.default_loss) == (3600, 0)
    decision = client.decide(loop, [4.5, 0.3])
    assert [client.report_loss(loop, decision, reward=25).status for _ in range(2)] == ["waiting", "repeated"]
    assert (client.status(loop).mean_loss, client.status(loop).waiting) == (None, 1)


def test_parts_are_reported(client, loop, tmp_path):
    created = client.create(loop, actions=(10, 50), outcome=manul.Sale(cost="cost"))
    assert (created.formula, created.rewards, created.hints) == (
        "(action - cost) * bought",
        "auto",
        {"bought": "falls"},
    )
    again = client.create(
        loop,
        actions=(10, 50),
        rewards="auto",
        formula="(action - cost) * bought",
        parts={"bought": "yes/no"},
        hints={"bought": "falls"},
    )
    assert again.created == created.created
    one, two, three = client.decide_many(loop, [{"cost": 9.0}] * 3)
    assert client.report_loss(loop, one, parts={"bought": True}).status == "recorded"
    assert client.report_loss(loop, two, parts={"bought": True}, reward=3.5).status == "recorded"
    assert [each.status for each in client.report_losses(loop, parts=[(three, {"bought": False})])] == ["recorded"]
    client.observe(loop, {"cost": 9.0}, action=20, density=0.02, parts={"bought": True})
    log = manul.Log.read(client.log(loop, tmp_path / "log.parquet"))
    assert log.rewards.tolist() == [one.action - 9.0, 3.5, 0.0, 11.0]
    assert log.parts["bought"].tolist() == [1.0, 1.0, 0.0, 1.0]
    with pytest.raises(ParameterError, match="outcome and rewards exclude each other"):
        client.create(loop, actions=(10, 50), outcome=manul.Sale(), rewards="auto")


def test_one_knob_with_options_is_decided_and_observed(client, loop):
    assert client.create(loop, actions=manul.Choice(["plain", "bold", 3])).actions == {"options": ["plain", "bold", 3]}
    decision = client.decide(loop, [0.5], within=["bold"])
    assert (decision.action, decision.density) == ("bold", 1.0)
    client.report_loss(loop, decision, 0.25)
    client.observe(loop, [0.5], action=3, density=0.5, loss=0.5)
    assert client.start_rollout(loop, baseline="plain").baseline == "plain"
    with pytest.raises(ServiceError, match="action must be one of 'plain', 'bold', 3, got 'blue'"):
        client.observe(loop, [0.5], action="blue", loss=0.5)


def test_several_knobs_are_decided_and_observed(client, loop):
    knobs = {"price": (10, 50), "days": manul.Stepped(1, 14, 1), "template": manul.Choice(["a", "b"])}
    assert list(client.create(loop, actions=knobs).actions) == list(knobs)
    within = {"price": (12, 20), "template": ["b"]}
    decision, other = client.decide_many(loop, [[4.5]] * 2, withins=[within, None])
    assert 12 <= decision.action["price"] <= 20
    assert (decision.action["template"], list(decision.densities)) == ("b", list(knobs))
    client.report_losses(loop, [(decision, 0.25), (other, 0.5)])
    client.observe(loop, [4.5], action=decision.action | {"price": np.float64(30)}, density=0.01, loss=0.5)
    learned(client, loop, 3)
    with pytest.raises(ServiceError, match="action must set the knob 'days' too"):
        client.observe(loop, [4.5], action={"price": 30, "template": "a"}, density=0.01)


def test_batches_larger_than_a_request(client, loop):
    client.create(loop, actions=(20, 70), agent=CATS)
    contexts = np.random.default_rng(0).normal(size=(1500, 2)).round(3)
    made = client.decide_many(loop, contexts)
    assert made == client.decide_many(loop, contexts, ids=[each.id for each in made])
    said = client.report_losses(loop, [(each, 0.5) for each in made])
    assert [each.status for each in said] == ["recorded"] * 1500
    assert client.status(loop).waiting == 0
    with pytest.raises(ParameterError, match=r"ids must have one value per context \(2\), got 1"):
        client.decide_many(loop, [[1, 2], [3, 4]], ids=["one"])


def test_an_apprentice_learns_and_is_promoted(client, loop):
    client.create(loop, actions=(20, 70), agent=CATS, apprentice=True)
    client.observe(loop, {"sky": "grey"}, action=30, density=0.02, loss=0.5, id="mine")
    client.observe(loop, {"sky": "grey"}, action=30, density=0.02, loss=0.5, id="mine")
    seen = client.observe(loop, {"sky": "blue"}, action=40)
    client.report_loss(loop, seen, 0.25)
    learned(client, loop, 2)
    assert client.promote(loop).apprentice is False
    assert client.decide(loop, {"sky": "blue"}).model == 2


def test_log_report_and_model_come_and_go(client, loop, tmp_path):
    client.create(loop, actions=(20, 70), agent=CATS)
    made = client.decide_many(loop, [[1, 2], [3, 4], [5, 6]])
    client.report_losses(loop, [(each, 0.5) for each in made])
    learned(client, loop, 3)
    assert client.report(loop).rows == 3
    assert len(manul.Log.read(client.log(loop, tmp_path / "log.parquet"))) == 3
    model = client.model(loop, tmp_path / "model.manul")
    assert manul.load(model).decide([1, 2]).density > 0
    assert client.pause(loop).paused
    assert not client.resume(loop).paused
    assert client.replace(loop, model).events == 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.parquet", "model.manul"]


def test_a_refusal_is_the_services_own_sentence(client, loop, running, tmp_path):
    with pytest.raises(ServiceError, match="does not exist") as refused:
        client.decide(loop, [1, 2])
    assert (refused.value.status, refused.value.code, refused.value.field) == (404, "not_found", "loop")
    with pytest.raises(ServiceError, match="does not exist"):
        client.log(loop, tmp_path / "log.parquet")
    with (
        client.kind(running.url, running.tokens["decide"]) as other,
        pytest.raises(ServiceError, match="right 'admin'"),
    ):
        other.create(loop, actions=(0, 1))
    assert not list(tmp_path.iterdir())


def test_lost_answers_are_asked_for_again_and_nothing_happens_twice(client, loop, running, tmp_path):
    client.create(loop, actions=(20, 70), agent=CATS, wait=60, default_loss=1, combine="sum")
    proxy = LosesAnswers(running.port, 2)
    proxy.start()
    with client.kind(proxy.url, running.tokens["admin"]) as distant:
        decision = distant.decide(loop, [1, 2])
        proxy.lost = 2
        assert distant.report_loss(loop, decision, 0.25).status == "repeated"
        proxy.lost = 1
        many = distant.decide_many(loop, [[1, 2], [3, 4]])
        proxy.lost = 1
        distant.report_losses(loop, [(each, 0.25) for each in many])
        model = distant.model(loop, tmp_path / "model.manul")
        proxy.lost = 1
        with pytest.raises(ServiceError, match="cannot be reached"):
            distant.replace(loop, model)
    proxy.listening.close()
    status = client.status(loop)
    assert (status.decisions, status.events) == (3, 4)


def test_a_loop_is_reset_and_deleted(client, loop):
    client.create(loop, actions=(20, 70), agent=CATS)
    client.report_loss(loop, client.decide(loop, [1, 2]), 0.5)
    assert client.reset(loop).decisions == 0
    client.decide(loop, {"now": "named"})
    assert client.delete(loop).name == loop
    with pytest.raises(ServiceError, match="does not exist"):
        client.delete(loop)


class SlowService:
    """Takes a quarter of a second for each decision."""

    def __init__(self):
        self.connections = set()

    async def answer(self, reader, writer):
        self.connections.add(asyncio.current_task())
        body = b'{"id": "a", "action": 30.0, "density": 0.02, "model": 0}'
        with suppress(asyncio.IncompleteReadError):
            while head := await reader.readuntil(b"\r\n\r\n"):
                await reader.readexactly(int(re.search(rb"content-length: (\d+)", head.lower())[1]))
                await asyncio.sleep(0.25)
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
        writer.close()
        await writer.wait_closed()


def test_calls_wait_longer_for_a_connection_than_for_an_answer(monkeypatch):
    """28 calls over two connections take 3.5 seconds; one answer may take 3."""
    two = httpx.Limits(max_connections=2)
    monkeypatch.setattr(httpx, "AsyncClient", functools.partial(httpx.AsyncClient, limits=two))

    async def all_at_once():
        service = SlowService()
        async with await asyncio.start_server(service.answer, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            async with manul.AsyncClient(url, timeout=3.0, retries=0) as client:
                made = await asyncio.gather(*(client.decide("heat", [1, 2]) for _ in range(28)))
            await asyncio.gather(*service.connections)
        return made

    assert len(asyncio.run(all_at_once())) == 28


def test_a_service_that_is_not_there(client):
    with socket.socket() as silent:  # bound, so that nobody else listens there
        silent.bind(("127.0.0.1", 0))
        with (
            client.kind(f"http://127.0.0.1:{silent.getsockname()[1]}", retries=1) as other,
            pytest.raises(ServiceError, match=r"cannot be reached \(ConnectError\)"),
        ):
            other.loops()
    with pytest.raises(ParameterError, match="url must start with http"):
        client.kind("127.0.0.1:8000")


def test_a_restart_in_between_is_not_noticed(tmp_path):
    first = Process(tmp_path)
    with manul.Client(f"http://127.0.0.1:{first.port}", retries=30) as client:
        client.create("heat", actions=(20, 70), agent=CATS)
        made = client.decide("heat", [1, 2], id="one")
        first.kill()
        starting = threading.Timer(0.2, lambda: again.append(Process(tmp_path, "decisions.db", "--port", first.port)))
        again = []
        starting.start()
        assert client.decide("heat", [1, 2], id="one") == made
        starting.join()
    again[0].kill()


def test_dates_get_the_decisions_of_their_form_in_json(client):
    client.create("hotel", actions=(20, 70), agent=CATS)
    at = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC)
    made = client.decide("hotel", {"at": at}, id="a")
    assert client.decide("hotel", {"at": {"$date": "2024-02-29T12:30:00+00:00"}}, id="a") == made
    with pytest.raises(ServiceError, match=r"field 'at' must have a .* got '2023-02-29'"):
        client.decide("hotel", {"at": {"$date": "2023-02-29"}})
