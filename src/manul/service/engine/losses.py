"""The event that a reported loss becomes, and the outcome of a decision whose wait has ended."""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Literal, NamedTuple

from manul.service.errors import Conflict, Invalid
from manul.service.loop_settings import NewLoop
from manul.service.schema import Combination, NewLoss, NewObservation
from manul.service.store import OUTCOMES, Event, Kind
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
    before: Sequence[Event], loss: float, key: str | None, combine: Combination, field: str = "loss"
) -> tuple[LossStatus, Kind | None]:
    """The answer to a loss, and the kind of event to store, if any.

    >>> classify([], 0.25, None, "first")
    ('recorded', 'loss')
    >>> classify([Event(1, 7, "default", 1.0, 0.0)], 0.25, None, "first")
    ('late', 'late')
    """
    outcome = next((event for event in before if event.kind in OUTCOMES), None)
    if outcome is None:
        return ("recorded", "loss") if combine == "first" else _part(before, loss, key, field)
    if outcome.kind == "loss":
        if outcome.loss != loss:
            raise Conflict(
                f"{_as_reported(field, outcome.loss)} was already reported for this decision, got {_value(field, loss):g}. "
                "To report several, create the loop with combine='last', 'sum' or 'mean'.",
                field,
            )
        return "repeated", None
    known = any(event.loss == loss and event.key == key for event in before if event.kind in ("late", "part"))
    return "late", None if known else "late"


def _part(before: Sequence[Event], loss: float, key: str | None, field: str) -> tuple[LossStatus, Kind | None]:
    same = next((event for event in before if key is not None and event.key == key), None)
    if same is None:
        return "waiting", "part"
    if same.loss != loss:
        raise Conflict(
            f"{_as_reported(field, same.loss)} was already reported with this key, got {_value(field, loss):g}. "
            "Use another key.",
            field,
        )
    return "repeated", None


def _value(field: str, loss: float) -> float:
    return negate(loss) if field.endswith("reward") else loss


def _as_reported(field: str, loss: float) -> str:
    return f"A {'reward' if field.endswith('reward') else 'loss'} of {_value(field, loss):g}"


def settle(before: Sequence[Event], settings: NewLoop) -> tuple[Kind, float] | None:
    """The outcome at the end of a decision's wait: the combined losses or the default, or None if it has one already.

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
    if settings.combine == "last":
        return parts[-1]
    total = sum(parts)
    return min(max(total if settings.combine == "sum" else total / len(parts), low), high)
