"""Limits between knobs: a user's function narrows the range of a knob by the values of those that are set before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from manul.actions.decision import Within
from manul.actions.kinds.choice import Choice
from manul.actions.kinds.knob import KnobValue
from manul.actions.kinds.span import Span
from manul.actions.ranges import NARROWEST
from manul.actions.space import ActionSpace
from manul.errors import InputError
from manul.utils.validation import Floats

Limits = Callable[[dict[str, KnobValue]], Mapping[str, Any]]
Narrow = Callable[[int, Sequence[float]], Within]
"""The range of the knob with a number, given the positions of those before it, as the core calls it."""


@dataclass(frozen=True)
class KnobLimits:
    """The limits of an agent with several knobs, in the order in which the core draws them: choices first.

    >>> knobs = ActionSpace({"price": (10, 50), "discount": (0, 0.5)})
    >>> limits = KnobLimits(knobs, lambda chosen: {"discount": (0, 0.25)} if "price" in chosen else {})
    >>> limits.within(*knobs.ranges(None))(1, [0.5, 0.0])
    (0.0, 0.5)
    """

    knobs: ActionSpace
    function: Limits

    @cached_property
    def order(self) -> list[int]:
        return sorted(range(len(self.knobs.knobs)), key=lambda at: not isinstance(self.knobs.knobs[at][1], Choice))

    def within(self, lows: Floats, highs: Floats) -> Narrow:
        """The limits inside the ranges of one decision."""

        def narrow(index: int, positions: Sequence[float]) -> Within:
            before = self.order[: self.order.index(index)]
            chosen = {self.knobs.knobs[each][0]: self.knobs.knobs[each][1].value(positions[each]) for each in before}
            name, knob = self.knobs.knobs[index]
            ranges = self.function(chosen)
            if not isinstance(ranges, Mapping):
                raise InputError(f"limits must return a mapping of knobs to ranges, got {ranges!r}.", "limits")
            self.knobs.check_names(ranges, "limits")
            return _intersect(knob, name, ranges.get(name), float(lows[index]), float(highs[index]))

        return narrow

    def move_inside(self, positions: list[float], narrow: Narrow) -> list[float]:
        """Positions moved into the limits, knob by knob."""
        for index in self.order:
            low, high = narrow(index, positions)
            if not isinstance(self.knobs.knobs[index][1], Choice):
                positions[index] = min(max(positions[index], low), math.nextafter(high, 0.0))
            elif not int(low) >> int(positions[index]) & 1:
                positions[index] = float((int(low) & -int(low)).bit_length() - 1)
        return positions


def _intersect(knob: Any, name: str, limit: Any, low: float, high: float) -> Within:
    if limit is None:
        return low, high
    if isinstance(knob, Choice):
        allowed = int(knob.narrow(limit, name)[0]) & int(low)
        if not allowed:
            raise InputError(f"limits leave no option of {name}, got {limit!r}.", "limits")
        return float(allowed), 0.0
    try:
        bottom, top = limit
        clipped = (max(float(bottom), knob.low), min(float(top), knob.high))
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"limits of {name} must be (low, high), got {limit!r:.60}.", "limits") from None
    if not clipped[0] <= clipped[1]:
        raise InputError(f"limits leave no value of {name}, got {limit!r}.", "limits")
    if isinstance(knob, Span):
        narrowed = ((clipped[0] - knob.low) / knob.volume, (clipped[1] - knob.low) / knob.volume)
    else:
        narrowed = knob.narrow(clipped, name)
    narrowed = max(narrowed[0], low), min(narrowed[1], high)
    if not narrowed[1] - narrowed[0] >= NARROWEST:
        raise InputError(f"limits leave no value of {name}, got {limit!r}.", "limits")
    return narrowed
