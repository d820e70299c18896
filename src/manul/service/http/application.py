"""The service as one ASGI application: admits a request, answers it, counts it, and logs what went wrong.

The two routes that matter for speed are answered before the router is asked; they call the functions that the router's
own handlers of these routes call.
"""

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
from manul.service.errors import Malformed, Problem, Unavailable
from manul.service.http import answers
from manul.service.http.answers import Answer
from manul.service.http.bodies import BodyReader, Disconnected
from manul.service.http.origins import Origins
from manul.service.http.request_metrics import OTHER, RequestMetrics
from manul.service.http.routes import ROUTE, build, start_decision, start_loss_report
from manul.service.http.tokens import Tokens

log = logging.getLogger("manul.service")
HOT = re.compile(r"/v1/loops/([\w.-]+)/decisions(?:/([\w.~-]+)/loss)?", re.ASCII)
REQUEST_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
ONLY_ONCE = (b"host", b"authorization", b"content-length", b"origin", b"sec-fetch-site")
# Seconds after which a request is slow, and lines of the log that refusals may take per second.
SLOW, LINES = 1.0, 20
# The status that stands in the metrics for a caller that was gone before the answer.
GONE = 499


class Replier:
    """Sends an answer with the id of its request, and remembers its status."""

    def __init__(self, send: Send, request_id: bytes) -> None:
        self._send, self.request_id, self.status = send, request_id, 0

    async def __call__(self, message: Message) -> None:
        """A message of an answer."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message.get("headers", ()), (b"x-request-id", self.request_id)]
        await self._send(message)

    async def answer(self, answer: Answer) -> None:
        """A whole answer."""
        self.status = answer.status
        length = (b"content-length", b"%d" % len(answer.body))
        headers = [length, *answer.headers, (b"x-request-id", self.request_id)]
        await self._send({"type": "http.response.start", "status": answer.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": answer.body})


class Application:
    """All routes of an engine."""

    def __init__(self, engine: Engine, tokens: Tokens, *, origins: Origins | None = None) -> None:
        self.engine, self.limits, self.requests = engine, engine.limits, RequestMetrics()
        self._tokens, self._origins = tokens, origins or Origins()
        self._bodies = BodyReader(engine.limits.all_bodies)
        self._router = build(engine, tokens, self.requests, self._bodies)
        self._prefix, self._numbers = secrets.token_hex(6), count(1)
        self._second, self._lines = 0, 0

    @property
    def routes(self) -> list[BaseRoute]:
        """All routes."""
        return self._router.routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began, headers = time.perf_counter(), dict(scope["headers"])
        error: BaseException | None = None
        replier = Replier(send, self.request_id(headers.get(b"x-request-id")))
        scope["app"] = self
        try:
            self._admit(scope, headers)
            hot = HOT.fullmatch(scope["path"]) if scope["method"] == "POST" else None
            if hot is None:
                await self._router(scope, receive, replier)
            else:
                await replier.answer(await self._answer(scope, hot, headers, receive))
        except Disconnected:
            replier.status = GONE
        except asyncio.CancelledError as cancelled:
            error = cancelled
            if not replier.status:
                await replier.answer(answers.refusal(Unavailable("The service is stopping. Try again later.")))
        except Exception as caught:
            error = caught
            if not replier.status:
                await replier.answer(answers.refusal(answers.problem_of(caught, scope["method"], scope["path"])))
        self.note(scope.get(ROUTE, OTHER), replier.status, time.perf_counter() - began, replier.request_id, error)
        # An exception refers to this frame, and both would keep the body of the request until the garbage is collected.
        del error

    async def refuse(self, scope: Scope, send: Send, problem: Problem) -> None:
        """Refuse a request before it is looked at, and close its connection."""
        replier = Replier(send, self.request_id(dict(scope["headers"]).get(b"x-request-id")))
        answer = answers.refusal(problem)
        await replier.answer(answer._replace(headers=(*answer.headers, (b"connection", b"close"))))
        self.note(OTHER, answer.status, 0.0, replier.request_id, problem)

    def request_id(self, given: bytes | None = None) -> bytes:
        """The caller's id of a request if it is well formed, or else a fresh one."""
        if given is not None and REQUEST_ID.fullmatch(given):
            return given
        return b"%s-%d" % (self._prefix.encode(), next(self._numbers))

    def note(
        self, route: str, status: int, seconds: float, request_id: bytes, error: BaseException | None = None
    ) -> None:
        """Count an answer, and log it if it is an error, a refusal or slow."""
        self.requests.add(route, status, seconds)
        if status < 400 and seconds < SLOW:
            return
        said = {"request_id": request_id.decode(), "route": route, "status": status, "ms": round(1000 * seconds, 1)}
        if error is not None and answers.problem_of(error).status == 500:
            log.error("a request failed", exc_info=error, extra=said)
        elif self._may_log():
            why = {"why": str(error)} if isinstance(error, Problem) else {}
            log.warning("a request was refused" if status >= 400 else "a slow request", extra=said | why)

    def _may_log(self) -> bool:
        """Refusals may be as many as anybody likes to cause, so only some of each second are logged."""
        second = int(time.monotonic())
        self._second, self._lines = second, self._lines + 1 if second == self._second else 1
        return self._lines <= LINES

    def _admit(self, scope: Scope, headers: Mapping[bytes, bytes]) -> None:
        if len(headers) < len(scope["headers"]):
            names = [name for name, _ in scope["headers"]]
            for name in ONLY_ONCE:
                if names.count(name) > 1:
                    raise Malformed(f"header {name.decode()} must come once; got {names.count(name)}. Send one.")
        if b"host" not in headers and scope["http_version"] == "1.1":
            raise Malformed("header host must be there in HTTP/1.1; got none. Add it.")
        if not self._tokens:
            self._origins.check(scope["method"], scope["path"], headers)

    async def _answer(
        self, scope: Scope, hot: re.Match[str], headers: Mapping[bytes, bytes], receive: Receive
    ) -> Answer:
        loop, decision = hot[1], hot[2]
        scope[ROUTE] = "decide" if decision is None else "report_loss"
        self._tokens.require(headers.get(b"authorization"), "decide" if decision is None else "report")
        body = await self._bodies.read(receive, self.limits.body, headers.get(b"content-length"))
        if decision is None:
            written, encode = start_decision(self.engine, loop, body)
        else:
            written, encode = start_loss_report(self.engine, loop, decision, body)
        return Answer(200, encode(await written))
