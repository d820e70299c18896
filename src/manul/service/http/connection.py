"""A client connection: HTTP/1.1 with limits on memory and time."""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
from collections import deque
from collections.abc import Iterable
from email.utils import formatdate

import httptools
from starlette.types import ASGIApp, Receive, Scope, Send

from manul.service.errors import HeadTooLarge, Malformed, Problem, Timeout, Unavailable
from manul.service.http import answers, fast_path
from manul.service.http.application import Application
from manul.service.http.asgi_exchange import Exchange, scope_of
from manul.service.http.fast_path import END, FastExchange, Heads
from manul.service.http.origins import ALWAYS

log = logging.getLogger("manul.service")
# Seconds between two looks at all connections, and for requests under way when the service stops.
TICK_SECONDS, SHUTDOWN_SECONDS = 0.2, 5.0
# Bytes of a chunked body that are parsed at a time: at least CHUNK_LEAST, because its data may contain many blank lines and
# each would cost a call; at most CHUNK_MOST, so that other connections get their turn.
CHUNK_LEAST, CHUNK_MOST = 2**6, 2**12
# Time for a rejected client to read the response, and bytes that it may still send.
LINGER_SECONDS, LINGER_BYTES = 1.0, 2**20
# Bytes per second: a large body gets more time if it arrives at least this fast.
SLOWEST = 2**16
REACHABLE = ALWAYS | {"/metrics"}


class Connection(asyncio.Protocol):
    """A connection that parses one request at a time; pipelined requests wait for the response, mostly unread.

    `_waiting` are bytes that are not parsed yet, from position `_parsed` on. `_unanswered` counts requests whose head was parsed
    and that have no response, of which the last one may be `_in_body`; more than one is possible only behind a chunked body.
    """

    transport: asyncio.Transport
    _newest: Exchange  # the one whose request is parsed

    def __init__(self, server: Server) -> None:
        self.server, self.application = server, server.application
        self._limits, self._app = server.application.limits, server.accepting
        self._events = asyncio.get_running_loop()
        self._parser = httptools.HttpRequestParser(self)
        # A request after one that closes the connection is not an error: it is not answered.
        self._parser.set_dangerous_leniencies(lenient_data_after_close=True)
        self._waiting, self._parsed = b"", 0
        self._in_head = self._in_body = self._has_turn = self.stopping = False
        self._refused: Problem | None = None
        self._exchange: Exchange | FastExchange | None = None
        self._pipeline: deque[Exchange] = deque()
        self._head = self._body = self._framing = self._lingered = self._unanswered = 0
        self._announced: int | None = 0
        self._since = self._events.time()
        # Reading pauses while earlier data waits, or a body is not read by the application.
        self._held = self._body_held = self._is_paused = False
        self._writable: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection; at the limit, close the one that has been idle longest."""
        self.transport = transport
        self.server.all.add(self)
        self.server.wait_for(self)
        if len(self.server.all) > self._limits.connections and not self.server.close_oldest(self):
            self._app = self.server.refusing

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.server.forget(self)
        self._waiting = b""
        for each in (self._exchange, *self._pipeline):
            if each is not None:
                each.disconnect()
        self.resume_writing()
        del self._parser  # which refers to this connection

    def shut_down(self) -> None:
        """Close the connection after the response, if it owes one."""
        self.stopping = True
        if not self._unanswered:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse the current request and keep the rest for later."""
        if self._refused:
            self._lingered += len(data)
            if self._lingered > LINGER_BYTES:
                self.transport.abort()
            return
        begun = self._waiting or self._in_head or self._in_body or self._unanswered
        if not begun and self._writable is None and self._app is not self.server.refusing:
            plain = fast_path.read(self.server.heads, data)
            if plain is not None:
                self._exchange = exchange = FastExchange(self, *plain[:2])
                self._unanswered, self._since = 1, self._events.time()
                self.server.waiting.pop(self, None)
                exchange.ask(plain[2])
                return
        self._waiting = self._waiting[self._parsed :] + data if self._waiting else data
        self._parsed = 0
        self._parse()

    def expire(self, now: float) -> None:
        """Reject a request that arrives too slowly, and close an idle connection."""
        limits, waited = self._limits, now - self._since
        if self._refused or self.transport.is_closing():
            return
        if self._in_head and waited > limits.head_seconds:
            self.refuse(Timeout(f"The request head did not arrive within {limits.head_seconds:g} seconds."))
        elif self._in_body and waited > limits.body_seconds + self._more_time():
            self.refuse(Timeout(f"The request body did not arrive within {limits.body_seconds:g} seconds."))
        elif self._writable is not None and waited > limits.body_seconds:
            self.transport.abort()
        elif not self._in_head and not self._unanswered and waited > limits.idle_seconds:
            self.transport.close()

    def _more_time(self) -> float:
        """Extra seconds for a large body that arrives fast enough and is still needed."""
        return 0.0 if self._newest.complete else self._body / SLOWEST

    def refuse(self, problem: Problem) -> None:
        """Respond with an error after all earlier responses, and close the connection."""
        self._refused, self._waiting = problem, b""
        if self._in_body and self._newest.started:
            self.transport.close()
        elif self._in_body and not self._pipeline:
            self._newest.disconnect()
            self._close(problem)
        elif self._in_body:
            self._pipeline.pop()
            self._unanswered -= 1
        elif not self._unanswered:
            self._close(problem)

    def _close(self, problem: Problem) -> None:
        request_id = self.application.request_id()
        self.application.note("none", problem.status, self._events.time() - self._since, request_id, problem)
        self.transport.write(answers.encode(answers.refusal(problem), request_id, self.server.date, close=True))
        self.transport.write_eof()
        self.set_reading(held=False, body_held=False)
        self._events.call_later(LINGER_SECONDS, self.transport.abort)

    def on_message_begin(self) -> None:
        self._url, self._headers = b"", list[tuple[bytes, bytes]]()
        self._in_head, self._since = True, self._events.time()

    def on_url(self, url: bytes) -> None:
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header; trailers of a chunked body are ignored."""
        if not self._in_body:
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._in_head, self._head = False, 0
        if len(self._headers) > self._limits.headers:
            self.refuse(
                HeadTooLarge(f"A request may have at most {self._limits.headers} headers, got {len(self._headers)}.")
            )
        if self._refused:
            return
        known, version = dict(self._headers), self._parser.get_http_version()
        self._announced = None if b"transfer-encoding" in known else int(known.get(b"content-length", 0))
        self._body = self._framing = 0
        self._newest = exchange = Exchange(
            self,
            scope_of(self._parser.get_method().decode("ascii"), version, self._url, self._headers),
            keep_alive=version != "1.0" and self._parser.should_keep_alive(),
            expects_continue=known.get(b"expect", b"").lower() == b"100-continue",
        )
        if self._unanswered:
            self._pipeline.append(exchange)
        else:
            self._start(exchange)
        self._unanswered += 1
        self._in_body, self._since = True, self._events.time()

    def _start(self, exchange: Exchange) -> None:
        self._exchange = exchange
        task = self._events.create_task(exchange.run(self._app))
        self.server.tasks.add(task)
        task.add_done_callback(self.server.tasks.discard)

    def on_body(self, body: bytes) -> None:
        self._body += len(body)
        self._framing -= len(body)
        if not self._refused and not self._newest.add_body(body):
            self.set_reading(body_held=True)

    def on_message_complete(self) -> None:
        if self._refused:
            return
        self._in_body, self._since = False, self._events.time()
        self._newest.end_body()
        if self._unanswered:
            self.server.waiting.pop(self, None)

    def end_response(self, *, keep_alive: bool) -> None:
        """Continue with the next pipelined request after a response."""
        self._unanswered -= 1
        if self._unanswered <= self._in_body:
            self.server.wait_for(self)
            self._since = self._events.time()
        if not keep_alive or self.stopping:
            self.transport.close()
        elif self._pipeline:
            self._start(self._pipeline.popleft())
        if self._body_held:
            self.set_reading(body_held=False)
        if self._refused is not None and not self._unanswered and not self.transport.is_closing():
            self._close(self._refused)
        elif self._waiting:
            self._parse()

    def pause_writing(self) -> None:
        self._writable = self._writable or self._events.create_future()
        self._since = self._events.time()
        self.server.wait_for(self)

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set_result(None)
            self._writable = None
        if self._unanswered and not self._in_body:
            self.server.waiting.pop(self, None)

    async def drained(self) -> None:
        """Wait until the client has read enough of what was written, or is gone."""
        if self._writable is not None:
            await asyncio.shield(self._writable)

    def set_reading(self, *, held: bool | None = None, body_held: bool | None = None) -> None:
        self._held = self._held if held is None else held
        self._body_held = self._body_held if body_held is None else body_held
        pause = self._held or self._body_held
        if pause != self._is_paused and not self.transport.is_closing():
            self._is_paused = pause
            (self.transport.pause_reading if pause else self.transport.resume_reading)()

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
        if not self.server.has_room(self, len(self._waiting)):
            self.transport.abort()
            return
        self.set_reading(held=bool(self._waiting))
        if self._waiting and chunks and not self._has_turn:
            self._has_turn = True
            self._events.call_soon(self._take_turn)

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
        while piece and not self._refused:
            try:
                self._parser.feed_data(piece)
                return
            except httptools.HttpParserUpgrade as upgrade:
                # No other protocol is supported: the request is handled as if it had not asked for an upgrade.
                piece = piece[upgrade.args[0] :]
            except httptools.HttpParserError as error:
                self.refuse(Malformed(f"The request is not valid HTTP/1.1: {error}."))


class Server:
    """Serves an application until `should_exit`, over a limited number of connections.

    `waiting` has the connections that wait for their client, oldest first.
    """

    def __init__(self, application: Application) -> None:
        self.application, self.heads = application, Heads(application)
        # One object each, so that connections over the limit can be recognised by it.
        self.accepting: ASGIApp = application
        self.refusing: ASGIApp = self._refuse
        self.all: set[Connection] = set()
        self.tasks: set[asyncio.Task[None]] = set()
        self.waiting: dict[Connection, None] = {}
        self.date = b""
        self.started = self.should_exit = self._hurries = False
        self._ahead: dict[Connection, int] = {}
        self._total = 0

    async def serve(self, sockets: Iterable[socket.socket]) -> None:
        events = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            events.add_signal_handler(number, self._stop)
        self._tick(events.time())
        listeners = []
        for each in sockets:
            listeners.append(await events.create_server(lambda: Connection(self), sock=each, backlog=2048))
            host, port = each.getsockname()[:2]
            log.info("listening", extra={"host": host, "port": port, "loops": len(self.application.engine.loops)})
        self.started = True
        while not self.should_exit:
            await asyncio.sleep(TICK_SECONDS)
            self._tick(events.time())
        for listener in listeners:
            listener.close()
        await self._shut_down(events.time() + SHUTDOWN_SECONDS)

    def _tick(self, now: float) -> None:
        self.date = formatdate(usegmt=True).encode()
        for connection in list(self.waiting):
            connection.expire(now)

    def _stop(self) -> None:
        """Stop, and at the second signal do not wait for responses."""
        self._hurries, self.should_exit = self.should_exit, True

    async def _shut_down(self, deadline: float) -> None:
        """Give requests some time to be answered; the rest is told that the service stops."""
        for each in list(self.all):
            each.shut_down()
        while self.all and asyncio.get_running_loop().time() < deadline and not self._hurries:
            await asyncio.sleep(TICK_SECONDS / 4)
        for task in list(self.tasks):
            task.cancel()

    async def _refuse(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request over the limit of connections: 503, except for health checks and metrics."""
        if scope["path"] in REACHABLE:
            await self.application(scope, receive, send)
            return
        most = self.application.limits.connections
        full = f"All {most} connections are in use. Try again later, or raise --max-connections."
        await self.application.refuse(scope, send, Unavailable(full))

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
        self.all.discard(connection)
        self.waiting.pop(connection, None)
        self._total -= self._ahead.pop(connection, 0)
