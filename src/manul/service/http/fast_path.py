"""The two busiest routes, answered from the callbacks of the HTTP parser: no task, no ASGI messages, one write.

Only a plain and admissible request takes this path; every other one goes through uvicorn and the router, which give the
same answers.
"""

from __future__ import annotations

import asyncio
import re
import time
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import STATUS_LINE

from manul.service.engine.writes import Future
from manul.service.http import answers
from manul.service.http.answers import Answer
from manul.service.http.bodies import DIGITS, UNCOUNTED
from manul.service.http.routes import Encode, asked_for, lost

if TYPE_CHECKING:
    from manul.service.http.connection import Connection

PATH = re.compile(rb"/v1/loops/([\w.-]+)/decisions(?:/([\w.~-]+)/loss)?")
# Headers that change how a request is read or its connection is used.
UNUSUAL = frozenset({b"transfer-encoding", b"connection", b"upgrade", b"expect"})


class _NoEvent:
    """Nobody waits for the body of a request on this path: its end is a callback."""

    def set(self) -> None:
        """Wake nobody."""


class FastRequest:
    """A request and its answer, in the place of uvicorn's cycle, whose attributes it has."""

    message_event = _NoEvent()

    def __init__(self, connection: Connection, path: re.Match[bytes], headers: dict[bytes, bytes]) -> None:
        self._connection, self._application = connection, connection.application
        self._loop, self._decision = path[1].decode(), path[2].decode() if path[2] else None
        self._request_id = self._application.request_id(headers.get(b"x-request-id"))
        self._began = time.perf_counter()
        self.body, self.more_body = bytearray(), True
        self.response_started = self.response_complete = self.disconnected = False
        self.keep_alive = True

    @classmethod
    def of(cls, connection: Connection) -> FastRequest | None:
        """The request whose head has been received, if it can take this path."""
        path = PATH.fullmatch(connection.url)
        if path is None or connection.parser.get_method() != b"POST" or connection.parser.get_http_version() != "1.1":
            return None
        headers, application = dict(connection.headers), connection.application
        if len(headers) < len(connection.headers) or not UNUSUAL.isdisjoint(headers) or connection.flow.write_paused:
            return None
        length = headers.get(b"content-length", b"")
        if not length.isdigit() or len(length) > DIGITS or int(length) > min(UNCOUNTED, application.limits.body):
            return None
        refused = application.refuses("POST", path[0].decode(), headers, "report" if path[2] else "decide")
        return None if refused else cls(connection, path, headers)

    def respond(self) -> None:
        """Answer the request, whose body is complete, once what it asks for is durable."""
        try:
            written, encode = self._ask()
        except Exception as error:
            # Not at once: the parser is still inside the callback that has led here.
            self._connection.loop.call_soon(self._fail, error)
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
        body, engine = bytes(self.body), self._application.engine
        if self._decision is None:
            return asked_for(engine, self._loop, body)
        return lost(engine, self._loop, self._decision, body)

    def _fail(self, error: BaseException) -> None:
        self._send(answers.refusal(answers.problem_of(error)), error)

    def _send(self, answer: Answer, error: BaseException | None = None) -> None:
        route = "decide" if self._decision is None else "lose"
        self._application.note(route, answer.status, time.perf_counter() - self._began, self._request_id, error)
        connection = self._connection
        self.response_started = self.response_complete = True
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
