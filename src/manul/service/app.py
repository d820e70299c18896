"""The service as an ASGI application: the two routes that matter for speed by hand, everything else by Starlette."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from manul.service import bodies
from manul.service.engine import Engine
from manul.service.problems import Problem, Unavailable
from manul.service.routes import build, decide, lose
from manul.service.store import StoreFailure
from manul.service.tokens import Tokens
from manul.service.writer import FULL

log = logging.getLogger("manul.service")
JSON = (b"content-type", b"application/json")
PREFIX = "/v1/loops/"
Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]


class Application:
    """Routes by hand where a request is a decision or a loss."""

    def __init__(self, engine: Engine, tokens: Tokens | None = None) -> None:
        self.engine, self.tokens = engine, tokens or Tokens()
        self._rest = build(engine, self.tokens)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path: str = scope.get("path", "")
        if scope["type"] != "http" or scope["method"] != "POST" or not path.startswith(PREFIX):
            await self._rest(scope, receive, send)
            return
        loop, _, rest = path[len(PREFIX) :].partition("/")
        status = 200
        try:
            if rest == "decisions":
                body = await decide(self.engine, loop, await self._body(scope, receive, "decide"))
            elif rest.startswith("decisions/") and rest.endswith("/loss") and rest.count("/") == 2:
                body = await lose(self.engine, loop, rest[10:-5], await self._body(scope, receive, "report"))
            else:
                await self._rest(scope, receive, send)
                return
        except Problem as problem:
            status, body = problem.status, bodies.error_body(problem)
        except StoreFailure:
            status, body = Unavailable.status, bodies.error_body(Unavailable(FULL))
        except Exception:
            log.exception("a request failed")
            status, body = 500, bodies.error_body(bodies.failure())
        headers = [JSON, (b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _body(self, scope: Scope, receive: Receive, right: Any) -> bytes:
        authorization = length = None
        for name, value in scope["headers"]:
            if name == b"authorization":
                authorization = value
            elif name == b"content-length":
                length = value
        self.tokens.require(authorization, right)
        return await bodies.read(receive, self.engine.limits.body, length)
