"""A service inside the test, spoken to without a network."""

import asyncio
import functools
import json
from contextlib import asynccontextmanager

import httpx
import pytest

from manul.service.engine.engine import Engine
from manul.service.http.application import Application
from manul.service.http.tokens import Tokens
from manul.service.store.store_registry import open_store
from tests.service.browser import browsing, missing
from tests.service.postgres import Server

# A server of PostgreSQL is started once for all tests of a process.
STORES = ["sqlite", pytest.param("postgres", marks=pytest.mark.whole)]
on_postgres = pytest.mark.parametrize("store", STORES[1:], indirect=True)


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
        """Waits until the model contains that many outcomes."""
        await until(lambda: self.engine.loop(loop).model.learned >= outcomes)

    async def refused(self, status, path, content, *, method="POST", field=None, **headers):
        """Sends something that must be refused in the one shape; returns the sentence."""
        kept = self.engine.store.counts(1).decisions, self.engine.store.counts(1).events
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        answer = await self.client.request(method, path, content=body, headers=headers)
        assert answer.status_code == status, answer.text
        error = answer.json()["error"]
        assert set(answer.json()) == {"error"}
        assert set(error) <= {"code", "message", "field"}
        assert field is None or error["field"] == field, error
        assert (self.engine.store.counts(1).decisions, self.engine.store.counts(1).events) == kept
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
