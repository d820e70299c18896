"""The two busiest routes, answered without a task, without ASGI messages and with one write.

Only a plain and admissible request that arrives whole takes this path; every other one goes through uvicorn and the router,
which give the same answers. Its head is parsed by the same library as theirs, and once only: the next request on any
connection that repeats the same header lines, as clients do, is recognised by them.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING, NamedTuple

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from manul.service.engine.writes import Future
from manul.service.http import answers
from manul.service.http.answers import Answer
from manul.service.http.bodies import FREE_BYTES, MAX_DIGITS
from manul.service.http.routes import Encode, start_decision, start_loss_report

if TYPE_CHECKING:
    from manul.service.http.connection import Connection

# The end of the pattern is that of the line: what matches holds no character that has a meaning in HTTP.
LINE = re.compile(rb"POST (/v1/loops/([\w.-]+)/decisions(?:/([\w.~-]+)/loss)?) HTTP/1\.1\r\n")
END = b"\r\n\r\n"
# Headers that change how a request is read or its connection is used.
UNUSUAL = frozenset({b"transfer-encoding", b"connection", b"upgrade", b"expect"})
# Blocks of header lines that are remembered, and the longest that is.
REMEMBERED, LONGEST = 1024, 1024


class Headers(NamedTuple):
    """The header lines of a plain request: what they say, and the length of the body."""

    values: dict[bytes, bytes]
    length: int


class HeaderParser:
    """Reads the header lines of plain requests."""

    def __init__(self, body_limit: int) -> None:
        self._body_limit = body_limit
        self._known: dict[bytes, Headers | None] = {}

    def read(self, lines: bytes) -> Headers | None:
        """What some header lines say; None if a request with them is not plain."""
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
    """Receives the headers from the parser."""

    def __init__(self, headers: list[tuple[bytes, bytes]]) -> None:
        self._headers = headers

    def on_header(self, name: bytes, value: bytes) -> None:
        """One header."""
        self._headers.append((name, value))


class _NoEvent:
    """Nobody waits for the body of a request that arrived whole."""

    def set(self) -> None:
        """Wake nobody."""


class FastRequest:
    """A request and its answer, in the place of uvicorn's cycle, whose attributes it has."""

    message_event = _NoEvent()
    response_started = False

    def __init__(self, connection: Connection, line: re.Match[bytes], given_id: bytes | None, body: bytes) -> None:
        self._connection, self._application, self._body = connection, connection.application, body
        self._loop, self._decision = line[2].decode(), line[3].decode() if line[3] else None
        self._request_id = self._application.request_id(given_id)
        self._began = time.perf_counter()
        self.response_complete = self.disconnected = False
        self.keep_alive = True

    @classmethod
    def read(cls, connection: Connection, data: bytes) -> FastRequest | None:
        """The request that some bytes are, if it can take this path."""
        line = LINE.match(data)
        if line is None:
            return None
        start = line.end()
        end = data.find(END, start, start + LONGEST) + len(END)
        headers = connection.header_parser.read(data[start:end]) if end > start else None
        if headers is None or end + headers.length != len(data):
            return None
        if connection.application.refuses(line[1].decode(), headers.values, "report" if line[3] else "decide"):
            return None
        return cls(connection, line, headers.values.get(b"x-request-id"), data[end:])

    def respond(self) -> None:
        """Answer the request once what it asks for is durable."""
        try:
            written, encode = self._ask()
        except Exception as error:
            self._fail(error)
            return
        tasks = self._connection.tasks
        tasks.add(written)  # type: ignore[arg-type]

        def answer(done: Future) -> None:
            tasks.discard(done)
            try:
                self._send(Answer(200, encode(done.result())))
            except (Exception, asyncio.CancelledError) as error:
                self._fail(error)

        written.add_done_callback(answer)

    def _ask(self) -> tuple[Future, Encode]:
        engine = self._application.engine
        if self._decision is None:
            return start_decision(engine, self._loop, self._body)
        return start_loss_report(engine, self._loop, self._decision, self._body)

    def _fail(self, error: BaseException) -> None:
        self._send(answers.refusal(answers.problem_of(error)), error)

    def _send(self, answer: Answer, error: BaseException | None = None) -> None:
        route = "decide" if self._decision is None else "report_loss"
        self._application.note(route, answer.status, time.perf_counter() - self._began, self._request_id, error)
        connection = self._connection
        self.response_complete = True
        if self.disconnected or connection.transport.is_closing():
            return
        ends = () if self.keep_alive else ((b"connection", b"close"),)
        connection.transport.write(whole(connection, answer, self._request_id, *ends))
        if not self.keep_alive:
            connection.transport.close()
        connection.on_response_complete()


def whole(connection: Connection, answer: Answer, request_id: bytes, *more: tuple[bytes, bytes]) -> bytes:
    """The bytes of an answer."""
    headers = [
        *connection.server_state.default_headers,
        (b"content-length", b"%d" % len(answer.body)),
        *answer.headers,
        (b"x-request-id", request_id),
        *more,
    ]
    lines = [b"%b: %b\r\n" % header for header in headers]
    return b"".join((STATUS_LINE[answer.status], *lines, b"\r\n", answer.body))
