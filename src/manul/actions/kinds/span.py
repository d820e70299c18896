"""A knob that can be set to any number in a range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.distribution import Distribution, Scaled
from manul.actions.kinds.knob import (
    NARROWEST,
    SPREAD,
    KnobRange,
    Levels,
    Number,
    as_number,
    as_pair,
    mix_levels,
    register_knob,
)
from manul.errors import InputError
from manul.utils.validation import Flags, Floats, are_within, check_range


@register_knob("span")
@dataclass(frozen=True)
class Span(Number):
    """A knob that can be set to any number from `low` to `high`; users write (low, high).

    A subclass may bend the scale: it defines `share`, `number`, `is_bent` and `units`.

    >>> Span(10.0, 50.0).position(20.0, "price")
    0.25
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        for name, end in zip(("low", "high"), check_range("Span", (self.low, self.high)), strict=True):
            object.__setattr__(self, name, end)

    @property
    def core(self) -> tuple[_core.KnobKind, int]:
        return _core.KnobKind.number, 0

    @property
    def scale_in_core(self) -> tuple[float, float, float, list[float]] | None:
        return None if self.is_bent else (self.low, self.high, 0.0, [])

    @property
    def volume(self) -> float:
        return self.high - self.low

    @property
    def largest_unit(self) -> float:
        return self.volume

    @property
    def rule(self) -> str:
        return f"in [{self.low:g}, {self.high:g}]"

    @classmethod
    def keys(cls) -> list[str]:
        return [] if cls is Span else super().keys()  # a plain range is [low, high] in JSON

    def describe(self) -> Any:
        return [self.low, self.high]

    def written(self) -> Any:
        return (self.low, self.high)

    def share(self, values: Any) -> Any:
        """The share of the range below `values`."""
        return (values - self.low) / self.volume

    def number(self, shares: Any) -> Any:
        """The number above these `shares` of the range."""
        return self.low + shares * self.volume

    def position(self, value: Any, name: str) -> float:
        number = as_number(value, name)
        if not self.low <= number <= self.high:
            raise InputError(f"{name} must be {self.rule}, got {number:g}.", name)
        return min(max(float(self.share(number)), 0.0), 1.0)

    def positions(self, values: Any, name: str) -> Floats:
        column = np.asarray(values)
        if column.dtype != np.float64:
            return super().positions(values, name)
        outside = column[~((column >= self.low) & (column <= self.high))]
        if len(outside):
            self.position(outside[0], name)
        places: Floats = np.clip(self.share(column), 0.0, 1.0)
        return places

    def value(self, position: float) -> float:
        inside = min(max(self.number(position), self.low), self.high)
        return self.high if position >= 1 else float(inside)  # the length of a range may be rounded

    def column(self, positions: Floats) -> npt.NDArray[Any]:
        return np.where(positions >= 1, self.high, np.clip(self.number(positions), self.low, self.high))

    def are_values(self, values: npt.NDArray[Any]) -> Flags:
        return are_within(values, self.low, self.high)

    def narrow(self, within: Any, name: str) -> KnobRange:
        if within is None:
            return 0.0, 1.0
        low, high = as_pair(within, name)
        if not self.low <= low < high <= self.high or (high - low) / self.volume < NARROWEST:
            raise InputError(
                f"within of {name} must be a range inside [{self.low:g}, {self.high:g}], got ({low:g}, {high:g}).",
                "within",
            )
        return self.position(low, name), self.position(high, name)

    def size(self, within: KnobRange) -> float:
        return self.value(within[1]) - self.value(within[0]) if self.is_bent else super().size(within)

    def nearest(self, value: float, within: Any, name: str) -> float:  # noqa: ARG002
        return value if within is None else min(max(value, float(within[0])), float(within[1]))

    def spread(self, value: float, within: Any) -> Distribution | Scaled:
        """1/1024 of the range around a `value`, inside the narrower range, `within`.

        >>> Span(0.0, 1.0).spread(1.0, None).edges.tolist()
        [0.9990234375, 1.0]
        """
        if self.is_bent:
            low, high = _part(self.position(value, "value"), self.narrow(within, "value"), 1.0)
            return self.marginal([(low, high, 1.0)])
        ends = (self.low, self.high) if within is None else within
        return Distribution.uniform(*_part(value, ends, self.volume))

    def marginal(self, levels: Levels) -> Distribution | Scaled:
        mixed = mix_levels(levels)
        if self.is_bent:
            return Scaled(mixed, self.share, self.number, self.units)
        return Distribution(self.low + mixed.edges * self.volume, mixed.densities / self.volume)


def _part(place: float, ends: KnobRange, length: float) -> KnobRange:
    """The ends of a part around a place, inside of `ends`."""
    width = min(length / SPREAD, ends[1] - ends[0])
    low = min(max(place - width / 2, ends[0]), ends[1] - width)
    return min(low, place), max(low + width, place)  # rounding must not leave the place out
