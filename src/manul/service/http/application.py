"""The ASGI application: checks a request, routes it, counts the response and logs errors."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Mapping
from itertools import count

from starlette.routing import BaseRoute
from starlette.types import Message, Receive, Scope, Send

from manul.service.engine.engine import Engine
from manul.service.errors import Malformed, Problem
from manul.service.http import answers
from manul.service.http.answers import Answer
from manul.service.http.bodies import BodyReader, Disconnected
from manul.service.http.handlers import ROUTE, build
from manul.service.http.metrics import OTHER, RequestMetrics
from manul.service.http.origins import Origins
from manul.service.http.tokens import Access, Right, Tokens
from manul.service.http.traces import Traces

log = logging.getLogger("manul.service")
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
ONLY_ONCE = (b"host", b"authorization", b"content-length", b"origin", b"sec-fetch-site")
# Seconds after which a request is slow, and lines of the log that refusals may take per second.
SLOW, LINES = 1.0, 20
# The status that stands in the metrics for a caller that was gone before the answer.
GONE = 499
NO_HEADERS: Mapping[bytes, bytes] = {}


class Replier:
    """Sends a response with its request id, and remembers the status."""

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send, self.request_id, self.status = send, request_id, 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.request_id)]
        await self._send(message)

    async def answer(self, answer: Answer) -> None:
        self.status = answer.status
        length = (b"content-length", b"%d" % len(answer.body))
        headers = [length, *answer.headers, (b"x-request-id", self.request_id)]
        await self._send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": answer.body})


class Application:
    def __init__(
        self, engine: Engine, tokens: Tokens, *, origins: Origins | None = None, traces: Traces | None = None
    ) -> None:
        self.engine, self.limits, self.requests = engine, engine.limits, RequestMetrics()
        self.tokens, self._origins, self._traces = tokens, origins or Origins(), traces
        self._bodies = BodyReader(engine.limits.all_bodies)
        self._router = build(engine, tokens, self.requests, self._bodies)
        self._prefix, self._numbers = secrets.token_hex(6).encode(), count(1)
        self._second, self._lines = 0, 0

    @property
    def routes(self) -> list[BaseRoute]:
        return self._router.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, headers = time.perf_counter(), dict(scope["headers"])
        error: BaseException | None = None
        replier = Replier(send, self.request_id(headers.get(b"x-request-id")))
        scope["app"] = self
        try:
            self._admit(scope, headers)
            await self._router(scope, receive, replier)
        except Disconnected:
            replier.status = GONE
        except (Exception, asyncio.CancelledError) as caught:
            error = caught
            if not replier.status:
                await replier.answer(answers.refusal(answers.problem_of(caught, scope["method"], scope["path"])))
        told = (scope.get(ROUTE, OTHER), replier.status, time.perf_counter() - began, replier.request_id, error)
        self.note(*told, loop=scope.get("path_params", {}).get("loop"), headers=headers)
        # An exception refers to this frame, and both would keep the body of the request until the garbage is collected.
        del error

    async def refuse(self, scope: Scope, send: Send, problem: Problem) -> None:
        """Reject a request without looking at it, and close its connection."""
        replier = Replier(send, self.request_id(dict(scope["headers"]).get(b"x-request-id")))
        answer = answers.refusal(problem)
        await replier.answer(answer._replace(headers=(*answer.headers, (b"connection", b"close"))))
        self.note(OTHER, answer.status, 0.0, replier.request_id, problem)

    def request_id(self, given: bytes | None = None) -> bytes:
        """The request id that the client sent, if it is valid, or a new one."""
        if given is not None and REQUEST_ID.fullmatch(given):
            return given
        return b"%b-%d" % (self._prefix, next(self._numbers))

    def note(
        self,
        route: str,
        status: int,
        seconds: float,
        request_id: bytes,
        error: BaseException | None = None,
        *,
        loop: str | None = None,
        headers: Mapping[bytes, bytes] = NO_HEADERS,
    ) -> None:
        """Count a response, trace it, and log it if it is an error or slow."""
        self.requests.add(route, status, seconds)
        if self._traces is not None:
            told = (route, status, seconds, request_id)
            self._traces.add_request(*told, loop=loop, traceparent=headers.get(b"traceparent"))
        if status < 400 and seconds < SLOW:
            return
        said = {"request_id": request_id.decode(), "route": route, "status": status, "ms": round(1000 * seconds, 1)}
        if error is not None and answers.problem_of(error).status == 500:
            log.error("a request failed", exc_info=error, extra=said)
        elif self._may_log():
            why = {"why": str(error)} if isinstance(error, Problem) else {}
            log.warning("a request was refused" if status >= 400 else "a slow request", extra=said | why)

    def _may_log(self) -> bool:
        """Whether to log a client error: anybody can cause many, so their number per second is limited."""
        second = int(time.monotonic())
        self._second, self._lines = second, self._lines + 1 if second == self._second else 1
        return self._lines <= LINES

    def authorise(self, path: str, headers: Mapping[bytes, bytes], right: Right, loop: str) -> Access | None:
        """What the caller of a POST without repeated headers may do; None if it is rejected because of its headers."""
        try:
            if b"host" in headers and not self.tokens:
                self._origins.check("POST", path, headers)
            access = self.tokens.require(headers.get(b"authorization"), right, loop)
        except Problem:
            return None
        return access if b"host" in headers else None

    def _admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        if len(headers) < len(scope["headers"]):
            names = [name for name, _ in scope["headers"]]
            for name in ONLY_ONCE:
                if names.count(name) > 1:
                    raise Malformed(f"The header {name.decode()} was sent {names.count(name)} times; send it once.")
        if b"host" not in headers and scope["http_version"] == "1.1":
            raise Malformed("HTTP/1.1 requires the header host.")
        if not self.tokens:
            self._origins.check(scope["method"], scope["path"], headers)
