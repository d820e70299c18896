"""The event that a reported loss becomes, and the outcome of a decision whose wait has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from manul.service.errors import Conflict
from manul.service.loop_settings import NewLoop
from manul.service.schema import Combination
from manul.service.store import OUTCOMES, Event, Kind

LossStatus = Literal["recorded", "waiting", "repeated", "late"]


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
                f"A loss of {outcome.loss:g} was already reported for this decision, got {loss:g}. "
                "To report several losses, create the loop with combine='last', 'sum' or 'mean'.",
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
            f"A loss of {same.loss:g} was already reported with this key, got {loss:g}. Use another key.", field
        )
    return "repeated", None


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
    low, high = settings.losses
    if settings.combine == "last":
        return parts[-1]
    total = sum(parts)
    return min(max(total if settings.combine == "sum" else total / len(parts), low), high)
