"""The event that a reported loss becomes, and the outcome of a decision whose wait has ended."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Literal, NamedTuple

from manul.service.errors import Conflict, Invalid
from manul.service.loop_settings import NewLoop
from manul.service.store import OUTCOMES, Event, Kind
from manul.service.wire import Combination, NewLoss, NewObservation
from manul.utils.rewards import negate, numeric_range

LARGEST = sys.float_info.max  # a sum of losses without a range may be infinite
LossStatus = Literal["recorded", "waiting", "repeated", "late"]


class ReportedLoss(NamedTuple):
    """A loss, which may be a negative reward, of the decision with an id."""

    id: str
    loss: float
    key: str | None


def stated_loss(settings: NewLoop, given: NewLoss | NewObservation, place: str = "") -> float:
    """The loss that a caller states as a loss or as a reward, whichever the loop has; `place` precedes fields of errors.

    >>> stated_loss(NewLoop(name="prices", actions=(1, 9), rewards=(0, 100)), NewLoss(reward=40))
    -40.0
    """
    names = ("loss", "losses", "reward") if settings.rewards is None else ("reward", "rewards", "loss")
    name, plural, other = names
    value = getattr(given, name)
    if getattr(given, other) is not None:
        raise Invalid(f"{other} must not be reported to a loop with {plural}; report its {name}.", place + other)
    if value is None:
        raise Invalid(f"{name} is missing; the loop has {plural}.", place + name)
    low, high = settings.loss_range if settings.rewards is None else numeric_range(settings.rewards)
    if not (low <= value <= high and math.isfinite(value)):
        rule = "finite" if math.isinf(low) else f"in [{low:g}, {high:g}], the loop's range"
        raise Invalid(f"{name} must be {rule}, got {value:g}.", place + name)
    return float(value) if settings.rewards is None else negate(value)


def classify(
    before: Sequence[Event], loss: float, key: str | None, settings: NewLoop, *, matured: bool, field: str = "loss"
) -> tuple[LossStatus, Kind | None]:
    """The answer to a loss, and the kind of event to store, if any; `matured` if the wait of its decision is over.

    >>> classify([], 0.25, None, NewLoop(name="heating", actions=(20, 70)), matured=False)
    ('recorded', 'loss')
    >>> waits = NewLoop(name="heating", actions=(20, 70), wait=60, default_loss=1.0)
    >>> classify([], 0.25, None, waits, matured=False), classify([], 0.25, None, waits, matured=True)
    (('waiting', 'part'), ('late', 'late'))
    """
    counted = _counted(before, key, settings.combine)
    if counted is not None:
        if counted.loss != loss:
            raise _conflict(counted.loss, loss, settings.combine, field)
        return "repeated", None
    if settings.wait is None:
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


def _conflict(before: float, now: float, combine: Combination, field: str) -> Conflict:
    reported, got = _as_reported(field, before), f"{_value(field, now):g}"
    if combine == "first":
        remedy = "To report several, create the loop with combine='last', 'sum' or 'mean'."
        return Conflict(f"{reported} was already reported for this decision, got {got}. {remedy}", field)
    return Conflict(f"{reported} was already reported with this key, got {got}. Use another key.", field)


def _value(field: str, loss: float) -> float:
    return negate(loss) if field.endswith("reward") else loss


def _as_reported(field: str, loss: float) -> str:
    return f"A {'reward' if field.endswith('reward') else 'loss'} of {_value(field, loss):g}"


def settle(before: Sequence[Event], settings: NewLoop) -> tuple[Kind, float] | None:
    """The outcome at the end of a decision's wait: the combined losses or the default, or None if it has one already, which
    earlier versions stored as soon as the first loss came.

    >>> settle([], NewLoop(name="heating", actions=(20, 70), wait=60, default_loss=1.0))
    ('default', 1.0)
    """
    if any(event.kind in OUTCOMES for event in before):
        return None
    parts = [event.loss for event in before if event.kind == "part"]
    if not parts:
        assert settings.default_loss is not None
        return "default", settings.default_loss
    return "combined", combine(parts, settings)


def combine(parts: Sequence[float], settings: NewLoop) -> float:
    """Combine several losses into one; a sum is clipped to the range of losses.

    >>> combine([0.5, 0.75], NewLoop(name="heating", actions=(20, 70), combine="sum"))
    1.0
    """
    low, high = (max(min(end, LARGEST), -LARGEST) for end in settings.loss_range)
    if settings.combine in ("first", "last"):
        return parts[0 if settings.combine == "first" else -1]
    total = sum(parts)
    return min(max(total if settings.combine == "sum" else total / len(parts), low), high)
