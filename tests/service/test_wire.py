"""A request is answered alike in one piece, in several, behind others and in chunks."""

import json
import socket
import subprocess
from contextlib import suppress

import pytest

from tests.service.processes import MANUL, Process
from tests.service.wire import answers, connected, exchanged, request

pytestmark = pytest.mark.whole

HEAT = {"name": "heat", "actions": [20, 70], "agent": {"kind": "cats", "leaves": 16, "bandwidth": 5}}


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    server = Process(tmp_path_factory.mktemp("wire"))
    server.ask("POST", "/v1/loops", HEAT)
    yield server.port
    assert server.stop() == 0


DECIDE = "/v1/loops/heat/decisions"
REQUESTS = {
    "decision": (DECIDE, {"context": [1, 2], "id": "monday"}, 200),
    "again": (DECIDE, {"context": [1, 2], "id": "monday"}, 200),
    "other context": (DECIDE, {"context": [2, 2], "id": "monday"}, 409),
    "loss": (DECIDE + "/monday/loss", {"loss": 0.5}, 200),
    "loss again": (DECIDE + "/monday/loss", {"loss": 0.5}, 200),
    "other loss": (DECIDE + "/monday/loss", {"loss": 0.25}, 409),
    "loss out of range": (DECIDE + "/monday/loss", {"loss": 7}, 422),
    "unknown id": (DECIDE + "/tuesday/loss", {"loss": 0.5}, 404),
    "unknown loop": ("/v1/loops/cold/decisions", {"context": [1, 2]}, 404),
    "no JSON": (DECIDE, b"{", 400),
    "wrong type": (DECIDE, {"context": "hello"}, 422),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_in_two_pieces_is_answered_as_in_one(port, name):
    path, body, status = REQUESTS[name]
    for first in ("decision", "loss") if name != "decision" else ():
        exchanged(port, request("POST", *REQUESTS[first][:2]), count=1)
    whole = request("POST", path, body, "X-Request-Id: mine")
    (once,), (twice,) = exchanged(port, whole, count=1), exchanged(port, whole[:30], whole[30:], count=1)
    assert once._replace(headers={}) == twice._replace(headers={})
    assert (once.status, once.headers["content-type"], once.headers["x-request-id"]) == (
        status,
        "application/json",
        "mine",
    )


@pytest.mark.parametrize("headers", [[], ["Authorization: Bearer wrong"], ["Authorization: nonsense"]])
def test_a_request_without_a_token_is_refused(tmp_path, headers):
    subprocess.run([MANUL, "token", "decide", "--file", "tokens"], cwd=tmp_path, check=True)
    server = Process(tmp_path, "decisions.db", "--token-file", "tokens")
    (found,) = exchanged(server.port, request("POST", DECIDE, {"context": [1, 2]}, *headers), count=1)
    assert (found.status, found.headers["www-authenticate"]) == (401, "Bearer")
    server.stop()


@pytest.mark.parametrize("together", [True, False])
def test_requests_behind_each_other_are_answered_in_their_order(port, together):
    ids = [f"piped-{together}-{number}" for number in range(8)]
    requests = [request("POST", DECIDE, {"context": [place, 1], "id": each}) for place, each in enumerate(ids)]
    found = exchanged(port, *([b"".join(requests)] if together else requests), count=8)
    assert [json.loads(each.body)["id"] for each in found] == ids


@pytest.mark.parametrize(("headers", "version"), [(["Connection: close"], "1.1"), ([], "1.0")])
def test_a_connection_that_shall_close_closes(port, headers, version):
    (found,) = exchanged(port, request("POST", DECIDE, {"context": [1, 2]}, *headers, version=version))
    assert found.status == 200


def test_a_body_may_come_in_chunks(port):
    head = f"POST {DECIDE} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    (found,) = exchanged(port, head + b'12\r\n{"context": [1,2]}\r\n0\r\n\r\n', count=1)
    assert found.status == 200


def test_what_follows_a_body_in_chunks_waits_for_its_answer(port):
    head = f"POST {DECIDE} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    found = exchanged(port, head + b'12\r\n{"context": [1,2]}\r\n0\r\n\r\nnonsense\r\n\r\n')
    assert [each.status for each in found] == [200, 400]


@pytest.mark.parametrize("cut_at", [-40, -3, -2, -1, 0, 5])
def test_a_request_for_another_protocol_is_answered_in_this_one(port, cut_at):
    upgrade = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")
    first = request("GET", "/healthz", b"", *upgrade)
    data, place = first + request("GET", "/readyz"), len(first) + cut_at
    with connected(port) as connection:
        connection.sendall(data[:place])
        connection.settimeout(0.02)
        with suppress(TimeoutError):
            connection.recv(1, socket.MSG_PEEK)
        connection.settimeout(10)
        connection.sendall(data[place:])
        found = b""
        while len(answers(found)) < 2:
            found += connection.recv(65536)
    assert [each.status for each in answers(found)] == [200, 200]


@pytest.mark.parametrize("size", [None, 16, 5000, 200_000])
def test_a_large_body_arrives_whole_or_in_chunks_of_any_size(port, size):
    body = json.dumps({"decisions": [{"context": [0.123456, 1]}] * 10_000}).encode()
    whole = request("POST", DECIDE + "/batch", body)
    if size is not None:
        chunks = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in cut(body, size))
        head = f"POST {DECIDE}/batch HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
        whole = head.encode() + chunks + b"0\r\n\r\n"
    found = exchanged(port, whole + request("GET", "/healthz"), count=2)
    assert [each.status for each in found] == [200, 200]
    assert len(json.loads(found[0].body)["decisions"]) == 10_000


def cut(data, size):
    return [data[start : start + size] for start in range(0, len(data), size)]
