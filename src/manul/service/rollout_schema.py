"""Requests and responses about rollouts."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from manul.service.wire import Request

Status = Literal["waiting", "paused", "done", "rolled back", "aborted"]
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


class NewRollout(Request, kw_only=True, omit_defaults=True):
    """Lets the loop's learner take over from a baseline by evidence.

    `baseline` is a constant action (of several knobs an object), "caller" (each request for a decision then has the `action` that
    the caller would choose), or `{"policy": ...}` with the bytes of the `.manul` file of a saved policy or agent, in Base64. The
    learner's loss may be at most (1 + `tolerance`) times that of the baseline, or its reward at least (1 - `tolerance`) times.
    `steps` are its shares of the traffic, one after the other, each for at least `least_decisions` with losses and
    `least_seconds`; the baseline keeps the share `holdout`. `budget` is the start-up budget of the guarantee, in widths of the
    range of losses. After `patience` further decisions, or `patience_seconds` if that is given, a missing loss is not waited for.
    `outcome_range` is the range of the losses or rewards that are compared: by default that of the loop, and required if that is
    "auto". Those beyond it count as its ends. A rollout that was aborted or rolled back starts again only with `restart`.
    """

    baseline: float | bool | str | dict[str, Any]
    tolerance: float = 0.05
    confidence: float = 0.95
    steps: tuple[float, ...] = (0.05, 0.25, 1.0)
    holdout: float = 0.02
    least_decisions: Annotated[int, Meta(le=1_000_000_000)] = 200
    least_seconds: Annotated[float, Meta(ge=0, le=1e9)] = 0.0
    budget: float = 100.0
    patience: Annotated[int, Meta(le=1_000_000)] = 10_000
    patience_seconds: Annotated[float, Meta(gt=0, le=1e9)] | None = None
    outcome_range: tuple[float, float] | None = None
    webhook: Webhook | None = None
    restart: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.baseline, dict) and isinstance(policy := self.baseline.get("policy"), bytes):
            self.baseline = {
                "policy": base64.b64encode(policy).decode()
            }  # snapshots of earlier versions have the bytes


class RolloutMove(Struct, kw_only=True):
    """A move of a rollout: when, at which event, from which step to which (0 is the baseline), why, and who decided. `low` and
    `high` bound the learner's excess over what is tolerated, per decision; null if nothing was known."""

    time: float
    event: int
    judged: int
    origin: int
    target: int
    reason: Step
    by: Literal["evidence", "owner"]
    low: float | None = None
    high: float | None = None


class RolloutLook(Struct, kw_only=True):
    """What was known at a time: decisions with losses of each arm, the learner's share, and the bounds of its excess."""

    time: float
    learner: int
    baseline: int
    traffic: float
    low: float | None
    high: float | None


class Rollout(Struct, kw_only=True):
    """A rollout: its settings, its state, and a sentence that says it in words.

    `excess` bounds the learner's mean loss minus what is tolerated in the present step; null if nothing is known yet.
    `judged` are the decisions behind it, and `in_flight` those of which the learner had a share that are not judged yet.
    `learner_decisions` and `baseline_decisions` have losses, and count from the start. `spent` is an upper bound of what the
    learner has cost beyond the tolerance, of the `budget`, both in units of the loss. If `limited`, the budget leaves less
    traffic than the step. `needed` is about how many more decisions the next step takes, null if it cannot be foreseen, and
    `not_before` the earliest time of it, if that is in the future. `unsent` are moves that the webhook has not received yet.
    `learner_left_out` and `baseline_left_out` are decisions whose losses did not come within patience, since the model was given. If
    the arms are proven to be left out at different rates, the evidence is `uneven`, and the learner does not move up. If the loop
    has `rewards`, losses are negative rewards.
    """

    loop: str
    rewards: bool
    started: float
    event: int
    status: Status
    sentence: str
    baseline: float | bool | str | dict[str, Any]
    tolerance: float
    confidence: float
    steps: list[float]
    holdout: float
    least_decisions: int
    least_seconds: float
    budget: float
    patience: int
    patience_seconds: float | None
    outcome_range: tuple[float, float] | None
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
    moves: list[RolloutMove]
    looks: list[RolloutLook]
