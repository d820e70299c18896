"""All routes in one table: the application is built from it, and so is its OpenAPI description."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from manul.service import schema
from manul.service.http.tokens import Right
from manul.service.insights.history import Span
from manul.service.loop_settings import NewLoop

ONE = "/v1/loops/{loop}"
PARQUET = "application/vnd.apache.parquet"
FILE = "application/octet-stream"


@dataclass(frozen=True, kw_only=True)
class Query:
    """What may follow a `?`: one of `choices` where there are any."""

    name: str
    says: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A route: `asks` and `answers` are structs, or else the media type of a file."""

    name: str
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    right: Right | None
    says: str
    asks: type | str | None = None
    answers: type | str
    status: tuple[int, ...] = field(default=(200,))
    query: Query | None = None


OPERATIONS = (
    Operation(name="create", method="POST", path="/v1/loops", right="admin", asks=NewLoop, answers=schema.Status,
              status=(200, 201), says="Create a loop; the same settings again give the loop that is there."),
    Operation(name="loops", method="GET", path="/v1/loops", right="report", answers=schema.Loops, says="All loops."),
    Operation(name="status", method="GET", path=ONE, right="report", answers=schema.Status, says="A loop as it is now."),
    Operation(name="delete", method="DELETE", path=ONE, right="admin", answers=schema.Deleted,
              says="Delete a loop with all its decisions, losses and models. It cannot be undone: download its log first."),
    Operation(name="reset", method="POST", path=f"{ONE}/reset", right="admin", answers=schema.Status,
              says="Start a loop again from nothing, with the settings it was created with. It cannot be undone."),
    Operation(name="decide", method="POST", path=f"{ONE}/decisions", right="decide", asks=schema.NewDecision,
              answers=schema.Decision, says="Decide. The decision is durable before it is answered."),
    Operation(name="decide_many", method="POST", path=f"{ONE}/decisions/batch", right="decide", asks=schema.NewDecisions,
              answers=schema.Decisions, says="Decide in many contexts: in all of them or, where one cannot be used, in none."),
    Operation(name="lose", method="POST", path=f"{ONE}/decisions/{{id}}/loss", right="report", asks=schema.NewLoss,
              answers=schema.Loss, says="Report what a decision led to. The loss is durable before it is acknowledged."),
    Operation(name="lose_many", method="POST", path=f"{ONE}/losses", right="report", asks=schema.NewLosses,
              answers=schema.Losses, says="Report many losses: all are taken or, where one cannot be used, none."),
    Operation(name="observe", method="POST", path=f"{ONE}/observations", right="report", asks=schema.NewObservation,
              answers=schema.Observed, says="Report what the caller did by itself; an apprentice learns from nothing else."),
    Operation(name="pause", method="POST", path=f"{ONE}/pause", right="admin", answers=schema.Status,
              says="Freeze the model. Decisions go on with it; losses are kept, and learned after resuming."),
    Operation(name="resume", method="POST", path=f"{ONE}/resume", right="admin", answers=schema.Status,
              says="Learn what came during the pause, and go on."),
    Operation(name="promote", method="POST", path=f"{ONE}/promote", right="admin", answers=schema.Status,
              says="Let an apprentice decide."),
    Operation(name="report", method="GET", path=f"{ONE}/report", right="report", answers=schema.Report,
              says="What the agent believes, and what it and others would have lost, with intervals."),
    Operation(name="summary", method="GET", path=f"{ONE}/summary", right="report", answers=schema.Summary,
              query=Query(name="span", says="How far back; all by default.", choices=get_args(Span)),
              says="What the dashboard shows: the past in stretches, traffic, the density now, the latest report and findings."),
    Operation(name="policy", method="GET", path=f"{ONE}/policy", right="report", answers=schema.PolicyView,
              query=Query(name="feature", says="A feature of the context; the first by default."),
              says="What is played for each value of one feature, the others at their typical values."),
    Operation(name="log", method="GET", path=f"{ONE}/log", right="admin", answers=PARQUET,
              says="Decisions with their outcomes as a Parquet log, for manul check, evaluate and optimize."),
    Operation(name="model", method="GET", path=f"{ONE}/model", right="admin", answers=FILE,
              says="The model as a .manul file."),
    Operation(name="replace", method="PUT", path=f"{ONE}/model", right="admin", asks=FILE, answers=schema.Status,
              says="Put a .manul file in the place of the model, once it has been seen to fit."),
    Operation(name="healthz", method="GET", path="/healthz", right=None, answers=schema.Health, says="The process is alive."),
    Operation(name="readyz", method="GET", path="/readyz", right=None, answers=schema.Health,
              says="Everything is loaded, the store takes writes, and the threads that write and learn are alive."),
    Operation(name="metrics", method="GET", path="/metrics", right="report", answers="text/plain", says="Metrics for Prometheus."),
)  # fmt: skip
