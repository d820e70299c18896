"""The event that a reported loss becomes, and the one that its decision gets when its wait ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from manul.outcomes import Combination, Outcome, mature
from manul.service.errors import Conflict, Invalid
from manul.service.store import OUTCOMES, Event, Kind
from manul.service.wire import NewLoss, NewObservation

LossStatus = Literal["recorded", "waiting", "repeated", "late"]


class ReportedLoss(NamedTuple):
    """A loss, which may be a negative reward, of the decision with an id."""

    id: str
    loss: float
    key: str | None


def stated_loss(outcome: Outcome, given: NewLoss | NewObservation, place: str = "") -> float:
    """The loss that a caller states as a loss or as a reward, whichever the loop has; `place` precedes fields of errors.

    >>> stated_loss(Outcome.of(rewards=(0, 100)), NewLoss(reward=40))
    -40.0
    """
    name, value, surplus = "loss", given.loss, given.reward
    if outcome.higher:
        name, value, surplus = "reward", given.reward, given.loss
    if surplus is not None:
        other = "loss" if outcome.higher else "reward"
        raise Invalid(
            f"{other} must not be reported to a loop with {outcome.keywords}; report its {name}.", place + other
        )
    if value is None:
        raise Invalid(f"{name} is missing; the loop has {outcome.keywords}.", place + name)
    if not outcome.contains(value):
        rule = outcome.rule if outcome.range == "auto" else f"{outcome.rule}, the loop's range"
        raise Invalid(f"{name} must be {rule}, got {value:g}.", place + name)
    return outcome.to_loss(float(value))


def classify(
    before: Sequence[Event], loss: float, key: str | None, outcome: Outcome, *, matured: bool, field: str = "loss"
) -> tuple[LossStatus, Kind | None]:
    """The answer to a loss, and the kind of event to store, if any; `matured` if the wait of its decision is over.

    >>> classify([], 0.25, None, Outcome(), matured=False)
    ('recorded', 'loss')
    >>> from manul.outcomes import Wait
    >>> late = Outcome(wait=Wait(60, default=1))
    >>> classify([], 0.25, None, late, matured=False), classify([], 0.25, None, late, matured=True)
    (('waiting', 'part'), ('late', 'late'))
    """
    combine = "first" if outcome.wait is None else outcome.wait.combine
    counted = _counted(before, key, combine)
    if counted is not None:
        if counted.loss != loss:
            raise _conflict(outcome, counted.loss, loss, combine, field)
        return "repeated", None
    if outcome.wait is None:
        return "recorded", "loss"
    if matured or any(event.kind in OUTCOMES for event in before):
        known = any(event.loss == loss and event.key == key for event in before if event.kind in ("late", "part"))
        return "late", None if known else "late"
    # Also the first loss, which is final: if only zeros waited for the end, the model would learn sales before it learns zeros.
    return "waiting", "part"


def _counted(before: Sequence[Event], key: str | None, combine: Combination) -> Event | None:
    """The earlier report that a loss repeats or contradicts."""
    reported = [event for event in before if event.kind in ("loss", "part")]
    if combine == "first":
        return reported[0] if reported else None
    return next((event for event in reported if key is not None and event.key == key), None)


def _conflict(outcome: Outcome, before: float, now: float, combine: Combination, field: str) -> Conflict:
    reported, got = (f"{outcome.from_loss(loss):g}" for loss in (before, now))
    if combine == "first":
        remedy = "To report several, create the loop with combine='last', 'sum' or 'mean'."
        message = f"was already reported for this decision, got {got}. {remedy}"
    else:
        message = f"was already reported with this key, got {got}. Use another key."
    return Conflict(f"A {outcome.keyword} of {reported} {message}", field)


def settle(before: Sequence[Event], outcome: Outcome, decided: float, now: float) -> tuple[Kind, float] | None:
    """The event of a decision whose wait has ended, or None if it has an outcome already, which earlier versions stored as
    soon as the first loss came.

    >>> from manul.outcomes import Wait
    >>> settle([], Outcome(wait=Wait(60, default=1)), decided=0, now=61)
    ('default', 1.0)
    """
    if any(event.kind in OUTCOMES for event in before):
        return None
    matured = mature([event.loss for event in before if event.kind == "part"], outcome, decided, now)
    return None if matured is None else ("combined" if matured.reported else "default", matured.loss)
