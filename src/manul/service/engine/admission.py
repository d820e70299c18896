"""Checks of new loops and contexts before anything is stored."""

from __future__ import annotations

from typing import Any

from manul.errors import ManulError
from manul.service.configuration import Limits
from manul.service.engine import models
from manul.service.engine.loop import Loop
from manul.service.engine.loop_space import LoopSpace
from manul.service.errors import Invalid
from manul.service.loop_settings import NewLoop


def check_settings(settings: NewLoop) -> None:
    """Refuse settings of a loop that contradict each other."""
    LoopSpace.of(settings)
    try:
        outcome = settings.learned
    except ManulError as error:
        raise Invalid(str(error), error.field) from None
    default = f"default_{outcome.keyword}"
    value = settings.default_reward if outcome.higher else settings.default_loss
    if value is not None and not outcome.contains(value):
        rule = "finite" if outcome.range == "auto" else f"in the range of {outcome.keywords}, {outcome.rule[3:]}"
        raise Invalid(f"{default} must be {rule}, got {value:g}.", default)
    if (settings.wait is None) != (settings.default_loss is None):
        given, absent = ("wait", default) if settings.default_loss is None else (default, "wait")
        raise Invalid(f"{given} is set, but {absent} is not. Set both or neither.", absent)
    if settings.combine != "first" and settings.wait is None:
        raise Invalid(
            f"combine={settings.combine!r} needs a wait, because losses are combined when it ends.",
            "wait",
        )


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
