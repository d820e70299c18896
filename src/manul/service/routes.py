"""Everything that is not on the fast path: each route parses, calls the engine once, and answers."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from manul.service import bodies, metrics, schema
from manul.service.engine import Engine
from manul.service.operations import id_of
from manul.service.problems import Invalid, Problem, Unavailable, Unknown, WrongMethod
from manul.service.tokens import Right, Tokens

log = logging.getLogger("manul.service")
T = TypeVar("T")
Answer = Callable[[Request], Awaitable[Any]]
DECODERS: dict[type, msgspec.json.Decoder[Any]] = {
    kind: bodies.decoder(kind)
    for kind in (schema.NewLoop, schema.NewDecisions, schema.NewObservation, schema.NewLosses)
}


def json(value: Any, status: int = 200) -> Response:
    """An answer in JSON."""
    return Response(bodies.encoded(value), status, media_type="application/json")


def problem(error: Problem) -> Response:
    """An error in its one shape."""
    headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
    return Response(bodies.error_body(error), error.status, headers, "application/json")


class Routes:
    """The routes of an engine."""

    def __init__(self, engine: Engine, tokens: Tokens) -> None:
        self.engine, self.tokens = engine, tokens

    async def create(self, request: Request) -> Response:
        """Create a loop."""
        settings = await self._asked(request, schema.NewLoop)
        new = settings.name not in self.engine.loops
        loop = await self.engine.create(settings)
        return json(self.engine.status(loop), 201 if new else 200)

    async def loops(self, request: Request) -> Response:  # noqa: ARG002
        """All loops."""
        loops = sorted(self.engine.loops.values(), key=lambda loop: loop.name)
        return json(schema.Loops(loops=[self.engine.status(loop) for loop in loops]))

    async def status(self, request: Request) -> Response:
        """One loop."""
        return json(self.engine.status(self._loop(request)))

    async def decide_many(self, request: Request) -> Response:
        """Decide in many contexts."""
        asked = await self._asked(request, schema.NewDecisions)
        self._check_batch("decisions", len(asked.decisions))
        decided = await self.engine.decide_many(self._loop(request), asked.decisions)
        return json(schema.Decisions(decisions=decided))

    async def observe(self, request: Request) -> Response:
        """Keep what the caller did by itself."""
        seen = await self._asked(request, schema.NewObservation)
        decided = await self.engine.observe(self._loop(request), seen)
        return json(schema.Observed(id=id_of(decided)))

    async def lose_many(self, request: Request) -> Response:
        """Take many losses."""
        asked = await self._asked(request, schema.NewLosses)
        self._check_batch("losses", len(asked.losses))
        return json(schema.Losses(losses=await self.engine.lose(self._loop(request), asked.losses)))

    async def pause(self, request: Request) -> Response:
        """Stop learning."""
        return await self._changed(request, paused=True)

    async def resume(self, request: Request) -> Response:
        """Learn what came in the meantime, and go on."""
        return await self._changed(request, paused=False)

    async def promote(self, request: Request) -> Response:
        """Let an apprentice decide."""
        return await self._changed(request, apprentice=False)

    async def model(self, request: Request) -> Response:
        """The model as a `.manul` file."""
        loop = self._loop(request)
        snapshot = await asyncio.to_thread(loop.snapshot)
        headers = {
            "Content-Disposition": f'attachment; filename="{loop.name}.manul"',
            "X-Manul-Event": str(snapshot.event),
        }
        return Response(snapshot.model, 200, headers, "application/octet-stream")

    async def replace(self, request: Request) -> Response:
        """Put a `.manul` file in the place of the model."""
        loop = self._loop(request)
        length = request.headers.get("content-length")
        model = await bodies.read(request.receive, self.engine.limits.model, length.encode() if length else None)
        await self.engine.replace(loop, model)
        return json(self.engine.status(loop))

    async def healthz(self, request: Request) -> Response:  # noqa: ARG002
        """The process is alive."""
        return json(schema.Health(status="ok"))

    async def readyz(self, request: Request) -> Response:  # noqa: ARG002
        """Everything is loaded, and the store takes writes."""
        if not self.engine.ready or self.engine.writer.failing:
            raise Unavailable("service must be ready; it starts, stops or cannot write. Try again later.")
        return json(schema.Health(status="ok"))

    async def metrics(self, request: Request) -> Response:  # noqa: ARG002
        """Counts for Prometheus."""
        return Response(metrics.text(self.engine), 200, media_type="text/plain; version=0.0.4")

    def _loop(self, request: Request) -> Any:
        return self.engine.loop(request.path_params["loop"])

    async def _asked(self, request: Request, kind: type[T]) -> T:
        length = request.headers.get("content-length")
        body = await bodies.read(request.receive, self._most(kind), length.encode() if length else None)
        asked: T = bodies.decoded(body, DECODERS[kind])
        return asked

    def _most(self, kind: type) -> int:
        batches = (schema.NewDecisions, schema.NewLosses)
        return self.engine.limits.batch_body if kind in batches else self.engine.limits.body

    def _check_batch(self, field: str, length: int) -> None:
        if not 1 <= length <= self.engine.limits.batch:
            raise Invalid(
                f"{field} must have 1 to {self.engine.limits.batch} elements; got {length}. Send several batches.",
                field,
            )

    async def _changed(self, request: Request, **change: bool) -> Response:
        loop = self._loop(request)
        await self.engine.change(loop, **change)
        return json(self.engine.status(loop))


def build(engine: Engine, tokens: Tokens) -> Starlette:
    """The application of all routes but the two fast ones."""
    routes = Routes(engine, tokens)

    def guarded(answer: Answer, right: Right | None) -> Answer:
        async def checked(request: Request) -> Any:
            if right is not None:
                tokens.require(request.headers.get("authorization", "").encode() or None, right)
            return await answer(request)

        return checked

    def route(path: str, method: str, answer: Answer, right: Right | None) -> Route:
        return Route(path, guarded(answer, right), methods=[method])

    one = "/v1/loops/{loop}"
    table = [
        route("/v1/loops", "POST", routes.create, "admin"),
        route("/v1/loops", "GET", routes.loops, "report"),
        route(one, "GET", routes.status, "report"),
        route(f"{one}/decisions/batch", "POST", routes.decide_many, "decide"),
        route(f"{one}/losses", "POST", routes.lose_many, "report"),
        route(f"{one}/observations", "POST", routes.observe, "report"),
        route(f"{one}/pause", "POST", routes.pause, "admin"),
        route(f"{one}/resume", "POST", routes.resume, "admin"),
        route(f"{one}/promote", "POST", routes.promote, "admin"),
        route(f"{one}/model", "GET", routes.model, "admin"),
        route(f"{one}/model", "PUT", routes.replace, "admin"),
        route("/healthz", "GET", routes.healthz, None),
        route("/readyz", "GET", routes.readyz, None),
        route("/metrics", "GET", routes.metrics, "report"),
    ]
    return Starlette(routes=table, exception_handlers=HANDLERS)


async def _told(request: Request, error: Exception) -> Response:  # noqa: ARG001
    assert isinstance(error, Problem)
    return problem(error)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        return problem(
            WrongMethod(f"method must be one that {request.url.path} takes; got {request.method}. See /openapi.json.")
        )
    return problem(Unknown(f"path must be one of the service; got {request.url.path!r}. See /openapi.json."))


async def _failed(request: Request, error: Exception) -> Response:  # noqa: ARG001
    return problem(bodies.failure())


HANDLERS: Any = {Problem: _told, HTTPException: _refused, Exception: _failed}
