"""A fast path for the two busiest routes: no task, no ASGI messages, one write.

Only plain, authorised requests that arrive in one piece take it. All others go through uvicorn and the router, which give
the same responses. Header lines are parsed by the same library as there, and remembered: clients repeat them.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from manul.service.http import answers
from manul.service.http.answers import Answer
from manul.service.http.bodies import FREE_BYTES, MAX_DIGITS
from manul.service.http.handlers import encode_answer, parse_decision, parse_loss
from manul.service.http.tokens import Access, Right

if TYPE_CHECKING:
    from manul.service.http.connection import Connection

# Strict: a line that matches has no character with a special meaning in HTTP.
LINE = re.compile(rb"POST (/v1/loops/([\w.-]+)/decisions(?:/([\w.~-]+)/loss)?) HTTP/1\.1\r\n")
END = b"\r\n\r\n"
# Headers that change how the request is parsed or the connection is used.
UNUSUAL = frozenset({b"transfer-encoding", b"connection", b"upgrade", b"expect"})
# Blocks of header lines to remember, and the longest of them in bytes.
REMEMBERED, LONGEST = 1024, 1024


class Headers(NamedTuple):
    """The headers of a plain request, and the length of its body."""

    values: dict[bytes, bytes]
    length: int


class HeaderParser:
    def __init__(self, body_limit: int) -> None:
        self._body_limit = body_limit
        self._known: dict[bytes, Headers | None] = {}

    def read(self, lines: bytes) -> Headers | None:
        """The headers in these lines; None if the request needs the slow path."""
        if lines not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[lines] = self._parse(lines)
        return self._known[lines]

    def _parse(self, lines: bytes) -> Headers | None:
        collected: list[tuple[bytes, bytes]] = []
        parser = httptools.HttpRequestParser(_Collector(collected))
        try:
            parser.feed_data(b"POST / HTTP/1.1\r\n" + lines)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            return None
        values = {name.lower(): value for name, value in collected}
        length = values.get(b"content-length", b"")
        plain = len(values) == len(collected) and UNUSUAL.isdisjoint(values) and parser.should_keep_alive()
        if not plain or not length.isdigit() or len(length) > MAX_DIGITS:
            return None
        return Headers(values, int(length)) if int(length) <= min(FREE_BYTES, self._body_limit) else None


class _Collector:
    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._headers = headers

    def on_header(self, name: bytes, value: bytes) -> None:
        self._headers.append((name, value))


class _NoEvent:
    """Stands in for an event that nobody waits for, because the body has arrived."""

    def set(self) -> None:
        """Do nothing."""


class FastRequest:
    """A request and its response; it has the attributes of uvicorn's request cycle and takes its place."""

    message_event = _NoEvent()
    response_started = False

    def __init__(
        self,
        connection: Connection,
        line: re.Match[bytes],
        access: Access,
        headers: Mapping[bytes, bytes],
        body: bytes,
    ) -> None:
        self._connection, self._application, self._body = connection, connection.application, body
        self._access, self._headers = access, headers
        self._loop, self._decision = line[2].decode(), line[3].decode() if line[3] else None
        self._request_id = self._application.request_id(headers.get(b"x-request-id"))
        self._began = time.perf_counter()
        self.response_complete = self.disconnected = False
        self.keep_alive = True

    @classmethod
    def read(cls, connection: Connection, data: bytes) -> FastRequest | None:
        """Parse a request; None if it needs the slow path."""
        line = LINE.match(data)
        if line is None:
            return None
        start = line.end()
        end = data.find(END, start, start + LONGEST) + len(END)
        headers = connection.header_parser.read(data[start:end]) if end > start else None
        if headers is None or end + headers.length != len(data):
            return None
        right: Right = "report" if line[3] else "decide"
        access = connection.application.authorise(line[1].decode(), headers.values, right, line[2].decode())
        if access is None or line[2].decode() not in connection.application.engine.loops:
            return None
        return cls(connection, line, access, headers.values, data[end:])

    def respond(self) -> None:
        """Respond once the decision or the loss is stored durably."""
        engine = self._application.engine
        try:
            self._access.take()
            asked = parse_decision(self._body) if self._decision is None else parse_loss(self._decision, self._body)
            asked.respond = self._answer
            engine.groups.add(engine.loops[self._loop], asked)
        except Exception as error:
            self._answer(error)

    def _answer(self, answer: Any) -> None:
        if isinstance(answer, Exception):
            self._send(answers.refusal(answers.problem_of(answer)), answer)
        else:
            self._send(Answer(200, encode_answer(answer)))

    def _send(self, answer: Answer, error: BaseException | None = None) -> None:
        route = "decide" if self._decision is None else "report_loss"
        told = (route, answer.status, time.perf_counter() - self._began, self._request_id, error)
        self._application.note(*told, loop=self._loop, headers=self._headers)
        connection = self._connection
        self.response_complete = True
        if self.disconnected or connection.transport.is_closing():
            return
        ends = () if self.keep_alive else ((b"connection", b"close"),)
        connection.transport.write(encode_response(connection, answer, self._request_id, *ends))
        if not self.keep_alive:
            connection.transport.close()
        connection.on_response_complete()


def encode_response(connection: Connection, answer: Answer, request_id: bytes, *more: tuple[bytes, bytes]) -> bytes:
    headers = [
        *connection.server_state.default_headers,
        (b"content-length", b"%d" % len(answer.body)),
        *answer.headers,
        (b"x-request-id", request_id),
        *more,
    ]
    lines = [b"%b: %b\r\n" % header for header in headers]
    return b"".join((STATUS_LINE[answer.status], *lines, b"\r\n", answer.body))
