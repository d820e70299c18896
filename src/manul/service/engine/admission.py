"""What a loop and a context must be before anything is kept of them."""

from __future__ import annotations

from typing import Any

from manul.actions.ranges import checked_range
from manul.errors import ManulError
from manul.service.configuration import Limits
from manul.service.engine import models
from manul.service.engine.loop import Loop
from manul.service.errors import Invalid
from manul.service.loop_settings import NewLoop


def check_settings(settings: NewLoop) -> None:
    """Refuses settings of a loop that cannot work together."""
    for name in ("actions", "losses"):
        try:
            low, high = checked_range(name, getattr(settings, name))
        except ManulError as error:
            raise Invalid(str(error), name) from None
    if settings.default_loss is not None and not low <= settings.default_loss <= high:
        raise Invalid(
            f"default_loss must be in [{low:g}, {high:g}], the losses; got {settings.default_loss:g}. Choose one inside.",
            "default_loss",
        )
    if (settings.wait is None) != (settings.default_loss is None):
        raise Invalid("wait and default_loss must come together; got one of them. Add the other.", "wait")
    if settings.combine != "first" and settings.wait is None:
        raise Invalid(
            f"wait must be given with combine={settings.combine!r}, as losses combine at its end; got none. Add it.",
            "wait",
        )


def check_context(loop: Loop, context: Any, limits: Limits, field: str = "context") -> None:
    """Refuses a context with too many features, and a first one for which the agent would take too much memory."""
    if count_features(context, limits.features) > limits.features:
        raise Invalid(
            f"context must have at most {limits.features} features, got more. Send fewer, or raise --max-features.",
            field,
        )
    if not loop.begun:
        needed = models.estimated_bytes(loop.settings, len(context) if isinstance(context, list) else None)
        if needed > limits.loop_bytes:
            raise Invalid(
                f"context of {len(context)} features would take {needed >> 20} MiB of memory, more than the "
                f"{limits.loop_bytes >> 20} MiB of --max-loop-bytes. Send fewer features, or use fewer leaves.",
                field,
            )


def count_features(context: Any, enough: int) -> int:
    """How many numbers, texts and truth values a context holds; counting stops beyond `enough`.

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
