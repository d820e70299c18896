"""Checks of new loops and contexts before anything is stored."""

from __future__ import annotations

import math
from typing import Any

from manul.actions.decision import Within
from manul.errors import ManulError
from manul.service.configuration import Limits
from manul.service.engine import models
from manul.service.engine.loop import Loop
from manul.service.engine.loop_space import LoopSpace
from manul.service.errors import Invalid
from manul.service.loop_settings import NewLoop
from manul.utils.rewards import check_any_range, numeric_range


def check_settings(settings: NewLoop) -> None:
    """Refuse settings of a loop that contradict each other."""
    outcomes = "losses" if settings.rewards is None else "rewards"
    LoopSpace.of(settings)
    try:
        span = numeric_range(check_any_range(outcomes, getattr(settings, outcomes), kind=None))
    except ManulError as error:
        raise Invalid(str(error), error.field) from None
    default = "default_loss" if settings.rewards is None else "default_reward"
    _check_default(default, getattr(settings, default), outcomes, span)
    if (settings.wait is None) != (settings.default_loss is None):
        given, absent = ("wait", default) if settings.default_loss is None else (default, "wait")
        raise Invalid(f"{given} is set, but {absent} is not. Set both or neither.", absent)
    if settings.combine != "first" and settings.wait is None:
        raise Invalid(
            f"combine={settings.combine!r} needs a wait, because losses are combined when it ends.",
            "wait",
        )


def _check_default(name: str, value: float | None, outcomes: str, span: Within) -> None:
    low, high = span
    if value is not None and not (low <= value <= high and math.isfinite(value)):
        rule = "finite" if math.isinf(low) else f"in the range of {outcomes}, [{low:g}, {high:g}]"
        raise Invalid(f"{name} must be {rule}, got {value:g}.", name)


def check_context(loop: Loop, context: Any, limits: Limits, field: str = "context") -> None:
    """Refuse a context with too many features, or a first context for which the agent would need too much memory."""
    if count_features(context, limits.features) > limits.features:
        raise Invalid(
            f"context has more than {limits.features} features. Send fewer, or raise --max-features.",
            field,
        )
    if not loop.has_shape:
        needed = models.estimated_bytes(loop.settings, len(context) if isinstance(context, list) else None)
        if needed > limits.loop_bytes:
            raise Invalid(
                f"An agent for contexts of {len(context)} features needs {needed >> 20} MiB of memory, more than the limit "
                f"of {limits.loop_bytes >> 20} MiB (--max-loop-bytes). Send fewer features, or use fewer leaves.",
                field,
            )


def count_features(context: Any, enough: int) -> int:
    """Count the numbers, texts and booleans of a context; counting stops beyond `enough`.

    >>> count_features({"sky": "grey", "rooms": [{"warm": True}, 2.5]}, 4096)
    3
    """
    if isinstance(context, list):
        return len(context)
    count, rest = 0, [context]
    while rest and count <= enough:
        value = rest.pop()
        if isinstance(value, dict):
            rest.extend(value.values())
        elif isinstance(value, list):
            rest.extend(value)
        else:
            count += 1
    return count
