"""Every request and answer of the service. Unknown fields are refused; the OpenAPI description is made from here."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z", examples=["heating"])]
Id = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,127}\Z",
        examples=["order-1734"],
        description="Given by the caller. It seeds the randomness: the same request again gets the same answer.",
    ),
]
Range = Annotated[tuple[float, float], Meta(description="Low and high.", examples=[[0.0, 32.0]])]
Context = Annotated[
    list[float] | dict[str, Any] | None,
    Meta(
        description="A row of numbers, or named fields: numbers, texts, truth values, gaps, lists and objects of these.",
        examples=[[0.3, 1.2]],
    ),
]
Combination = Literal["first", "last", "sum", "mean"]


class Request(Struct, forbid_unknown_fields=True, kw_only=True):
    """What a caller may send."""


class NewDecision(Request, kw_only=True):
    """A context to decide in; `within` narrows the range of actions this once."""

    context: Context = None
    within: Range | None = None
    id: Id | None = None


class NewDecisions(Request, kw_only=True):
    """Many contexts to decide in: all are decided or, where one cannot be used, none."""

    decisions: list[NewDecision]


class NewObservation(Request, kw_only=True):
    """What the caller did by itself, with the density it was drawn with where that is known, and its loss where it came."""

    action: float
    context: Context = None
    density: Annotated[float, Meta(gt=0)] | None = None
    within: Range | None = None
    id: Id | None = None
    loss: float | None = None


class NewLoss(Request, kw_only=True):
    """What a decision led to. A `key` tells repeats of one loss from several losses where losses combine."""

    loss: float
    key: Annotated[str, Meta(min_length=1, max_length=128)] | None = None


class LossOf(NewLoss, kw_only=True):
    """A loss and the decision that led to it."""

    id: Annotated[str, Meta(min_length=1, max_length=128)]


class NewLosses(Request, kw_only=True):
    """Many losses: all are taken or, where one cannot be used, none."""

    losses: list[LossOf]


class Decision(Struct, kw_only=True):
    """An action with the density it was drawn with; `model` is the last event that the model had learned."""

    id: str
    action: float
    density: float
    model: int


class Decisions(Struct, kw_only=True):
    """One decision per context, in order."""

    decisions: list[Decision]


class Observed(Struct, kw_only=True):
    """The caller's own action is in the store."""

    id: str


class Loss(Struct, kw_only=True):
    """`recorded` is learned; `waiting` is learned at the end of the wait; `repeated` was there already; `late` came after
    the end of the wait, is kept, and is not learned."""

    id: str
    status: Literal["recorded", "waiting", "repeated", "late"]


class Losses(Struct, kw_only=True):
    """One answer per loss, in order."""

    losses: list[Loss]


class Status(Struct, kw_only=True):
    """A loop as it is now. `waiting` are decisions without an outcome, `learned` outcomes that the model contains."""

    name: str
    actions: Range
    losses: Range
    agent: dict[str, Any]
    combine: Combination
    wait: float | None
    default_loss: float | None
    apprentice: bool
    paused: bool
    created: float
    decisions: int
    learned: int
    waiting: int
    mean_loss: float | None
    late: int
    defaulted: int
    refused: int
    events: int
    model: int
    width: int | None


class Deleted(Struct, kw_only=True):
    """The loop is gone, with all its decisions, losses and models."""

    name: str


class Loops(Struct, kw_only=True):
    """All loops, by name."""

    loops: list[Status]


class Candidate(Struct, kw_only=True):
    """A policy and what it would have lost on the latest decisions, with the ends of a 95 % interval."""

    name: str
    loss: float
    low: float
    high: float
    effective_size: float


class Report(Struct, kw_only=True):
    """What the agent believes, and candidates on the latest `rows` decisions that have an outcome.

    `played` is what was done, `model` the model as it is now, which has learned from these rows and so looks a little
    too good; the third is the best of nine constant actions.
    """

    name: str
    model: int
    rows: int
    beliefs: dict[str, Any]
    candidates: list[Candidate]


class Finding(Struct, kw_only=True):
    """What speaks against using the log of a loop; with an `error` it must not be used."""

    severity: Literal["error", "warning", "note"]
    title: str
    sentence: str


class Examined(Struct, kw_only=True):
    """The report, and the doctor's findings on the same rows; `findings` is null where there are no rows yet."""

    time: float
    report: Report
    findings: list[Finding] | None


class Constant(Struct, kw_only=True):
    """The constant action that would have lost least over a span, estimated from what was played."""

    action: float
    loss: float
    effective_size: float


class History(Struct, kw_only=True):
    """A span in stretches of `seconds` each: outcomes, their mean loss with the ends of a 95 % interval, late and
    defaulted losses, and how often each part of the range of actions was played."""

    start: float
    seconds: float
    outcomes: list[int]
    loss: list[float | None]
    low: list[float | None]
    high: list[float | None]
    late: list[int]
    defaulted: list[int]
    played: list[list[int]]
    best_constant: Constant | None


class Traffic(Struct, kw_only=True):
    """Decisions per second since the service started, and the median and the 99th of 100 of the milliseconds until they
    were durable."""

    start: float
    seconds: float
    decisions: list[float]
    median: list[float | None]
    slowest: list[float | None]


class Summary(Struct, kw_only=True):
    """Everything about a loop at a glance. `density` is that over even parts of the range of actions, averaged over the
    latest contexts; `examined` is a few seconds old, and null until it is there."""

    time: float
    status: Status
    history: History
    traffic: Traffic
    density: list[float]
    features: list[str]
    examined: Examined | None


class PolicyView(Struct, kw_only=True):
    """The density over even parts of the range of actions for values of one feature, the others at their typical values."""

    feature: str | None
    values: list[float | str]
    typical: float | str | None
    density: list[list[float]]
    mean: list[float]


class Health(Struct, kw_only=True):
    """Whether the service can work."""

    status: Literal["ok"]


class ErrorBody(Struct, kw_only=True):
    """What was wrong: a code for programs, a sentence for people, and the field where there is one."""

    code: str
    message: str
    field: str | UnsetType = UNSET


class Error(Struct, kw_only=True):
    """The shape of every error."""

    error: ErrorBody
