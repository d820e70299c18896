"""One request and its response, through the ASGI application."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import unquote

import httptools
from starlette.types import ASGIApp, Message, Scope

from manul.service.http.answers import STATUS_LINES, Headers

if TYPE_CHECKING:
    from manul.service.http.connection import Connection

# Bytes of a body that are kept before the application reads them.
MOST_BUFFERED = 2**16
# Statuses of responses without a body.
EMPTY = frozenset({204, 304})


def scope_of(method: str, version: str, url: bytes, headers: list[tuple[bytes, bytes]]) -> Scope:
    parsed = httptools.parse_url(url)
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": version,
        "method": method,
        "scheme": "http",
        "server": None,
        "client": None,
        "root_path": "",
        "path": unquote(parsed.path.decode("ascii")),
        "raw_path": parsed.path,
        "query_string": parsed.query or b"",
        "headers": headers,
        "state": {},
    }


class Exchange:
    """The response is complete once all of it is written; it has `started` once the application has given its status."""

    def __init__(self, connection: Connection, scope: Scope, *, keep_alive: bool, expects_continue: bool) -> None:
        self._connection, self._scope, self._keep_alive = connection, scope, keep_alive
        self._expects_continue = expects_continue
        self._body, self._has_more, self._changed = bytearray(), True, asyncio.Event()
        self._head = b""
        self.started = self.complete = self._gone = False

    async def run(self, application: ASGIApp) -> None:
        try:
            await application(self._scope, self._receive, self._send)
        finally:
            if not self.complete and not self._gone:
                self._connection.transport.close()

    def add_body(self, body: bytes) -> bool:
        """Add some of the body; returns whether there is room for more."""
        if not self.complete:
            self._body += body
            self._changed.set()
        return len(self._body) <= MOST_BUFFERED

    def end_body(self) -> None:
        self._has_more = False
        self._changed.set()

    def disconnect(self) -> None:
        """Tell the application that nobody waits for the response."""
        self._gone = not self.complete
        self._changed.set()

    async def _receive(self) -> Message:
        if self._expects_continue and not self._connection.transport.is_closing():
            self._connection.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            self._expects_continue = False
        if not self._gone and not self.complete:
            self._connection.set_reading(body_held=False)
            await self._changed.wait()
            self._changed.clear()
        if self._gone or self.complete:
            return {"type": "http.disconnect"}
        body, self._body = bytes(self._body), bytearray()
        return {"type": "http.request", "body": body, "more_body": self._has_more}

    async def _send(self, message: Message) -> None:
        await self._connection.drained()
        if self._gone:
            return
        if message["type"] == "http.response.start":
            self.started, self._expects_continue = True, False
            self._head = self._encode_head(message["status"], tuple(message["headers"]))
            return
        body = b"" if self._scope["method"] == "HEAD" else message.get("body", b"")
        if self._head or body:
            self._connection.transport.write(self._head + body)
            self._head = b""
        if not message.get("more_body"):
            self.complete = True
            self._changed.set()
            self._connection.end_response(keep_alive=self._keep_alive)

    def _encode_head(self, status: int, headers: Headers) -> bytes:
        names = {name.lower(): value.lower() for name, value in headers}
        if b"content-length" not in names and status not in EMPTY and self._scope["method"] != "HEAD":
            self._keep_alive = False  # the end of the connection is the end of the body
        if names.get(b"connection") == b"close":
            self._keep_alive = False
        elif not self._keep_alive or self._connection.stopping:
            headers += ((b"connection", b"close"),)
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        if lines.count(b"\n") != len(headers) or lines.count(b"\r") != len(headers):
            raise ValueError("a header of the response has a line break")
        return b"%bdate: %b\r\n%b\r\n" % (STATUS_LINES[status], self._connection.server.date, lines)
