"""The two routes that matter for speed, answered straight from the bytes of a connection.

A request for a decision, or with a loss, that arrives whole and asks for nothing unusual is answered without the
machinery of ASGI. All others go to uvicorn and the application, which say the same.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from starlette.applications import Starlette
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from manul.service import bodies
from manul.service.problems import Problem
from manul.service.routes import Encode, asked_for, lost

log = logging.getLogger("manul.service")
_LINE = re.compile(rb"POST /v1/loops/([\w.-]+)/decisions(?:/([\w.~-]+)/loss)? HTTP/1\.1", re.ASCII)
_UNUSUAL = (b"transfer-encoding", b"expect", b"upgrade", b"connection")


class Request(NamedTuple):
    """A whole request; `decision` is the id that a loss is for, None where a decision is asked for."""

    loop: str
    decision: str | None
    authorization: bytes | None
    body: bytes


def request(data: bytes, limit: int) -> Request | None:
    """What some bytes ask for, if they are one request of the usual kind.

    >>> request(b'POST /v1/loops/heat/decisions HTTP/1.1\\r\\nContent-Length: 2\\r\\n\\r\\n{}', 100)
    Request(loop='heat', decision=None, authorization=None, body=b'{}')
    >>> request(b'POST /v1/loops/heat/decisions HTTP/1.1\\r\\nContent-Length: 3\\r\\n\\r\\n{}', 100)
    """
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.split(b"\r\n")
    line = _LINE.fullmatch(first)
    if line is None or len(body) > limit:
        return None
    authorization = length = None
    for each in lines:
        name, _, value = each.partition(b":")
        name = name.lower()
        if name == b"content-length":
            if length is not None:
                return None
            length = value.strip()
        elif name == b"authorization":
            authorization = value.strip()
        elif name in _UNUSUAL and value.strip().lower() != b"keep-alive":
            return None
    if length is None or not length.isdigit() or int(length) != len(body):
        return None
    decision = line[2]
    return Request(line[1].decode(), None if decision is None else decision.decode(), authorization, body)


class Lane(HttpToolsProtocol):
    """A connection whose usual requests take the short way, one at a time; what comes behind one waits for it."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        state = cast(Starlette, self.config.app).state
        self._engine, self._tokens = state.engine, state.tokens
        self._between = True
        self._answering = self._closing = False
        self._behind = b""

    def data_received(self, data: bytes) -> None:
        """Answer a whole request, or leave it to uvicorn."""
        if self._answering:
            self._behind += data
            self.flow.pause_reading()
            return
        asked = request(data, self._engine.limits.body) if self._is_free() else None
        if asked is None:
            super().data_received(data)
        else:
            self._unset_keepalive_if_required()
            self._take(asked)

    def on_message_begin(self) -> None:
        """A request that uvicorn reads has begun."""
        self._between = False
        super().on_message_begin()

    def on_message_complete(self) -> None:
        """It has been read."""
        self._between = True
        super().on_message_complete()

    def shutdown(self) -> None:
        """Close once what was asked for is answered."""
        if self._answering:
            self._closing = True
        else:
            super().shutdown()

    def _is_free(self) -> bool:
        done = self.cycle is None or self.cycle.response_complete
        room = self.limit_concurrency is None or len(self.connections) < self.limit_concurrency
        return self._between and done and room

    def _take(self, asked: Request) -> None:
        self._answering = True
        try:
            if asked.decision is None:
                self._tokens.require(asked.authorization, "decide")
                written, answer = asked_for(self._engine, asked.loop, asked.body)
            else:
                self._tokens.require(asked.authorization, "report")
                written, answer = lost(self._engine, asked.loop, asked.decision, asked.body)
        except Exception as error:
            self._send(*_failed(error))
            return
        written.add_done_callback(lambda future: self._send(*_answered(future.exception, future.result, answer)))

    def _send(self, status: int, body: bytes) -> None:
        self._answering = False
        if self.transport.is_closing():
            return
        headers = [b"%b: %b\r\n" % header for header in self.server_state.default_headers]
        headers += [b"www-authenticate: Bearer\r\n"] if status == 401 else []
        known = b"content-length: %d\r\ncontent-type: application/json\r\n" % len(body)
        last = b"connection: close\r\n\r\n" if self._closing else b"\r\n"
        self.transport.write(b"".join((STATUS_LINE[status], *headers, known, last, body)))
        if self._closing:
            self.transport.close()
            return
        self.on_response_complete()
        if self._behind:
            behind, self._behind = self._behind, b""
            self.data_received(behind)


def _answered(failure: Callable[[], Any], result: Callable[[], Any], answer: Encode) -> tuple[int, bytes]:
    try:
        error = failure()
        return _failed(error) if error is not None else (200, answer(result()))
    except Exception as error:
        return _failed(error)


def _failed(error: BaseException) -> tuple[int, bytes]:
    if isinstance(error, Problem):
        return error.status, bodies.error_body(error)
    log.error("a request failed", exc_info=error)
    return 500, bodies.error_body(bodies.failure())
