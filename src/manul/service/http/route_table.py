"""All routes in one table, from which the application and its OpenAPI description are built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, get_args

from manul.service import wire
from manul.service.http.tokens import Right
from manul.service.insights.history import Span
from manul.service.loop_settings import NewLoop
from manul.service.rollout_schema import NewRollout, Rollout

ONE = "/v1/loops/{loop}"
PARQUET = "application/vnd.apache.parquet"
FILE = "application/octet-stream"


@dataclass(frozen=True, kw_only=True)
class Query:
    """A query parameter; if there are `choices`, one of them."""

    name: str
    summary: str
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Operation:
    """A route: `asks` and `answers` are structs, or the media type of a file."""

    name: str
    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    right: Right | None
    summary: str
    asks: type | str | None = None
    answers: type | str
    status: tuple[int, ...] = field(default=(200,))
    queries: tuple[Query, ...] = ()


OPERATIONS = (
    Operation(name="create", method="POST", path="/v1/loops", right="admin", asks=NewLoop, answers=wire.Status,
              status=(200, 201), summary="Create a loop. If it exists with the same settings, return it."),
    Operation(name="loops", method="GET", path="/v1/loops", right="report", answers=wire.Loops,
              summary="List all loops that the token is for."),
    Operation(name="status", method="GET", path=ONE, right="report", answers=wire.Status, summary="Return the status of a loop."),
    Operation(name="delete", method="DELETE", path=ONE, right="admin", answers=wire.Deleted,
              summary="Delete a loop with all its decisions, losses and models. This cannot be undone; download its log first."),
    Operation(name="reset", method="POST", path=f"{ONE}/reset", right="admin", answers=wire.Status,
              summary="Delete all data of a loop and restart it with its original settings. This cannot be undone."),
    Operation(name="decide", method="POST", path=f"{ONE}/decisions", right="decide", asks=wire.NewDecision,
              answers=wire.Decision, summary="Decide in one context. The decision is stored durably before the response is sent."),
    Operation(name="decide_many", method="POST", path=f"{ONE}/decisions/batch", right="decide", asks=wire.NewDecisions,
              answers=wire.Decisions, summary="Decide in many contexts. If one context is invalid, no decision is made."),
    Operation(name="report_loss", method="POST", path=f"{ONE}/decisions/{{id}}/loss", right="report", asks=wire.NewLoss,
              answers=wire.Loss, summary="Report the loss of a decision. It is stored durably before the response is sent."),
    Operation(name="report_losses", method="POST", path=f"{ONE}/losses", right="report", asks=wire.NewLosses,
              answers=wire.Losses, summary="Report many losses. If one is invalid, none is stored."),
    Operation(name="observe", method="POST", path=f"{ONE}/observations", right="report", asks=wire.NewObservation,
              answers=wire.Observed,
              summary="Report an action that the caller or a downloaded model chose. An apprentice learns only from these."),
    Operation(name="observe_many", method="POST", path=f"{ONE}/observations/batch", right="report", asks=wire.NewObservations,
              answers=wire.Observations, summary="Report many observations. If one is invalid, none is stored."),
    Operation(name="pause", method="POST", path=f"{ONE}/pause", right="admin", answers=wire.Status,
              summary="Pause learning. Decisions continue with the current model; losses are stored and learned after resuming."),
    Operation(name="resume", method="POST", path=f"{ONE}/resume", right="admin", answers=wire.Status,
              summary="Resume learning, beginning with the losses that arrived during the pause."),
    Operation(name="promote", method="POST", path=f"{ONE}/promote", right="admin", answers=wire.Status,
              summary="Promote an apprentice: from now on the loop decides. A rollout ends, and the learner makes all decisions."),
    Operation(name="change_budget", method="PUT", path=f"{ONE}/budget", right="admin", asks=wire.NewBudget, answers=wire.Status,
              summary="Change the amount of a budget, also of the current period. Nothing else of it can be changed."),
    Operation(name="start_rollout", method="PUT", path=f"{ONE}/rollout", right="admin", asks=NewRollout, answers=Rollout,
              summary="Start a rollout: the learner takes over from a baseline by evidence. Other settings start a new test; one that "
                      "has ended starts again only with restart."),
    Operation(name="rollout", method="GET", path=f"{ONE}/rollout", right="report", answers=Rollout,
              summary="Return the rollout of a loop: traffic, evidence, moves, and what the next step needs."),
    Operation(name="pause_rollout", method="POST", path=f"{ONE}/rollout/pause", right="admin", answers=Rollout,
              summary="Pause a rollout: the learner gets no more traffic. It still loses traffic if it is worse."),
    Operation(name="resume_rollout", method="POST", path=f"{ONE}/rollout/resume", right="admin", answers=Rollout,
              summary="Resume a paused rollout."),
    Operation(name="abort_rollout", method="POST", path=f"{ONE}/rollout/abort", right="admin", answers=Rollout,
              summary="Abort a rollout: from now on the baseline makes all decisions. It works in every state, and at once."),
    Operation(name="report", method="GET", path=f"{ONE}/report", right="report", answers=wire.Report,
              summary="Return the agent's estimates, and the losses of the model and of alternatives with 95 % confidence intervals."),
    Operation(name="summary", method="GET", path=f"{ONE}/summary", right="report", answers=wire.Summary,
              queries=(Query(name="span", summary="The period to show; all by default.", choices=get_args(Span)),),
              summary="Return what the dashboard shows: history by time interval, traffic, current density, latest report and findings."),
    Operation(name="policy", method="GET", path=f"{ONE}/policy", right="report", answers=wire.PolicyView,
              queries=(Query(name="feature", summary="A feature of the context; the first one by default."),
                       Query(name="knob", summary="One of several knobs; the first one by default.")),
              summary="Return the policy as a function of one feature, with the others at typical values."),
    Operation(name="pair", method="GET", path=f"{ONE}/pair", right="report", answers=wire.PairView,
              queries=(Query(name="first", summary="One of several knobs; the first one by default."),
                       Query(name="second", summary="Another knob; the second one by default.")),
              summary="Return the losses of the latest decisions, and the predicted losses, at pairs of values of two knobs."),
    Operation(name="log", method="GET", path=f"{ONE}/log", right="admin", answers=PARQUET,
              summary="Download decisions with their losses as a Parquet log for manul check, evaluate and optimize."),
    Operation(name="model", method="GET", path=f"{ONE}/model", right="admin", answers=FILE,
              summary="Download the model as a .manul file. Its signature is in the header X-Manul-Model if the service accepts "
                      "observations of its decisions."),
    Operation(name="replace", method="PUT", path=f"{ONE}/model", right="admin", asks=FILE, answers=wire.Status,
              summary="Replace the model by a .manul file, after checking that it fits the loop."),
    Operation(name="healthz", method="GET", path="/healthz", right=None, answers=wire.Health, summary="Check that the process is alive."),
    Operation(name="readyz", method="GET", path="/readyz", right=None, answers=wire.Health,
              summary="Check that the service has started, the store is writable, and the writer and learner threads are running. Loops "
                      "that are not ready say so in their status."),
    Operation(name="metrics", method="GET", path="/metrics", right="report", answers="text/plain",
              summary="Return metrics in the Prometheus text format."),
)  # fmt: skip
