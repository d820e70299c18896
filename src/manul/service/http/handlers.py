"""The handlers of all routes: each parses the request, calls the engine once, and encodes the response."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import re
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route, Router
from starlette.staticfiles import StaticFiles

from manul.service import wire
from manul.service.engine.engine import Engine
from manul.service.engine.loop import Loop
from manul.service.engine.requests import Decide, Observe, Report
from manul.service.engine.rollout_control import Act, describe
from manul.service.errors import Forbidden, Invalid, Unavailable
from manul.service.http import bodies, metrics
from manul.service.http.metrics import RequestMetrics
from manul.service.http.openapi import document
from manul.service.http.route_table import OPERATIONS, PARQUET, Operation
from manul.service.http.tokens import Access, Tokens
from manul.service.insights import log_export, loop_report
from manul.service.insights.knob_insights import pair_view
from manul.service.insights.policy_view import policy_view
from manul.service.insights.summary import summary
from manul.service.loop_settings import NewLoop, prior_loop
from manul.service.rollout_schema import NewRollout
from manul.service.store.blocks import DecisionRow

T = TypeVar("T")
# The key in the scope of a request that holds the name of its operation.
ROUTE = "manul.route"
# The key that holds what the token of a request allows.
ACCESS = "manul.access"
DOCS = Path(__file__).with_name("docs.html")
DASHBOARD = Path(__file__).with_name("dashboard")
ONLY_HERE = {"Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'", "Cache-Control": "no-cache"}


def _docs_policy() -> str:
    """Only the script and the style that the page of the API has itself."""
    policy = ONLY_HERE["Content-Security-Policy"]
    for kind in ("script", "style"):
        (content,) = re.findall(rf"<{kind}>(.*?)</{kind}>".encode(), DOCS.read_bytes(), re.DOTALL)
        policy += f"; {kind}-src 'sha256-{base64.b64encode(hashlib.sha256(content).digest()).decode()}'"
    return policy


DOCS_POLICY = _docs_policy()
_decision = bodies.decoder(wire.NewDecision)
_loss = bodies.decoder(wire.NewLoss)
Answer = Callable[[Request], Awaitable[Any]]
DECODERS: dict[type, msgspec.json.Decoder[Any]] = {
    kind: bodies.decoder(kind)
    for kind in (
        NewLoop,
        NewRollout,
        wire.NewBudget,
        wire.NewDecisions,
        wire.NewObservation,
        wire.NewObservations,
        wire.NewLosses,
    )
}


def json(value: Any, status: int = 200) -> Response:
    return Response(bodies.encode(value), status, media_type="application/json")


def parse_decision(body: bytes) -> Decide:
    return Decide([bodies.decode(body, _decision)], alone=True)


def parse_loss(decision: str, body: bytes) -> Report:
    new = bodies.decode(body, _loss)
    return Report(
        [wire.LossOf(id=decision, loss=new.loss, reward=new.reward, key=new.key, parts=new.parts)], alone=True
    )


def encode_answer(answers: Sequence[DecisionRow | wire.Loss]) -> bytes:
    """The response to a request for one decision, or to one loss."""
    (answer,) = answers
    return bodies.encode(wire.Decision.of(answer) if isinstance(answer, DecisionRow) else answer)


class Routes:
    def __init__(self, engine: Engine, tokens: Tokens, requests: RequestMetrics, reader: bodies.BodyReader) -> None:
        self.engine, self.tokens, self.requests, self.reader = engine, tokens, requests, reader
        self.counts = metrics.LoopCounts(engine)
        self.examinations = loop_report.Examinations(engine.store, engine.now)

    async def create(self, request: Request) -> Response:
        settings = await self._parse(request, NewLoop)
        self._access(request).check_loop(settings.name)
        prior = prior_loop(settings)
        if prior is not None:
            self._access(request).check_loop(prior)
        new = settings.name not in self.engine.loops
        loop = await self.engine.create(settings)
        return json(await self._status(loop), 201 if new else 200)

    async def loops(self, request: Request) -> Response:
        access = self._access(request)
        loops = sorted(self.engine.loops.values(), key=lambda loop: loop.name)
        loops = [loop for loop in loops if access.includes(loop.name)]
        broken = [
            wire.OutOfService(name=name, trouble=f"Out of service: {why}.")
            for name, (_, why) in sorted(self.engine.broken.items())
            if access.includes(name)
        ]
        return json(wire.Loops(loops=await asyncio.to_thread(self.engine.statuses, loops), out_of_service=broken))

    async def status(self, request: Request) -> Response:
        return json(await self._status(await self._loop(request)))

    async def delete(self, request: Request) -> Response:
        name = request.path_params["loop"]
        await self.engine.delete(name)
        return json(wire.Deleted(name=name))

    async def reset(self, request: Request) -> Response:
        return json(await self._status(await self.engine.reset(request.path_params["loop"])))

    async def decide(self, request: Request) -> Response:
        asked = parse_decision(await self._body(request, self.engine.limits.body))
        made = await self.engine.ask(request.path_params["loop"], asked)
        return Response(encode_answer(made), media_type="application/json")

    async def report_loss(self, request: Request) -> Response:
        body, path = await self._body(request, self.engine.limits.body), request.path_params
        stored = await self.engine.ask(path["loop"], parse_loss(path["id"], body))
        return Response(encode_answer(stored), media_type="application/json")

    async def decide_many(self, request: Request) -> Response:
        batch = await self._parse(request, wire.NewDecisions)
        self._check_batch(request, "decisions", len(batch.decisions))
        made = await self.engine.ask(request.path_params["loop"], Decide(batch.decisions))
        return json(wire.Decisions(decisions=[wire.Decision.of(each) for each in made]))

    async def observe(self, request: Request) -> Response:
        (stored,) = await self._observe(request, [await self._parse(request, wire.NewObservation)], alone=True)
        return json(stored)

    async def observe_many(self, request: Request) -> Response:
        batch = await self._parse(request, wire.NewObservations)
        self._check_batch(request, "observations", len(batch.observations))
        return json(wire.Observations(observations=await self._observe(request, batch.observations, alone=False)))

    async def _observe(
        self, request: Request, observations: Sequence[wire.NewObservation], *, alone: bool
    ) -> list[wire.Observed]:
        name = request.path_params["loop"]
        if any(each.model is not None or each.number is not None or each.copy is not None for each in observations):
            loop = await self.engine.find(name)
            await asyncio.to_thread(self.engine.downloads.check, loop, observations, alone=alone)
        stored = await self.engine.ask(name, Observe(observations, alone=alone))
        return [wire.Observed(id=each.public_id) for each in stored]

    async def report_losses(self, request: Request) -> Response:
        batch = await self._parse(request, wire.NewLosses)
        self._check_batch(request, "losses", len(batch.losses))
        return json(wire.Losses(losses=await self.engine.ask(request.path_params["loop"], Report(batch.losses))))

    async def pause(self, request: Request) -> Response:
        return await self._change(request, paused=True)

    async def resume(self, request: Request) -> Response:
        return await self._change(request, paused=False)

    async def promote(self, request: Request) -> Response:
        loop = await self._loop(request)
        await self.engine.promote(loop)
        return json(await self._status(loop))

    async def start_rollout(self, request: Request) -> Response:
        loop = await self._loop(request)
        await self.engine.rollouts.start(loop, await self._parse(request, NewRollout))
        return json(describe(loop, self.engine.now()))

    async def rollout(self, request: Request) -> Response:
        return json(describe(await self._loop(request), self.engine.now()))

    async def pause_rollout(self, request: Request) -> Response:
        return await self._act(request, "pause")

    async def resume_rollout(self, request: Request) -> Response:
        return await self._act(request, "resume")

    async def abort_rollout(self, request: Request) -> Response:
        return await self._act(request, "abort")

    async def model(self, request: Request) -> Response:
        loop = await self._loop(request)
        snapshot = await asyncio.to_thread(loop.model.snapshot)
        headers = {
            "Content-Disposition": f'attachment; filename="{loop.name}.manul"',
            "X-Manul-Event": str(snapshot.event),
        }
        if (signature := await self.engine.downloads.keep(loop, snapshot.model)) is not None:
            headers["X-Manul-Model"] = signature
        return Response(snapshot.model, 200, headers, "application/octet-stream")

    async def replace(self, request: Request) -> Response:
        loop = await self._loop(request)
        await self.engine.replace(loop, await self._body(request, self.engine.limits.model))
        return json(await self._status(loop))

    async def change_budget(self, request: Request) -> Response:
        loop, asked = await self._loop(request), await self._parse(request, wire.NewBudget)
        await self.engine.change_budget(loop, asked.amount)
        return json(await self._status(loop))

    async def report(self, request: Request) -> Response:
        loop = await self._loop(request)
        snapshot = await asyncio.to_thread(loop.model.snapshot)
        return json(await asyncio.to_thread(loop_report.report, self.engine.store, loop, snapshot))

    async def summary(self, request: Request) -> Response:
        loop = await self._loop(request)
        span: Any = request.query_params.get("span", "all")
        if span not in loop.history.spans:
            known = ", ".join(loop.history.spans)
            raise Invalid(f"span must be one of {known}, got {span!r}.", "span")
        examined = self.examinations.latest(loop)
        return json(summary(loop, await self._status(loop), examined, self.engine.now(), span))

    async def policy(self, request: Request) -> Response:
        given = request.query_params
        return json(policy_view(await self._loop(request), given.get("feature"), given.get("knob")))

    async def pair(self, request: Request) -> Response:
        loop, given = await self._loop(request), request.query_params
        return json(await asyncio.to_thread(pair_view, loop, given.get("first"), given.get("second")))

    async def log(self, request: Request) -> Response:
        """The log as Parquet, sent from a temporary file."""
        loop = await self._loop(request)
        for name in request.query_params:
            rule = "the log is a Parquet file and has no parameters"
            raise Invalid(f"{rule}, got {name!r}. `manul convert log.parquet log.csv` converts it.", name)
        folder = tempfile.TemporaryDirectory()
        path = Path(folder.name, f"{loop.name}.parquet")
        try:
            await asyncio.to_thread(log_export.write, self.engine.store, loop, path)
        except BaseException:
            folder.cleanup()
            raise
        return FileResponse(path, media_type=PARQUET, filename=path.name, background=BackgroundTask(folder.cleanup))

    async def openapi(self, request: Request) -> Response:  # noqa: ARG002
        return json(document(tokens=bool(self.tokens)))

    async def dashboard(self, request: Request) -> Response:  # noqa: ARG002
        """The dashboard; it sends requests to this service only."""
        return FileResponse(DASHBOARD / "index.html", headers=ONLY_HERE)

    async def docs(self, request: Request) -> Response:  # noqa: ARG002
        return Response(DOCS.read_bytes(), 200, {**ONLY_HERE, "Content-Security-Policy": DOCS_POLICY}, "text/html")

    async def healthz(self, request: Request) -> Response:  # noqa: ARG002
        return json(wire.Health(status="ok"))

    async def readyz(self, request: Request) -> Response:  # noqa: ARG002
        """The process runs, and the store is writable; loops that are not ready say so in their status."""
        trouble = self.engine.trouble()
        if trouble is not None:
            raise Unavailable(f"Not ready: {trouble}.")
        return json(wire.Health(status="ok"))

    async def metrics(self, request: Request) -> Response:
        """Metrics for Prometheus, also while the store is unavailable."""
        if self._access(request).restricted:
            raise Forbidden("The metrics are about all loops, and the token is for some loops only.")
        statuses = await self.counts.read()
        text = metrics.text(self.engine, statuses, self.requests, self.tokens, self.counts.files)
        return Response(text, 200, media_type="text/plain; version=0.0.4")

    async def _loop(self, request: Request) -> Loop:
        return await self.engine.find(request.path_params["loop"])

    async def _status(self, loop: Loop) -> wire.Status:
        return await asyncio.to_thread(self.engine.status, loop)

    async def _parse(self, request: Request, kind: type[T]) -> T:
        parsed: T = bodies.decode(await self._body(request, self._body_limit(kind)), DECODERS[kind])
        return parsed

    async def _body(self, request: Request, limit: int) -> bytes:
        length = request.headers.get("content-length")
        return await self.reader.read(request.receive, limit, length.encode() if length else None)

    def _body_limit(self, kind: type) -> int:
        if kind is NewRollout:
            return self.engine.limits.model  # it can contain a policy
        batches = (wire.NewDecisions, wire.NewObservations, wire.NewLosses)
        return self.engine.limits.batch_body if kind in batches else self.engine.limits.body

    def _access(self, request: Request) -> Access:
        access: Access = request.scope[ACCESS]
        return access

    def _check_batch(self, request: Request, field: str, length: int) -> None:
        if not 1 <= length <= self.engine.limits.batch:
            raise Invalid(
                f"{field} must have 1 to {self.engine.limits.batch} elements, got {length}.",
                field,
            )
        self._access(request).take_batch(length)

    async def _act(self, request: Request, act: Act) -> Response:
        loop = await self._loop(request)
        await self.engine.rollouts.act(loop, act)
        return json(describe(loop, self.engine.now()))

    async def _change(self, request: Request, **change: bool) -> Response:
        loop = await self._loop(request)
        await self.engine.change(loop, **change)
        return json(await self._status(loop))


def _by_method(known: Mapping[str, Answer]) -> Answer:
    async def handle(request: Request) -> Any:
        return await known["GET" if request.method == "HEAD" else request.method](request)

    return handle


def build(engine: Engine, tokens: Tokens, requests: RequestMetrics, reader: bodies.BodyReader) -> Router:
    routes = Routes(engine, tokens, requests, reader)

    def authorise(each: Operation) -> Answer:
        answer = vars(Routes)[each.name]

        async def handle(request: Request) -> Any:
            request.scope[ROUTE] = each.name
            if each.right is not None:
                access = tokens.find(request.headers.get("authorization", "").encode("latin-1") or None)
                request.scope[ACCESS] = access
                access.take()
                access.check(each.right, request.path_params.get("loop"))
            return await answer(routes, request)

        return handle

    by_path: dict[str, dict[str, Answer]] = {}
    for each in OPERATIONS:
        by_path.setdefault(each.path, {})[each.method] = authorise(each)
    # One route per path, so that a refused method is told all that are allowed.
    table: list[BaseRoute] = [Route(path, _by_method(known), methods=list(known)) for path, known in by_path.items()]
    table += [Route("/openapi.json", routes.openapi), Route("/docs", routes.docs), Route("/", routes.dashboard)]
    table.append(Mount("/dashboard", StaticFiles(directory=DASHBOARD)))
    return Router(table)
