"""A service inside the test, spoken to without a network."""

import asyncio
import functools
import json
from contextlib import asynccontextmanager

import httpx
import pytest

from manul.service.engine import engine as engines
from manul.service.engine import learner as learners
from manul.service.engine.engine import Engine
from manul.service.http import metrics
from manul.service.http.application import Application
from manul.service.http.tokens import Tokens
from manul.service.store import connections, sqlite, watchdog
from manul.service.store.store_registry import open_store
from tests.service.postgres import Server

# A server of PostgreSQL is started once for all tests of a process.
STORES = ["sqlite", pytest.param("postgres", marks=pytest.mark.whole)]
on_postgres = pytest.mark.parametrize("store", STORES[1:], indirect=True)
LIMITS_OF_TIME = [
    (engines, "STOP_SECONDS"),
    (engines, "ACT_SECONDS"),
    (learners, "STOP_SECONDS"),
    (learners, "LEARN_SECONDS"),
    (metrics, "STORE_SECONDS"),
    (watchdog, "ANSWER_SECONDS"),
    (connections, "CONNECT_SECONDS"),
    (sqlite, "BUSY_SECONDS"),
]


@pytest.fixture(autouse=True)
def _patient(monkeypatch):
    """No limit of time in the service ends what a busy machine has not come to; tests of a limit set it themselves."""
    for module, name in LIMITS_OF_TIME:
        monkeypatch.setattr(module, name, 60)
    # Nor are there snapshots for other replicas; tests with several ask for them.
    monkeypatch.setattr(learners, "REPLICA_SNAPSHOT_SECONDS", 60.0)


@pytest.fixture
def replicated(_patient, monkeypatch):
    """Replicas save snapshots for each other soon."""
    monkeypatch.setattr(learners, "REPLICA_SNAPSHOT_SECONDS", 0.5)


class Clock:
    """Time that goes on when it is told to."""

    def __init__(self):
        self.time = 1_000_000.0

    def __call__(self):
        return self.time


async def until(holds):
    """Waits for what other threads bring about."""
    async with asyncio.timeout(60):  # much longer than anything takes on a busy machine
        while not holds():
            await asyncio.sleep(0.001)


class Service:
    """An engine on a store, and a client of its application."""

    def __init__(self, store, *, tokens=None, limits=None):
        self.store, self.tokens, self.limits, self.clock = str(store), tokens or Tokens(), limits, Clock()

    @asynccontextmanager
    async def running(self, **settings):
        self.engine = Engine(open_store(self.store), self.limits, clock=self.clock, **settings)
        await self.engine.start()
        transport = httpx.ASGITransport(Application(self.engine, self.tokens))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as self.client:
            try:
                yield self
            finally:
                await self.engine.stop()

    async def post(self, path, status=200, **body):
        answer = await self.client.post(f"/v1/loops{path}", json=body)
        assert answer.status_code == status, answer.text
        return answer.json()

    async def get(self, path):
        answer = await self.client.get(f"/v1/loops{path}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def learned(self, loop, outcomes):
        """Waits until the model contains that many outcomes, and its rollout has counted them."""

        def holds():
            with self.engine.loop(loop).model.hold() as model:  # not in the middle of what is being learned
                return model.learned >= outcomes

        await until(holds)

    async def caught_up(self, loop):
        """Waits until the model contains everything that is stored, also what the service notes by itself."""
        served, store = self.engine.loop(loop), self.engine.store

        def holds():
            with served.model.hold() as model:
                return model.event >= store.counts(served.number).events

        await until(holds)
        await self.engine.write(lambda _: None)  # what was about to be written is written
        await until(holds)

    async def refused(self, status, path, content, *, method="POST", field=None, **headers):
        """Sends something that must be refused in the one shape; returns the sentence."""
        before = self.engine.store.counts(1)
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        answer = await self.client.request(method, path, content=body, headers=headers)
        assert answer.status_code == status, answer.text
        error = answer.json()["error"]
        assert set(answer.json()) == {"error"}
        assert set(error) <= {"code", "message", "field"}
        assert field is None or error["field"] == field, error
        after = self.engine.store.counts(1)
        assert after.decisions == before.decisions
        added = self.engine.store.events(1, before.events, 100) if after.events > before.events else []
        # The service notes by itself, once a second, which numbers and decisions a rollout does not wait for.
        assert {event.kind for event, _ in added} <= {"void", "overdue"}
        return error["message"]


def refusal_of_loop(folder, actions, **field):
    """The sentence that refuses a loop with such actions; the service has another one, which stays."""

    async def ask():
        async with Service(folder / "a.db").running() as service:
            await service.post("", 201, name="other", actions=[20, 70])
            said = await service.refused(422, "/v1/loops", {"name": "x", "actions": actions}, **field)
            assert list(service.engine.loops) == ["other"]
            return said

    return asyncio.run(ask())


@pytest.fixture(scope="module")
def browser():
    """A real browser."""
    from tests.service.browser import browsing, missing  # takes long to import

    if missing():
        pytest.fail(missing())
    with browsing() as found:
        yield found


@pytest.fixture(scope="session")
def postgres():
    """A real server, for the whole session."""
    server = Server()
    yield server
    server.remove()


@pytest.fixture(params=STORES)
def store(request, tmp_path):
    """An empty store of every kind."""
    return empty_store(request, tmp_path / "decisions.db")


def empty_store(request, file):
    """The place of an empty store of the kind that a fixture asks for."""
    return str(file) if request.param == "sqlite" else request.getfixturevalue("postgres").database()


@pytest.fixture
def service(store):
    return Service(store)


def run(test):
    """Runs a coroutine function as a test."""

    @functools.wraps(test)
    def in_loop(*args, **kwargs):
        asyncio.run(test(*args, **kwargs))

    return in_loop
