"""A client connection: uvicorn's protocol with limits on memory and time.

This overrides internals of uvicorn, so pyproject.toml pins the range of versions that was tested.
"""

from __future__ import annotations

import asyncio
from typing import Any, cast

import httptools
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from manul.service.errors import HeadTooLarge, Malformed, Problem, Timeout, Unavailable
from manul.service.http import answers
from manul.service.http.application import Application
from manul.service.http.fast_path import FastRequest, HeaderParser, encode_response
from manul.service.http.origins import ALWAYS

END = b"\r\n\r\n"
# Bytes of a chunked body that are parsed at a time: at least CHUNK_LEAST, because its data may contain many blank lines and
# each would cost a call; at most CHUNK_MOST, so that other connections get their turn.
CHUNK_LEAST, CHUNK_MOST = 2**6, 2**12
# Time for a rejected client to read the response, and bytes that it may still send.
LINGER_SECONDS, LINGER_BYTES = 1.0, 2**20
# Bytes per second: a large body gets more time if it arrives at least this fast.
SLOWEST = 2**16
REACHABLE = ALWAYS | {"/metrics"}


class Flow(FlowControl):
    """Flow control that keeps reading paused while earlier data waits, even if uvicorn resumes it."""

    held = False

    def resume_reading(self) -> None:
        if not self.held:
            super().resume_reading()

    def hold(self) -> None:
        self.held = True
        self.pause_reading()

    def release(self) -> None:
        if self.held:
            self.held = False
            self.resume_reading()


class Connection(HttpToolsProtocol):
    """A connection that parses one request at a time; pipelined requests wait for the response, mostly unread."""

    flow: Flow

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._service = cast("Connections", self.config.app)
        self.application, self.header_parser = self._service.application, self._service.header_parser
        self._limits = self.application.limits
        self._waiting, self._parsed = b"", 0
        self._in_head = self._in_body = self._has_turn = False
        self._refused: Problem | None = None
        self._head = self._body = self._framing = self._lingered = self._unanswered = 0
        self._announced: int | None = 0
        self._since = self.loop.time()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection; at the limit, close the one that has been idle longest."""
        # Not uvicorn's own version, which creates two sockets to look up addresses that nobody needs.
        self.connections.add(self)
        self.transport, self.flow, self.scheme = transport, Flow(transport), "http"
        self._service.wait_for(self)
        if len(self.connections) > self._limits.connections and not self._service.close_oldest(self):
            self.app = self._service.refusing

    def connection_lost(self, exc: Exception | None) -> None:
        self._service.forget(self)
        self._waiting = b""
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the current request and keep the rest for later."""
        if self._refused:
            self._lingered += len(data)
            if self._lingered > LINGER_BYTES:
                self.transport.abort()
            return
        fast = FastRequest.read(self, data) if self._is_idle() else None
        if fast is not None:
            self._take(fast)
            return
        self._waiting = self._waiting[self._parsed :] + data if self._waiting else data
        self._parsed = 0
        self._parse()

    def _is_idle(self) -> bool:
        """Whether no request is in progress, so that the next one may take the fast path."""
        begun = self._waiting or self._in_head or self._in_body or self._unanswered
        return not begun and not self.flow.write_paused and self.app is not self._service.refusing

    def _take(self, fast: FastRequest) -> None:
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        self.cycle = cast("RequestResponseCycle", fast)
        self._unanswered, self._since = 1, self.loop.time()
        self._service.waiting.pop(self, None)
        fast.respond()

    def expire(self, now: float) -> None:
        """Reject a request that arrives too slowly, and close an idle connection."""
        limits, waited = self._limits, now - self._since
        if self._refused or self.transport.is_closing():
            return
        if self._in_head and waited > limits.head_seconds:
            self.refuse(Timeout(f"The request head did not arrive within {limits.head_seconds:g} seconds."))
        elif self._in_body and waited > limits.body_seconds + self._more_time():
            self.refuse(Timeout(f"The request body did not arrive within {limits.body_seconds:g} seconds."))
        elif self.flow.write_paused and waited > limits.body_seconds:
            self.transport.abort()
        elif not self._in_head and not self._unanswered and waited > limits.idle_seconds:
            self.transport.close()

    def _more_time(self) -> float:
        """Extra seconds for a large body that arrives fast enough and is still needed."""
        return 0.0 if self.cycle.response_complete else self._body / SLOWEST

    def refuse(self, problem: Problem) -> None:
        """Respond with an error after all earlier responses, and close the connection."""
        self._refused, self._waiting = problem, b""
        if self._in_body and self.cycle.response_started:
            self.transport.close()
        elif self._in_body and not self.pipeline:
            self.cycle.disconnected = True
            self.cycle.message_event.set()
            self._close(problem)
        elif self._in_body:
            self.pipeline.popleft()
            self._unanswered -= 1
        elif not self._unanswered:
            self._close(problem)

    def _close(self, problem: Problem) -> None:
        request_id = self.application.request_id()
        self.application.note("none", problem.status, self.loop.time() - self._since, request_id, problem)
        self.transport.write(encode_response(self, answers.refusal(problem), request_id, (b"connection", b"close")))
        self.transport.write_eof()
        self.flow.held = False
        self.flow.resume_reading()
        self.loop.call_later(LINGER_SECONDS, self.transport.abort)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._since = True, self.loop.time()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; trailers of a chunked body are ignored."""
        if not self._in_body:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._in_head, self._head = False, 0
        if len(self.headers) > self._limits.headers:
            self.refuse(
                HeadTooLarge(f"A request may have at most {self._limits.headers} headers, got {len(self.headers)}.")
            )
        if self._refused:
            return
        self._announced, self._body, self._framing = _body_length(self.headers), 0, 0
        super().on_headers_complete()
        self._unanswered += 1
        self._in_body, self._since = True, self.loop.time()

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        self._framing -= len(body)
        if not self._refused:
            super().on_body(body)

    def on_message_complete(self) -> None:
        if not self._refused:
            self._in_body, self._since = False, self.loop.time()
            super().on_message_complete()
            if self._unanswered:
                self._service.waiting.pop(self, None)

    def on_response_complete(self) -> None:
        """Continue with the next pipelined request after a response."""
        if isinstance(self.cycle, FastRequest):
            # Not uvicorn's own version, which sets a timer per response to close idle connections: `expire` closes them.
            self.server_state.total_requests += 1
        else:
            super().on_response_complete()
        self._unanswered -= 1
        if self._unanswered <= self._in_body:
            self._service.wait_for(self)
            self._since = self.loop.time()
        if self._refused is not None and not self._unanswered and not self.transport.is_closing():
            self._close(self._refused)
        else:
            self._parse()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._since = self.loop.time()
        self._service.wait_for(self)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._unanswered and not self._in_body:
            self._service.waiting.pop(self, None)

    def _parse(self) -> None:
        """Parse up to the end of the current request, and pause reading while later requests wait."""
        if self.transport.is_closing():
            return
        chunks = False
        while self._waiting and not chunks and self._unanswered <= self._in_body:
            chunks = self._in_body and self._announced is None
            start, end = self._parsed, self._end()
            self._count(end - start)
            piece = memoryview(self._waiting)[start:end]
            self._waiting, self._parsed = (self._waiting, end) if end < len(self._waiting) else (b"", 0)
            if not self._refused:
                self._feed(piece)
        if not self._service.has_room(self, len(self._waiting)):
            self.transport.abort()
        elif not self._waiting:
            self.flow.release()
        else:
            self.flow.hold()
            if chunks and not self._has_turn:
                self._has_turn = True
                self.loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._has_turn = False
        self._parse()

    def _count(self, size: int) -> None:
        """Reject a head that is too large, and a chunked body that is mostly framing."""
        if not self._in_body:
            if self._head >= self._limits.head:
                self.refuse(HeadTooLarge(f"The request head may have at most {self._limits.head} bytes."))
            self._head += size
        elif self._announced is None:
            self._framing += size
            if self._framing > self._limits.head + self._body + CHUNK_MOST:
                self.refuse(HeadTooLarge("The chunked body is mostly framing: send larger chunks and fewer trailers."))

    def _end(self) -> int:
        """The position where the current request may end: after its head, its body of known length, or a chunk."""
        if self._in_body and self._announced is not None:
            return min(len(self._waiting), self._parsed + max(1, self._announced - self._body))
        least, most = (CHUNK_LEAST, CHUNK_MOST) if self._in_body else (0, self._limits.head - self._head)
        found = self._waiting.find(END, self._parsed + least, self._parsed + most)
        return min(len(self._waiting), self._parsed + most) if found < 0 else found + len(END)

    def _feed(self, piece: memoryview) -> None:
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        while piece and not self._refused:
            try:
                self.parser.feed_data(piece)
                return
            except httptools.HttpParserUpgrade as upgrade:
                # No other protocol is supported: the request is handled as if it had not asked for an upgrade.
                piece = piece[upgrade.args[0] :]
            except httptools.HttpParserError as error:
                self.refuse(Malformed(f"The request is not valid HTTP/1.1: {error}."))


class Connections:
    """The application with a limited number of connections; `waiting` has those that wait for their client, oldest first."""

    def __init__(self, application: Application) -> None:
        self.application = application
        self.header_parser = HeaderParser(application.limits.body)
        # One object, so that connections over the limit can be recognised by it.
        self.refusing: ASGIApp = self.overloaded
        self.waiting: dict[Connection, None] = {}
        self._ahead: dict[Connection, int] = {}
        self._total = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self.application(scope, receive, send)

    async def overloaded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request over the limit of connections: 503, except for health checks and metrics."""
        if scope["path"] in REACHABLE:
            await self.application(scope, receive, send)
        else:
            await self.application.refuse(scope, send, Unavailable(self._full()))

    def wait_for(self, connection: Connection) -> None:
        self.waiting.pop(connection, None)
        self.waiting[connection] = None

    def close_oldest(self, new: Connection) -> bool:
        """Close the connection that has waited longest; whether there was one."""
        oldest = next(iter(self.waiting))
        if oldest is new:
            return False
        del self.waiting[oldest]
        oldest.transport.abort()
        return True

    def has_room(self, connection: Connection, size: int) -> bool:
        """Whether a connection may hold that many unparsed bytes; all connections share the limit of all bodies."""
        before = self._ahead.pop(connection, 0)
        if size:
            self._ahead[connection] = size
        self._total += size - before
        return self._total <= self.application.limits.all_bodies

    def forget(self, connection: Connection) -> None:
        self.waiting.pop(connection, None)
        self._total -= self._ahead.pop(connection, 0)

    def expire(self, now: float) -> None:
        for connection in list(self.waiting):
            connection.expire(now)

    def _full(self) -> str:
        most = self.application.limits.connections
        return f"All {most} connections are in use. Try again later, or raise --max-connections."


def _body_length(headers: list[tuple[bytes, bytes]]) -> int | None:
    """The length of the body; None if it is chunked."""
    known = dict(headers)
    return None if b"transfer-encoding" in known else int(known.get(b"content-length", 0))
