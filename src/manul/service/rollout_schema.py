"""Requests and responses about rollouts. Both have the settings of `RolloutPlan`, from which they are generated."""

from __future__ import annotations

import base64
from dataclasses import fields
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_type_hints

from msgspec import Meta, Struct, defstruct
from msgspec.structs import asdict

from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.service.wire import Request

Status = Literal["waiting", "paused", "done", "rolled back", "aborted"]
# Settings of the plan with bounds that it does not have itself, so that no request can take memory without end.
BOUNDED: dict[str, Any] = {
    "least_decisions": Annotated[int, Meta(le=1_000_000_000)],
    "patience": Annotated[int, Meta(le=1_000_000)],
    "patience_seconds": Annotated[float, Meta(gt=0, le=1e9)] | None,
}
# A rule is a relation, a ratio and perhaps a range, which the plan checks.
RULES: dict[str, Any] = {"guard": dict[str, list[Any]] | None}
Step = Literal["started", "restarted", "not worse", "worse", "paused", "resumed", "aborted", "model replaced"]


class Webhook(Request, kw_only=True):
    """Where to report the moves of a rollout. Each is sent as JSON with POST until the receiver answers with a status of 2xx.

    The header `X-Manul-Signature` is `sha256=` and the HMAC of the body with the secret, in hexadecimal digits. A move may be
    sent more than once; `loop` and `event` identify it.
    """

    url: Annotated[
        str, Meta(pattern=r"^https?://[^\s/]+\S*\Z", max_length=2048, examples=["https://example.com/moves"])
    ]
    secret: Annotated[str, Meta(min_length=8, max_length=256)]


class _NewRollout(Request, kw_only=True, omit_defaults=True):
    """Lets the loop's learner take over from a baseline by evidence.

    `baseline` is a constant action (of several knobs an object), "caller" (each request for a decision then has the `action` that
    the caller would choose), or `{"policy": ...}` with the bytes of the `.manul` file of a saved policy or agent, in Base64. The
    learner's loss may be at most (1 + `tolerance`) times that of the baseline, or its reward at least (1 - `tolerance`) times.
    `steps` are its shares of the traffic, one after the other, each for at least `least_decisions` with losses and
    `least_seconds`; the baseline keeps the share `holdout`. `budget` is the start-up budget of the guarantee, in widths of the
    range of losses. After `patience` further decisions, or `patience_seconds` if that is given, a missing loss is not waited for.
    `outcome_range` is the range of the losses or rewards that are compared: by default that of the loop, and required if that is
    "auto". Those beyond it count as its ends. `guard` has rules for parts of the outcome, such as `{"returned": ["<=", 1.02]}`: the
    learner's mean may be at most 1.02 times that of the baseline. Counts and amounts need a range, as in `["<=", 1.1, [0, 5]]`. A step
    up needs all guards, a step down any. A rollout that was aborted or rolled back starts again only with `restart`.
    """

    baseline: float | bool | str | dict[str, Any]
    least_seconds: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    webhook: Webhook | None = None
    restart: bool = False

    def __post_init__(self) -> None:
        # Snapshots of earlier versions have the bytes themselves.
        if isinstance(self.baseline, dict) and isinstance(policy := self.baseline.get("policy"), bytes):
            self.baseline = {"policy": base64.b64encode(policy).decode()}

    @property
    def plan(self) -> RolloutPlan:
        given = asdict(self)
        return RolloutPlan(**{each.name: given[each.name] for each in fields(RolloutPlan)})


class RolloutMove(Struct, kw_only=True):
    """A move of a rollout: when, at which event, from which step to which (0 is the baseline), why, and who decided. `low` and
    `high` bound the learner's excess over what is tolerated, per decision; null if nothing was known. `guard` is the part in which
    the learner was worse, if it was not the loss; then the bounds are those of the part."""

    time: float
    event: int
    judged: int
    origin: int
    target: int
    reason: Step
    by: Literal["evidence", "owner"]
    low: float | None = None
    high: float | None = None
    guard: str | None = None


class RolloutGuard(Struct, kw_only=True):
    """A guard since the present step began, in units of its part: the mean values of the arms, and how far the learner's mean is
    beyond the limit of the `rule`, which it keeps if both ends of `excess` are below 0. `learner_left_out` and `baseline_left_out` are
    decisions without a value, and `beyond` counts values beyond the range."""

    name: str
    rule: str
    state: Literal["holds", "does not hold", "not proven yet"]
    learner: float | None
    baseline: float | None
    excess: tuple[float, float] | None
    learner_left_out: int
    baseline_left_out: int
    beyond: int


class RolloutLook(Struct, kw_only=True):
    """What was known at a time: decisions with losses of each arm, the learner's share, and the bounds of its excess."""

    time: float
    learner: int
    baseline: int
    traffic: float
    low: float | None
    high: float | None


class _Rollout(Struct, kw_only=True):
    """A rollout: its settings, its state, and a sentence that says it in words.

    `excess` bounds the learner's mean loss minus what is tolerated in the present step; null if nothing is known yet.
    `judged` are the decisions behind it, and `in_flight` those of which the learner had a share that are not judged yet.
    `learner_decisions` and `baseline_decisions` have losses, and count from the start. `spent` is an upper bound of what the
    learner has cost beyond the tolerance, of the `budget`, both in units of the loss. If `limited`, the budget leaves less
    traffic than the step. `needed` is about how many more decisions the next step takes, null if it cannot be foreseen, and
    `not_before` the earliest time of it, if that is in the future. `unsent` are moves that the webhook has not received yet.
    `learner_left_out` and `baseline_left_out` are decisions whose losses did not come within patience, since the model was given. If
    the arms are proven to be left out at different rates, the evidence is `uneven`, and the learner does not move up. If the loop
    has `rewards`, losses are negative rewards. `guards` is what is known of the parts that `guard` has rules for.
    """

    loop: str
    rewards: bool
    started: float
    event: int
    status: Status
    sentence: str
    baseline: float | bool | str | dict[str, Any]
    least_seconds: float
    budget: float
    webhook: str | None
    unsent: int
    step: int
    traffic: float
    limited: bool
    judged: int
    in_flight: int
    learner_decisions: int
    baseline_decisions: int
    learner_left_out: int
    baseline_left_out: int
    uneven: bool
    excess: tuple[float, float] | None
    learner_loss: float | None
    baseline_loss: float | None
    spent: float
    needed: int | None
    not_before: float | None
    guards: list[RolloutGuard]
    moves: list[RolloutMove]
    looks: list[RolloutLook]


def _with_plan(name: str, base: type[Struct], *, asked: bool) -> type[Struct]:
    """A struct with the settings of `RolloutPlan` too; those that are asked for have defaults."""
    types = get_type_hints(RolloutPlan) | (BOUNDED if asked else {}) | RULES
    settings = [(each.name, types[each.name], *([each.default] if asked else [])) for each in fields(RolloutPlan)]
    options: Any = {"module": __name__, "kw_only": True, "omit_defaults": asked}
    return defstruct(name, settings, bases=(base,), namespace={"__doc__": base.__doc__}, **options)


if TYPE_CHECKING:

    class NewRollout(_NewRollout):
        """The settings of the plan are not known to type checkers."""

        def __init__(self, **settings: Any) -> None: ...

    class Rollout(_Rollout):
        """The settings of the plan are not known to type checkers."""

        steps: Any
else:
    NewRollout = _with_plan("NewRollout", _NewRollout, asked=True)
    Rollout = _with_plan("Rollout", _Rollout, asked=False)
