"""The short way answers what the long way answers; a request in two pieces takes the long one."""

import json
import re
import socket
import subprocess

import pytest

from tests.service.processes import MANUL, Process

HEAT = {"name": "heat", "actions": [20, 70], "agent": {"kind": "cats", "leaves": 16, "bandwidth": 5}}


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    server = Process(tmp_path_factory.mktemp("lane"))
    server.ask("POST", "/v1/loops", HEAT)
    yield server.port
    assert server.stop() == 0


def asked(path, body, *headers, version="1.1"):
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = [f"POST {path} HTTP/{version}", "Host: x", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + content


def answers(port, pieces, count):
    """What a connection says to some pieces, sent one after the other, once it has answered so many times."""
    found = b""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for piece in pieces:
            connection.sendall(piece)
            if piece is not pieces[-1]:
                connection.settimeout(0.05)
                with pytest.raises(TimeoutError):
                    connection.recv(1)
                connection.settimeout(10)
        while len(bodies := split(found)) < count:
            some = connection.recv(65536)
            assert some, found
            found += some
    return bodies


def split(data):
    """Status, headers that matter and body of each whole answer."""
    found = []
    while (end := data.find(b"\r\n\r\n")) >= 0:
        head = data[:end].lower()
        length = int(re.search(rb"content-length: (\d+)", head)[1])
        if len(data) < end + 4 + length:
            break
        kind = re.search(rb"content-type: (\S+)", head)[1]
        names = sorted(line.partition(b":")[0] for line in head.split(b"\r\n")[1:])
        found.append((int(head[9:12]), kind, names, data[end + 4 : end + 4 + length]))
        data = data[end + 4 + length :]
    return found


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
def test_both_ways_say_the_same(port, name):
    path, body, status = REQUESTS[name]
    for first in ("decision", "loss") if name != "decision" else ():
        answers(port, [asked(*REQUESTS[first][:2])], 1)
    whole = asked(path, body)
    (short,), (long,) = answers(port, [whole], 1), answers(port, [whole[:30], whole[30:]], 1)
    assert short == long
    assert (short[0], short[1]) == (status, b"application/json")


@pytest.mark.parametrize("headers", [[], ["Authorization: Bearer wrong"], ["Authorization: nonsense"]])
def test_both_ways_ask_for_a_token(tmp_path, headers):
    subprocess.run([MANUL, "token", "decide", "--file", "tokens"], cwd=tmp_path, check=True)
    server = Process(tmp_path, "decisions.db", "--token-file", "tokens")
    whole = asked(DECIDE, {"context": [1, 2]}, *headers)
    assert answers(server.port, [whole], 1) == answers(server.port, [whole[:30], whole[30:]], 1)
    assert answers(server.port, [whole], 1)[0][0] == 401
    server.stop()


def test_requests_in_one_piece_are_answered_in_their_order(port):
    contexts = [[number, 1] for number in range(8)]
    requests = [asked(DECIDE, {"context": each, "id": f"piped-{each[0]}"}) for each in contexts]
    found = answers(port, [b"".join(requests)], 8)
    assert [json.loads(body)["id"] for *_, body in found] == [f"piped-{number}" for number in range(8)]


def test_a_request_behind_one_that_is_being_answered_waits_for_it(port):
    requests = [asked(DECIDE, {"context": [number, 1], "id": f"behind-{number}"}) for number in range(3)]
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        found = b""
        for each in requests:
            connection.sendall(each)
        while len(split(found)) < 3:
            found += connection.recv(65536)
    assert [json.loads(body)["id"] for *_, body in split(found)] == [f"behind-{number}" for number in range(3)]


@pytest.mark.parametrize(("headers", "version"), [(["Connection: close"], "1.1"), ([], "1.0")])
def test_a_connection_that_shall_close_closes(port, headers, version):
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(asked(DECIDE, {"context": [1, 2]}, *headers, version=version))
        found = b""
        while some := connection.recv(65536):
            found += some
    assert split(found)[0][0] == 200


def test_a_body_in_chunks_takes_the_long_way(port):
    head = f"POST {DECIDE} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    (found,) = answers(port, [head + b'12\r\n{"context": [1,2]}\r\n0\r\n\r\n'], 1)
    assert found[0] == 200
