"""A knob with equal steps, such as a whole number."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manul import _core
from manul.actions.distribution import Atoms
from manul.actions.kinds.knob import CELLS, KnobRange, Levels, Number, as_number, as_pair, mix_levels, register_knob
from manul.errors import InputError, ParameterError
from manul.utils.validation import Floats, check_number, check_range

MOST_STEPS = 1_000_000
_ROUNDING = 1e-9  # of the number of steps: how far a value may be off


@register_knob("steps")
@dataclass(frozen=True)
class Stepped(Number):
    """A knob with equal steps, such as a whole number: from `low` to `high` by `step`.

    >>> days = Stepped(1, 14, 1)
    >>> days.count, days.value(days.position(3, "days"))
    (14, 3.0)
    """

    low: float
    high: float
    step: float
    is_discrete = True

    def __post_init__(self) -> None:
        low, high = check_range("Stepped", (self.low, self.high))
        step = float(check_number("step", self.step, 0, math.inf, "Try 1.", ends="()"))
        for name, number in (("low", low), ("high", high), ("step", step)):
            object.__setattr__(self, name, number)
        steps = (high - low) / step
        if steps >= MOST_STEPS:
            raise ParameterError(f"step must leave at most {MOST_STEPS:,} steps, got {step:g}.", "step")
        if not _divides(low, high, step):
            last = _written(low + math.floor(steps) * step, lambda end: _divides(low, end, step))
            whole = _written(high - low, lambda length: _divides(low, high, length))
            advice = f"Try {last} as high." if steps > 1 else f"Try {whole}."
            raise ParameterError(
                f"step must divide the range from {low:g} to {high:g} evenly, got {step:g}. {advice}", "step"
            )
        if self._rounding > 0.1:
            raise ParameterError(f"step must be above the precision of {high:g}, got {step:g}.", "step")

    @property
    def _rounding(self) -> float:
        """How far, in steps, a value may be off by rounding."""
        return _tolerance(self.low, self.high, self.step)

    @cached_property
    def count(self) -> int:
        """The number of steps."""
        return round((self.high - self.low) / self.step) + 1

    @property
    def core(self) -> tuple[_core.KnobKind, int]:
        return _core.KnobKind.steps, self.count

    @property
    def scale_in_core(self) -> tuple[float, float, float, list[float]]:
        return self.low, self.high, self.step, []

    @property
    def volume(self) -> float:
        return float(self.count)

    @property
    def rule(self) -> str:
        return f"one of {self.low:g}, {self.low + self.step:g}, …, {self.high:g}"

    def position(self, value: Any, name: str) -> float:
        number = as_number(value, name)
        place = (min(max(number, self.low - self.step), self.high + self.step) - self.low) / self.step
        if not (0 <= round(place) < self.count and abs(place - round(place)) <= self._rounding):
            raise InputError(f"{name} must be {self.rule}, got {number:g}.", name)
        return (round(place) + 0.5) / self.count

    def value(self, position: float) -> float:
        place = min(max(math.floor(position * self.count), 0), self.count - 1)
        return float(self.high if place == self.count - 1 else self.low + place * self.step)

    def narrow(self, within: Any, name: str) -> KnobRange:
        if within is None:
            return 0.0, 1.0
        low, high = as_pair(within, name)
        first = math.ceil((min(max(low, self.low), self.high + self.step) - self.low) / self.step - self._rounding)
        last = math.floor((max(min(high, self.high), self.low - self.step) - self.low) / self.step + self._rounding)
        if first > last or first >= self.count or last < 0:
            raise InputError(f"within of {name} must contain one of its steps, got ({low:g}, {high:g}).", "within")
        return max(first, 0) / self.count, min(last + 1, self.count) / self.count

    def nearest(self, value: float, within: Any, name: str) -> float:
        low, high = self.narrow(within, name)
        half = 0.5 / self.count
        return self.value(min(max(self.position(value, name), low + half), high - half))

    def spread(self, value: float, within: Any) -> Atoms:  # noqa: ARG002
        return Atoms(np.array([value]), np.ones(1), self.step)

    def describe(self) -> dict[str, Any]:
        return {"low": self.low, "high": self.high, "step": self.step}

    def marginal(self, levels: Levels) -> Atoms:
        masses = mix_levels(levels).mean_densities(np.linspace(0.0, 1.0, self.count + 1)) / self.count
        return Atoms(self.column(self._middle(np.arange(self.count))), masses, self.step)

    def _middle(self, steps: Any) -> Floats:
        middle: Floats = (steps + 0.5) / self.count
        return middle

    @property
    def cell_count(self) -> int:
        return min(CELLS, self.count)

    def cell_volumes(self) -> Floats:
        counts = np.bincount(self.cells(self._middle(np.arange(self.count))), minlength=self.cell_count)
        return counts.astype(np.float64)

    def cell_densities(self, marginal: Any) -> Floats:
        places = self.cells(self.positions(marginal.positions, "action"))
        return np.bincount(places, marginal.masses, self.cell_count).astype(np.float64, copy=False)

    def sweep(self, most: int) -> list[float]:
        steps = np.unique(np.linspace(0, self.count - 1, min(most, self.count)).round())
        return [self.value(place) for place in self._middle(steps).tolist()]


def _tolerance(low: float, high: float, step: float) -> float:
    """How far, in steps, a value may be off by rounding."""
    return _ROUNDING * (round((high - low) / step) + 1) + 4 * math.ulp(max(abs(low), abs(high))) / step


def _divides(low: float, high: float, step: float) -> bool:
    steps = (high - low) / step
    return round(steps) >= 1 and abs(steps - round(steps)) <= _tolerance(low, high, step)


def _written(number: float, fits: Callable[[float], bool]) -> str:
    """A number with few digits if it still fits, and with all of them otherwise."""
    few = f"{number:.12g}"
    return few if fits(float(few)) else repr(number)
