"""The service over HTTP: each route parses, calls the engine once, and answers."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.staticfiles import StaticFiles

from manul.service import schema
from manul.service.engine.engine import Engine
from manul.service.engine.loop import Loop
from manul.service.engine.status import status
from manul.service.engine.writes import Future, decision, id_of
from manul.service.errors import Invalid, Unavailable
from manul.service.http import bodies, metrics
from manul.service.http.openapi import document
from manul.service.http.request_metrics import RequestMetrics
from manul.service.http.route_table import OPERATIONS, PARQUET, Operation
from manul.service.http.tokens import Tokens
from manul.service.insights import log_export, loop_report
from manul.service.insights.examination import Examinations
from manul.service.insights.policy_view import policy_view
from manul.service.insights.summary import summary
from manul.service.loop_settings import NewLoop
from manul.service.store.blocks import Decided

T = TypeVar("T")
# Where the scope of a request says which operation it is.
ROUTE = "manul.route"
DOCS = Path(__file__).with_name("docs.html")
DASHBOARD = Path(__file__).with_name("dashboard")
ONLY_HERE = {"Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'", "Cache-Control": "no-cache"}
_decision = bodies.decoder(schema.NewDecision)
_loss = bodies.decoder(schema.NewLoss)
Answer = Callable[[Request], Awaitable[Any]]
Encode = Callable[[Any], bytes]
DECODERS: dict[type, msgspec.json.Decoder[Any]] = {
    kind: bodies.decoder(kind) for kind in (NewLoop, schema.NewDecisions, schema.NewObservation, schema.NewLosses)
}


def json(value: Any, status: int = 200) -> Response:
    """An answer in JSON."""
    return Response(bodies.encoded(value), status, media_type="application/json")


def asked_for(engine: Engine, name: str, body: bytes) -> tuple[Future, Encode]:
    """A decision in one context: a future of it, and how it is answered."""
    return engine.decide(name, bodies.decoded(body, _decision)), _decided


def lost(engine: Engine, name: str, given: str, body: bytes) -> tuple[Future, Encode]:
    """The loss of one decision: a future of what became of it, and how that is answered."""
    new = bodies.decoded(body, _loss)
    loss = schema.LossOf(id=given, loss=new.loss, key=new.key)
    return engine.lose(name, [loss], alone=True), _taken


def _decided(made: Decided) -> bytes:
    return bodies.encoded(decision(made))


def _taken(losses: list[schema.Loss]) -> bytes:
    return bodies.encoded(losses[0])


class Routes:
    """The routes of an engine."""

    def __init__(self, engine: Engine, tokens: Tokens, requests: RequestMetrics, reader: bodies.BodyReader) -> None:
        self.engine, self.tokens, self.requests, self.reader = engine, tokens, requests, reader
        self.counts = metrics.LoopCounts(engine)
        self.examinations = Examinations(engine.store, engine.now)

    async def create(self, request: Request) -> Response:
        """Create a loop."""
        settings = await self._asked(request, NewLoop)
        new = settings.name not in self.engine.loops
        loop = await self.engine.create(settings)
        return json(await self._status(loop), 201 if new else 200)

    async def loops(self, request: Request) -> Response:  # noqa: ARG002
        """All loops."""
        loops = sorted(self.engine.loops.values(), key=lambda loop: loop.name)
        read = asyncio.to_thread(lambda: [status(self.engine.store, loop) for loop in loops])
        return json(schema.Loops(loops=await read))

    async def status(self, request: Request) -> Response:
        """One loop."""
        return json(await self._status(await self._loop(request)))

    async def delete(self, request: Request) -> Response:
        """Delete a loop."""
        name = request.path_params["loop"]
        await self.engine.delete(name)
        return json(schema.Deleted(name=name))

    async def reset(self, request: Request) -> Response:
        """Start a loop again from nothing."""
        return json(await self._status(await self.engine.reset(request.path_params["loop"])))

    async def decide(self, request: Request) -> Response:
        """Decide."""
        body = await self._body(request, self.engine.limits.body)
        written, answer = asked_for(self.engine, request.path_params["loop"], body)
        return Response(answer(await written), media_type="application/json")

    async def lose(self, request: Request) -> Response:
        """Take a loss."""
        body, path = await self._body(request, self.engine.limits.body), request.path_params
        written, answer = lost(self.engine, path["loop"], path["id"], body)
        return Response(answer(await written), media_type="application/json")

    async def decide_many(self, request: Request) -> Response:
        """Decide in many contexts."""
        asked = await self._asked(request, schema.NewDecisions)
        self._check_batch("decisions", len(asked.decisions))
        decided = await self.engine.decide_many(await self._loop(request), asked.decisions)
        return json(schema.Decisions(decisions=decided))

    async def observe(self, request: Request) -> Response:
        """Keep what the caller did by itself."""
        seen = await self._asked(request, schema.NewObservation)
        decided = await self.engine.observe(await self._loop(request), seen)
        return json(schema.Observed(id=id_of(decided)))

    async def lose_many(self, request: Request) -> Response:
        """Take many losses."""
        asked = await self._asked(request, schema.NewLosses)
        self._check_batch("losses", len(asked.losses))
        return json(schema.Losses(losses=await self.engine.lose(request.path_params["loop"], asked.losses)))

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
        loop = await self._loop(request)
        snapshot = await asyncio.to_thread(loop.snapshot)
        headers = {
            "Content-Disposition": f'attachment; filename="{loop.name}.manul"',
            "X-Manul-Event": str(snapshot.event),
        }
        return Response(snapshot.model, 200, headers, "application/octet-stream")

    async def replace(self, request: Request) -> Response:
        """Put a `.manul` file in the place of the model."""
        loop = await self._loop(request)
        await self.engine.replace(loop, await self._body(request, self.engine.limits.model))
        return json(await self._status(loop))

    async def report(self, request: Request) -> Response:
        """What the agent believes, and what others would have lost."""
        loop = await self._loop(request)
        snapshot = await asyncio.to_thread(loop.snapshot)
        return json(await asyncio.to_thread(loop_report.report, self.engine.store, loop, snapshot))

    async def summary(self, request: Request) -> Response:
        """What the dashboard shows."""
        loop = await self._loop(request)
        span: Any = request.query_params.get("span", "all")
        if span not in loop.history.spans:
            known = ", ".join(loop.history.spans)
            raise Invalid(f"span must be one of {known}; got {span!r}. Leave it out for all.", "span")
        examined = self.examinations.latest(loop)
        return json(summary(loop, await self._status(loop), examined, self.engine.now(), span))

    async def policy(self, request: Request) -> Response:
        """What is played for each value of a feature."""
        return json(policy_view(await self._loop(request), request.query_params.get("feature")))

    async def log(self, request: Request) -> Response:
        """The log as Parquet, written to a file first and sent from there."""
        loop = await self._loop(request)
        folder = tempfile.TemporaryDirectory()
        path = Path(folder.name, f"{loop.name}.parquet")
        try:
            await asyncio.to_thread(log_export.write, self.engine.store, loop, path)
        except BaseException:
            folder.cleanup()
            raise
        return FileResponse(path, media_type=PARQUET, filename=path.name, background=BackgroundTask(folder.cleanup))

    async def openapi(self, request: Request) -> Response:  # noqa: ARG002
        """The description of all routes."""
        return json(document())

    async def dashboard(self, request: Request) -> Response:  # noqa: ARG002
        """The page that shows all loops; it asks nobody but this service."""
        return FileResponse(DASHBOARD / "index.html", headers=ONLY_HERE)

    async def docs(self, request: Request) -> Response:  # noqa: ARG002
        """A page to try the routes."""
        return Response(DOCS.read_bytes(), media_type="text/html")

    async def healthz(self, request: Request) -> Response:  # noqa: ARG002
        """The process is alive."""
        return json(schema.Health(status="ok"))

    async def readyz(self, request: Request) -> Response:  # noqa: ARG002
        """Everything is loaded, and the store takes writes."""
        trouble = self.engine.trouble()
        if trouble is not None:
            raise Unavailable(f"Not ready: {trouble}.")
        return json(schema.Health(status="ok"))

    async def metrics(self, request: Request) -> Response:  # noqa: ARG002
        """Counts for Prometheus; it never waits long for the store, nor fails with it."""
        statuses = await self.counts.read()
        text = metrics.text(self.engine, statuses, self.requests)
        return Response(text, 200, media_type="text/plain; version=0.0.4")

    async def _loop(self, request: Request) -> Loop:
        return await self.engine.find(request.path_params["loop"])

    async def _status(self, loop: Loop) -> schema.Status:
        return await asyncio.to_thread(status, self.engine.store, loop)

    async def _asked(self, request: Request, kind: type[T]) -> T:
        asked: T = bodies.decoded(await self._body(request, self._most(kind)), DECODERS[kind])
        return asked

    async def _body(self, request: Request, limit: int) -> bytes:
        length = request.headers.get("content-length")
        return await self.reader.read(request.receive, limit, length.encode() if length else None)

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
        loop = await self._loop(request)
        await self.engine.change(loop, **change)
        return json(await self._status(loop))


def build(engine: Engine, tokens: Tokens, requests: RequestMetrics, reader: bodies.BodyReader) -> Router:
    """The router of all routes."""
    routes = Routes(engine, tokens, requests, reader)

    def guarded(each: Operation) -> Answer:
        answer = getattr(routes, each.name)

        async def checked(request: Request) -> Any:
            request.scope[ROUTE] = each.name
            if each.right is not None:
                tokens.require(request.headers.get("authorization", "").encode("latin-1") or None, each.right)
            return await answer(request)

        return checked

    table: list[BaseRoute] = [Route(each.path, guarded(each), methods=[each.method]) for each in OPERATIONS]
    table += [Route("/openapi.json", routes.openapi), Route("/docs", routes.docs), Route("/", routes.dashboard)]
    table.append(Mount("/dashboard", StaticFiles(directory=DASHBOARD)))
    return Router(table)
