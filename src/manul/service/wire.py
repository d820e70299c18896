"""Every request and response of the service; the OpenAPI description is generated from these. Unknown fields are refused."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from msgspec import UNSET, Meta, Struct, UnsetType, defstruct
from msgspec.structs import asdict

from manul.actions import schedules
from manul.actions.kinds.knob import KINDS, SCALARS, arguments
from manul.actions.schedules import SCHEDULES
from manul.outcomes import MOST_PARTS, Combination, Direction, PartKind
from manul.utils.formulas import MOST_CHARACTERS

if TYPE_CHECKING:
    from manul.service.store.blocks import DecisionRow

Name = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z", examples=["heating"])]
Id = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@=+-]{0,127}\Z",
        examples=["order-1734"],
        description="Chosen by the caller. It seeds the randomness: a repeated request gets the same decision.",
    ),
]
Range = Annotated[tuple[float, float], Meta(description="Lower and upper bound.", examples=[[0.0, 32.0]])]
LossRange = Range | Literal["auto"]
Context = Annotated[
    list[float] | dict[str, Any] | None,
    Meta(
        description="A list of numbers, or an object of numbers, strings, booleans, dates, missing values (null), lists and objects. "
        'A date is {"$date": "2024-02-29"} or {"$date": "2024-02-29T12:30:00+01:00"}, a time of day {"$time": "12:30"}; other '
        "strings are categories.",
        examples=[[0.3, 1.2], {"city": "Oslo", "arrival": {"$date": "2024-02-29"}}],
    ),
]
Option = str | int | float | bool
Action = Annotated[
    Option | dict[str, Option],
    Meta(
        description="A number, an option, or the values of several knobs by name.",
        examples=[21.4, "bold", {"price": 21.4, "template": "a"}],
    ),
]
Limited = Annotated[
    list[Option] | dict[str, list[Option]] | None,
    Meta(
        description="Lower and upper bound, or the options that are allowed; of several knobs by name.",
        examples=[[12.0, 20.0], ["bold"], {"price": [12.0, 20.0], "template": ["a"]}],
    ),
]
Densities = Annotated[
    dict[str, float], Meta(description="Of several knobs: the density of each, whose product is the density.")
]
Formula = Annotated[
    str,
    Meta(
        max_length=MOST_CHARACTERS,
        description="Computes the outcome from the reported parts, the knobs (`action` if there is only one) and numbers of the context.",
        examples=["(action - 20) * bought"],
    ),
]
PartKinds = Annotated[
    dict[str, PartKind],
    Meta(
        max_length=MOST_PARTS,
        description="The kinds of the parts; those that no formula uses are only recorded.",
        examples=[{"bought": "yes/no"}],
    ),
]
Hints = Annotated[
    dict[str, Direction],
    Meta(description="Whether a part rises or falls with the action.", examples=[{"bought": "falls"}]),
]
Parts = Annotated[
    dict[str, bool | float | None],
    Meta(
        description="The values of parts by name: true or false, or a number; an amount that was not seen is left out.",
        examples=[{"bought": True}, {"won": True, "value": 12.3}],
    ),
]
SpendAtMost = Annotated[
    tuple[str, float, str | int],
    Meta(
        description="A budget of the agent Auto: a formula of what is spent, an amount, and a period: hour, day, week, or a number of "
        "decisions.",
        examples=[["won * action", 2000.0, "day"]],
    ),
]
Keep = Annotated[
    tuple[str, str, float],
    Meta(
        description="A bound on the mean of a part or a formula of parts, for the agent Auto.",
        examples=[["bought", ">=", 0.05]],
    ),
]
Signature = Annotated[
    str,
    Meta(
        pattern=r"^[0-9a-f]{64}\Z",
        description="The SHA-256 of the bytes of a model that was downloaded, in hexadecimal.",
    ),
]
# With a signature and a number, the id of a decision has at most 128 characters.
Copy = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9._-]{1,40}\Z",
        description="Tells the copies of one model apart: a text that no other copy has.",
        examples=["0b0d7a3e-8a57-4f0e-9f6b-3d5f5f0f7c11"],
    ),
]
Number = Annotated[int, Meta(ge=0, le=2**63 - 1, description="The number of the decision in its copy of the model.")]
Share = Annotated[float, Meta(ge=0, le=1)]
PositiveShare = Annotated[float, Meta(gt=0, le=1)]


class Request(Struct, forbid_unknown_fields=True, kw_only=True):
    """A request body."""


def _knob_fields() -> list[tuple[str, Any, None]]:
    """The arguments of all registered kinds of knobs."""
    types: dict[str, Any] = dict(zip(SCALARS, (float | None, int | None, str | None), strict=True))
    hints = {key: hint for kind in KINDS for key, hint in arguments(kind).items()}
    return [(key, types.get(hint, list[Option] | None), None) for key, hint in hints.items()]


if TYPE_CHECKING:
    Knob = Struct
else:
    Knob = defstruct(
        "Knob",
        _knob_fields(),
        bases=(Request,),
        namespace={
            "__doc__": "A knob that is not any number of a range: numbers from `low` to `high` in equal steps, or `options`."
        },
        module=__name__,
        kw_only=True,
        omit_defaults=True,
    )


Actions = Annotated[
    Range | dict[str, list[Option] | Knob | Option],
    Meta(
        description="Lower and upper bound; one knob with steps (`low`, `high` and `step`) or `options`; or several knobs by name, in "
        "order: bounds, steps or options each.",
        examples=[
            [0.0, 32.0],
            {"options": ["plain", "bold"]},
            {"price": [10.0, 50.0], "template": {"options": ["a", "b"]}},
        ],
    ),
]


# Fields of schedules with bounds that the types of the dataclasses do not express.
_BOUNDED: dict[str, Any] = {
    "first": PositiveShare,
    "last": PositiveShare,
    "rounds": Annotated[float, Meta(gt=0)],
}


def _schedule_fields() -> list[tuple[str, Any, Any]]:
    """The kind, and the fields of all registered kinds of schedules; one that two kinds type differently has any type."""
    types: dict[str, Any] = {"kind": Literal[tuple(SCHEDULES.names())]}
    for kind in SCHEDULES:
        own = get_type_hints(kind, include_extras=True)
        for name in [field.name for field in dataclasses.fields(kind)]:  # type: ignore[arg-type]
            hint = _BOUNDED[name] if kind is schedules.Fading else own[name]
            types[name] = hint if types.get(name, hint) == hint else Any
    return [(name, hint | UnsetType, UNSET) for name, hint in types.items()]


def _set_defaults(schedule: Any) -> None:
    """Show the fields that were left to the kind's defaults."""
    given = asdict(schedule)
    kind = SCHEDULES[schedule.kind or schedules.Fading.kind]
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        if given[field.name] is UNSET and field.default is not dataclasses.MISSING:
            setattr(schedule, field.name, field.default)


if TYPE_CHECKING:
    Schedule = Struct
else:
    Schedule = defstruct(
        "Schedule",
        _schedule_fields(),
        bases=(Request,),
        namespace={
            "__doc__": "A schedule of epsilon. Without a `kind`, it fades from `first` to `last`, and is half of `first` after `rounds` "
            "rounds of learning; by default 0.05, 0.002 and 1000.",
            "__post_init__": _set_defaults,
        },
        module=__name__,
        kw_only=True,
    )


class NewDecision(Request, kw_only=True, gc=False):
    """A request for a decision; `within` restricts the range of actions for this decision. `action` is what the caller would
    choose: a rollout with the baseline "caller" needs it, one with another baseline refuses it, and without a rollout it is
    ignored. `at` is when the decision is made, now by default, for a loop with a budget; without an offset it is in the budget's zone."""

    context: Context = None
    within: Limited = None
    id: Id | None = None
    action: Action | None = None
    at: datetime | None = None


class NewDecisions(Request, kw_only=True):
    """A request for many decisions. If one of them is invalid, none is made."""

    decisions: list[NewDecision]


class NewObservation(Request, kw_only=True):
    """An action that the caller chose itself, with its density and loss if they are known. `floor` is the smallest density
    that the caller gave any action. Of several knobs, `densities` may replace `density`, their product. A loop with `rewards` takes
    a `reward`, any other a `loss`, and one with a formula `parts`. If a downloaded `model` made the decision, its `density` must be the
    model's, and `number` and `copy`, or `id`, say which decision it was, so that it is learned once."""

    action: Action
    context: Context = None
    density: Annotated[float, Meta(gt=0)] | None = None
    densities: Annotated[dict[str, Annotated[float, Meta(gt=0)]] | None, Meta(description="By knob.")] = None
    floor: Annotated[float, Meta(ge=0)] | None = None
    within: Limited = None
    id: Id | None = None
    loss: float | None = None
    reward: float | None = None
    parts: Parts | None = None
    model: Signature | None = None
    number: Number | None = None
    copy: Copy | None = None

    @property
    def known_id(self) -> str | None:
        """The id of the observation: the caller's own, or that of a decision of a downloaded model."""
        if self.id is not None or self.model is None or self.number is None:
            return self.id
        return f"{self.model}:{self.number}:{self.copy or ''}"


class NewObservations(Request, kw_only=True):
    """Many observations. If one of them is invalid, none is stored."""

    observations: list[NewObservation]


class NewLoss(Request, kw_only=True):
    """The `loss` of a decision if the loop was created with `losses` or neither, its `reward` if the loop was created with
    `rewards`: exactly one of the two. If the loop has a formula, `parts` are enough; what is reported beside them is learned instead
    of the value of the formula. Parts that no formula uses are recorded and logged. If a loop combines losses, `key` distinguishes a
    repeat from another loss."""

    loss: float | None = None
    reward: float | None = None
    parts: Parts | None = None
    key: Annotated[str, Meta(min_length=1, max_length=128)] | None = None


class LossOf(NewLoss, kw_only=True):
    """A loss with the id of its decision."""

    id: Annotated[str, Meta(min_length=1, max_length=128)]


class NewLosses(Request, kw_only=True):
    """Many losses. If one of them is invalid, none is stored."""

    losses: list[LossOf]


class Decision(Struct, kw_only=True):
    """An action with the density it was drawn with; `model` is the last event that the model contained. `arm` says who made
    the decision, if a rollout is running. `within` is the range that it was drawn from, if what is left of a budget has cut it."""

    id: str
    action: Action
    density: float
    model: int
    densities: Densities | UnsetType = UNSET
    arm: Literal["learner", "baseline"] | UnsetType = UNSET
    within: Range | UnsetType = UNSET

    @classmethod
    def of(cls, stored: DecisionRow) -> Decision:
        """The answer to every request for a decision; a field of what is stored is added above and here alone."""
        assert stored.density is not None
        return cls(
            id=stored.public_id,
            action=stored.action,
            density=stored.density,
            model=stored.model,
            densities=UNSET if stored.densities is None else stored.densities,
            arm=UNSET if stored.ticket is None else stored.ticket.arm,
            within=UNSET if stored.requested is None or stored.within is None else stored.within,
        )


class Decisions(Struct, kw_only=True):
    """One decision per context, in order."""

    decisions: list[Decision]


class Observed(Struct, kw_only=True):
    """Confirms that an observation is stored."""

    id: str


class Observations(Struct, kw_only=True):
    """One confirmation per observation, in order."""

    observations: list[Observed]


class Loss(Struct, kw_only=True):
    """What happens to a loss: `recorded` is learned; `waiting` is learned when the wait of its decision ends; `repeated` was
    reported before; `late` was reported after the end of the wait, and is stored but not learned."""

    id: str
    status: Literal["recorded", "waiting", "repeated", "late"]


class Losses(Struct, kw_only=True):
    """One status per loss, in order."""

    losses: list[Loss]


class BudgetPeriod(Struct, kw_only=True):
    """A period of a budget that is over: when it `started`, a time or the number of decisions before it, what was available, what
    was spent, what is still held back, and its mean price."""

    started: float
    available: float
    spent: float
    held: float
    price: float


class Budget(Struct, kw_only=True):
    """A budget in its current period, which began when it `started` unless it is a number of decisions.

    Of the `available` amount, which is `amount` and what an earlier period has added or taken, some is `spent`, some is `held` back
    for decisions that wait for their cost, and the rest is `left`. `waiting` are the decisions of all periods that wait for it. `pace` is
    what was spent divided by what was planned so far, and `forecast` what will be spent by the end at this pace; both are null before
    anything is known. `price` is how much a decision must earn beyond its cost for each unit that it spends. `planned` is what should
    be spent by the end of each twentieth of the period, and `spent_by_slot` what was spent so far. `latest` are the latest periods that
    are over, and `trouble` says that the budget was gone early."""

    formula: str
    amount: float
    period: str | int
    started: float | None
    available: float
    spent: float
    held: float
    left: float
    waiting: int
    pace: float | None
    forecast: float | None
    price: float
    planned: list[float]
    spent_by_slot: list[float]
    latest: list[BudgetPeriod]
    trouble: str | None


class NewBudget(Request, kw_only=True):
    """The amount of a budget from now on, also in the current period."""

    amount: Annotated[float, Meta(gt=0, le=1e300)]


class Kept(Struct, kw_only=True):
    """A bound on the mean of a second outcome: the `mean` of about the latest 1,000 of all `outcomes`, and the `price`, what one
    more unit of it is worth.

    `reachable` is the mean that the model predicts for decisions that aim at nothing else, and `trouble` says that the bound cannot be
    kept."""

    formula: str
    sign: Literal[">=", "<="]
    value: float
    mean: float | None
    outcomes: int
    price: float
    reachable: float | None
    trouble: str | None


class Status(Struct, kw_only=True):
    """The status of a loop. `waiting` are decisions without an outcome: no loss was reported or, with a wait, it is not over.
    `learned` are the outcomes that the model contains, and `epsilon` is the share of uniform exploration in the next decision.
    A reward is a negative loss: if a loop has `rewards`, its mean reward is `-mean_loss`. `trouble` says why the loop is not ready:
    it does not learn, or its data are damaged; null if all is well."""

    name: str
    actions: Actions
    losses: LossRange
    rewards: LossRange | None
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
    epsilon: float | None = None
    trouble: str | None = None
    formula: str | None = None
    parts: PartKinds | None = None
    hints: Hints | None = None
    default_parts: Parts | None = None
    budget: Budget | None = None
    kept: Kept | None = None


class OutOfService(Struct, kw_only=True):
    """A loop that cannot be read, and why. It answers no requests; it can be deleted, or restored from a backup."""

    name: str
    trouble: str


class Deleted(Struct, kw_only=True):
    """Confirms that a loop is deleted, with all its decisions, losses and models."""

    name: str


class Loops(Struct, kw_only=True):
    """All loops, by name; those that cannot be read are in `out_of_service`."""

    loops: list[Status]
    out_of_service: list[OutOfService] = []


class Objection(Struct, kw_only=True):
    """A reason not to trust an estimate."""

    severity: Literal["error", "warning"]
    title: str
    sentence: str


class Candidate(Struct, kw_only=True):
    """A policy with its estimated loss, a 95 % confidence interval, and the effective sample size.

    If there are `objections`, the three numbers are null and `note` has the sentences of the objections. `action` is the
    value of a constant, which is judged by the decisions within a sixteenth of the range on either side, or with the same
    option; it is null if no constant can be judged. `knob` is the knob that it sets, if there are several.
    """

    name: str
    loss: float | None
    low: float | None
    high: float | None
    effective_size: float
    note: str | None = None
    objections: list[Objection] = []
    action: Option | None = None
    knob: str | None = None


class Exploration(Struct, kw_only=True):
    """What decisions outside the greedy window (`explored`) cost, as loss per decision with a standard error, and as a share
    of the loss, which is null if a loss is negative. By chance, the cost can be slightly negative."""

    explored: int
    cost: float
    error: float
    share: float | None


class Report(Struct, kw_only=True):
    """The agent's estimates (`beliefs`), and candidate policies evaluated on the latest `rows` decisions with an outcome.

    `played` is the policy that decided. `greedy` are the decisions that did not explore. `model`, if the caller decides, is
    the model, judged on each decision before it learned from it; it does not know decisions of unknown density. `constant`
    is the best of nine constant actions, chosen on one half of the rows and judged on the other; actions to which there are
    objections are not chosen. Of several knobs, there is one for each, the other knobs as they were set. `exploration` is what
    exploration cost in these rows; it is null if none of them is a greedy decision of the agent, as when the caller decides.
    """

    name: str
    model: int
    rows: int
    beliefs: dict[str, Any]
    candidates: list[Candidate]
    exploration: Exploration | None


class Finding(Struct, kw_only=True):
    """A problem with the log of a loop; after an `error` it must not be used for off-policy evaluation."""

    severity: Literal["error", "warning", "note"]
    title: str
    sentence: str


class Examined(Struct, kw_only=True):
    """A report with the doctor's findings on the same rows; `findings` is null if there are no rows yet."""

    time: float
    report: Report
    findings: list[Finding] | None


class Constant(Struct, kw_only=True):
    """The best constant action in the latest report, with its estimated loss, a 95 % confidence interval, and the effective
    sample size. Of several knobs, it is the value of one, while the others are set as they were."""

    action: Option
    loss: float
    effective_size: float
    low: float
    high: float


class History(Struct, kw_only=True):
    """A span in intervals of `seconds` each: outcomes, their mean loss with a 95 % confidence interval, late and defaulted
    losses, and how often actions fell into each part of their range. Each counts at the time of its decision; decisions whose
    wait is not over are left out. `best_constant` is null if no report has one yet."""

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
    """Decisions per second since the service started, and the median and p99 (`slowest`) of the milliseconds until they
    were durable."""

    start: float
    seconds: float
    decisions: list[float]
    median: list[float | None]
    slowest: list[float | None]


class KnobSummary(Struct, kw_only=True):
    """One of several knobs: its steps, options or the middles of 32 parts of its range (`values`), how often decisions were
    at each in the intervals of the history, and the current density, averaged over the latest contexts; of steps and options,
    the probability. It is empty if there are too many combinations of options."""

    name: str
    values: list[Option]
    played: list[list[int]]
    density: list[float]
    best_constant: Constant | None


class Summary(Struct, kw_only=True):
    """Everything that the dashboard shows of a loop. `density` is over equal parts of the range of actions, averaged over
    the latest contexts; `examined` is up to a few seconds old, and null at first. A loop with several knobs has `knobs`
    instead of `density`, and of `played` and `best_constant` in its history. `rollout` says whether the loop has one."""

    time: float
    status: Status
    history: History
    traffic: Traffic
    density: list[float]
    features: list[str]
    examined: Examined | None
    rollout: bool
    knobs: list[KnobSummary] | UnsetType = UNSET


class PolicyView(Struct, kw_only=True):
    """The density over equal parts of the range of actions for values of one feature, the others at typical values.

    Of several knobs, it is the density of `knob` over its `cells`; options have no mean.
    """

    feature: str | None
    values: list[float | str]
    typical: float | str | None
    density: list[list[float]]
    mean: list[float]
    knob: str | UnsetType = UNSET
    cells: list[Option] | UnsetType = UNSET


class PairView(Struct, kw_only=True):
    """Two of several knobs: how many of the latest decisions were at each pair of values, their mean loss, and the loss that
    the model predicts there in the latest contexts, the other knobs at their best; it is empty if the model does not know."""

    first: str
    second: str
    first_values: list[Option]
    second_values: list[Option]
    count: list[list[int]]
    loss: list[list[float | None]]
    predicted: list[list[float]]


class Health(Struct, kw_only=True):
    """The service is healthy."""

    status: Literal["ok"]


class ErrorBody(Struct, kw_only=True):
    """A code for programs, a message for people, and the field that the error is about, if any."""

    code: str
    message: str
    field: str | UnsetType = UNSET


class Error(Struct, kw_only=True):
    """The body of every error response."""

    error: ErrorBody
