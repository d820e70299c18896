"""Bytes of HTTP over a socket, as no library would send them."""

import json
import re
import socket
from pathlib import Path
from typing import NamedTuple


class Answer(NamedTuple):
    """One answer: status, headers by lower-case name, body."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def error(self):
        """What the one envelope of errors says."""
        return json.loads(self.body)["error"]


def connected(port):
    """A socket that sends what it is given at once."""
    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def request(method, path, body=b"", *headers, version="1.1"):
    """A whole request."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/{version}", "Host: 127.0.0.1", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + content


def exchanged(port, *pieces, count=None):
    """The answers to some bytes: so many, or all until the connection closes."""
    data = b""
    with connected(port) as connection:
        for piece in pieces:
            try:
                connection.sendall(piece)
            except (ConnectionResetError, BrokenPipeError):
                break
        while count is None or len(answers(data)) < count:
            try:
                some = connection.recv(65536)
            except ConnectionResetError:
                break
            if not some:
                break
            data += some
    return answers(data)


def answers(data):
    """The whole answers in some bytes; 100 Continue does not count."""
    found = []
    while (end := data.find(b"\r\n\r\n")) >= 0:
        first, *lines = data[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(data) < end + 4 + length:
            break
        status = int(re.match(r"HTTP/1\.1 (\d+)", first)[1])
        if status != 100:
            found.append(Answer(status, headers, data[end + 4 : end + 4 + length]))
        data = data[end + 4 + length :]
    return found


def resident(process):
    """Resident mebibytes of a process."""
    return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * 4096 / 2**20
