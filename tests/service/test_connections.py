"""One connection cannot take much memory or time, and many cannot keep others out."""

import asyncio
import socket
import threading
import time
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, suppress
from functools import partial

import pytest

from manul.service.configuration import Limits
from manul.service.errors import Unavailable
from manul.service.http.application import Application
from manul.service.http.server import Server, listening_sockets
from manul.service.http.tokens import Tokens
from tests.service.conftest import Service, run, until
from tests.service.processes import Process
from tests.service.wire import answers, connected, exchanged, request, resident

pytestmark = pytest.mark.whole

HEALTH = request("GET", "/healthz")
START = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """With time enough for every request, on a busy machine too."""
    server = Process(tmp_path_factory.mktemp("connections"), "decisions.db", "--max-connections", 20)
    yield server
    assert server.stop() == 0


@pytest.fixture(scope="module")
def hasty(tmp_path_factory):
    seconds = ("--max-head-seconds", 0.5, "--max-body-seconds", 0.5)
    server = Process(tmp_path_factory.mktemp("hasty"), "decisions.db", *seconds)
    yield server
    assert server.stop() == 0


def flooded(port, start, piece, megabytes):
    """Sends a start and then the same piece again and again; what was answered, and how much had been sent by then."""
    sent, data = 0, b""
    with connected(port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        connection.sendall(start)
        connection.setblocking(False)
        until = time.monotonic() + 60
        while sent < megabytes * 2**20 and time.monotonic() < until:
            try:
                sent += connection.send(piece)
            except BlockingIOError:
                time.sleep(0.001)
            except (ConnectionResetError, BrokenPipeError):
                break
            try:
                data += connection.recv(65536)
            except BlockingIOError:
                continue
            except ConnectionResetError:
                break
            if answers(data):
                break
    return answers(data), sent


CHUNKED = b"POST /v1/loops HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "headers": (START, b"a: b\r\n" * 1000),
    "one header": (START + b"X: ", b"a" * 6000),
    "trailers": (CHUNKED + b"0\r\n", b"a: b\r\n" * 1000),
    "one trailer": (CHUNKED + b"0\r\nX: ", b"a" * 6000),
    "extension of a chunk": (CHUNKED + b"1;", b"a" * 6000),
    "tiny chunks": (CHUNKED, b"1\r\na\r\n" * 1000),
    "empty lines": (b"", b"\r\n" * 1000),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_a_head_without_an_end_is_refused_early(server, name):
    start, piece = ENDLESS[name]
    before = resident(server.process.pid)
    found, sent = flooded(server.port, start, piece, 20)
    assert [(each.status, each.error["code"]) for each in found] == [(431, "head_too_large")]
    assert sent < 5 * 2**20
    assert resident(server.process.pid) - before < 20


@pytest.mark.parametrize(("extra", "status"), [(0, 200), (1, 431)])
def test_a_head_may_be_as_large_as_the_limit(server, extra, status):
    head = START + b"X: " + b"a" * (32768 + extra - len(START) - 3 - 4) + b"\r\n\r\n"
    for pieces in ([head], [head[:7], head[7:30000], head[30000:]]):
        (found,) = exchanged(server.port, *pieces, count=1)
        assert found.status == status


def test_too_many_headers_are_refused(server):
    many = [f"X-{number}: 1" for number in range(101)]
    (found,) = exchanged(server.port, request("GET", "/healthz", b"", *many))
    assert (found.status, found.error["code"]) == (431, "head_too_large")


@pytest.mark.parametrize(
    "data",
    [
        b"nonsense\r\n\r\n",
        b"GET /healthz HTTP/1.1\nHost: 127.0.0.1\n\n",
        START + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n",
        START + b"Content-Length: -1\r\n\r\n",
        START + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        START + b"X: a\r\n folded\r\n\r\n",
        START + b"X: a\0b\r\n\r\n",
        START + b"Host: 127.0.0.1\r\n\r\n",
        START + b"Authorization: a\r\nAuthorization: b\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\n\r\n",
    ],
)
def test_a_malformed_request_is_refused_in_the_one_envelope(server, data):
    found = exchanged(server.port, data, count=1)
    assert [(each.status, each.error["code"]) for each in found] == [(400, "malformed")]
    assert found[0].headers["content-type"] == "application/json"
    assert "x-request-id" in found[0].headers


@pytest.mark.parametrize(
    "data", [START + b"X: a", request("POST", "/v1/loops", b"{" * 100)[:-50]], ids=["head", "body"]
)
def test_a_request_that_does_not_end_in_time_is_refused(hasty, data):
    (found,) = exchanged(hasty.port, data)
    assert (found.status, found.error["code"]) == (408, "timeout")


def test_a_body_behind_another_request_has_to_end_in_time_too(hasty):
    found = exchanged(hasty.port, CHUNKED + b"0\r\n\r\n" + request("POST", "/v1/loops", b"{}")[:-1])
    assert [each.status for each in found] == [400, 408]


@pytest.mark.parametrize("sent", [HEALTH, CHUNKED + b"0\r\n\r\n"], ids=["no body", "chunks"])
def test_pipelined_requests_wait_outside_of_the_service(server, sent):
    """The answers are read all the while: only what comes in too fast is in question."""
    before, most, until = resident(server.process.pid), 0.0, time.monotonic() + 3
    with connected(server.port) as connection:
        reader = threading.Thread(target=drained, args=(connection,))
        reader.start()
        connection.settimeout(0.2)
        while time.monotonic() < until:
            with suppress(TimeoutError):
                connection.send(sent * 1000)
            most = max(most, resident(server.process.pid) - before)
        connection.shutdown(socket.SHUT_RDWR)
        reader.join()
    assert most < 10


def drained(connection):
    while True:
        try:
            if not connection.recv(2**20):
                return
        except TimeoutError:
            continue
        except OSError:
            return


@pytest.mark.parametrize(
    "sent", [b"", START, request("POST", "/v1/loops", b"{}")[:-1]], ids=["nothing", "head", "body"]
)
def test_connections_that_wait_keep_nobody_out(server, sent):
    with ExitStack() as held:
        for _ in range(30):
            held.enter_context(connected(server.port)).sendall(sent)
        for path in ("/healthz", "/readyz", "/metrics", "/v1/loops"):
            (found,) = exchanged(server.port, request("GET", path), count=1)
            assert found.status == 200


@run
async def test_while_all_connections_are_answered_only_whoever_watches_gets_in(tmp_path, monkeypatch):
    service = Service(tmp_path / "decisions.db", limits=Limits(connections=2))
    decide = request("POST", "/v1/loops/heat/decisions", b"{}")
    async with service.running(), AsyncExitStack() as held:
        await service.post("", 201, name="heat", actions=[20, 70])
        asked = []
        monkeypatch.setattr(service.engine.groups, "add", lambda _, request: asked.append(request))
        port, _ = await held.enter_async_context(listening(service.engine))
        busy = [await asyncio.to_thread(connected, port) for _ in range(2)]
        for each in busy:
            held.enter_context(each).sendall(decide)
        await until(lambda: len(asked) == 2)
        (found,) = await asyncio.to_thread(exchanged, port, request("GET", "/v1/loops"))
        assert (found.status, found.error["code"], found.headers["retry-after"]) == (503, "unavailable", "1")
        for path in ("/healthz", "/readyz", "/metrics"):
            (found,) = await asyncio.to_thread(partial(exchanged, port, request("GET", path), count=1))
            assert found.status == 200
        for each in asked:
            each.respond(Unavailable("never mind"))


@asynccontextmanager
async def listening(engine):
    """The port and the server of an engine inside the test."""
    server = Server(Application(engine, Tokens()))
    with listening_sockets("127.0.0.1", 0) as sockets:
        serving = asyncio.create_task(server.serve(sockets))
        await until(lambda: server.started)
        yield sockets[0].getsockname()[1], server
        server.should_exit = True
        await serving
