"""The kinds of knobs: ranges of numbers, equal steps, and unordered options.

The core knows positions: a number in [0, 1] for a range, the middle of one of n equal cells for a step, and the number of a
category for a choice.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from manul import _core
from manul.actions.decision import Within
from manul.actions.ranges import NARROWEST
from manul.errors import InputError, ParameterError
from manul.utils.validation import check_number, check_range

MOST_OPTIONS, MOST_STEPS = 32, 1_000_000
_ROUNDING = 1e-9  # of the number of steps: how far a value may be off
_SCALARS = str | int | float | np.generic
Option = str | int | float | bool
KnobValue = float | Option


class Knob(Protocol):
    """One part of an action."""

    @property
    def kind(self) -> tuple[_core.KnobKind, int]:
        """The kind of the core, and the number of steps or options."""

    @property
    def volume(self) -> float:
        """The length of the range, or the number of steps or options."""

    @property
    def unit(self) -> float:
        """What the density of a position is divided by: the length of a range, 1 for probabilities."""

    def position(self, value: Any, name: str) -> float:
        """The position of a value; raises InputError if the knob does not have it."""

    def value(self, position: float) -> KnobValue:
        """The value at a position."""

    def narrow(self, within: Any, name: str) -> Within:
        """The range of positions, as the core takes it, that a decision may use; None is the whole range."""

    def describe(self) -> Any:
        """The knob in JSON values."""


@dataclass(frozen=True)
class Span:
    """A knob that can be set to any number in a range; users write (low, high).

    >>> Span(10.0, 50.0).position(20.0, "price")
    0.25
    """

    low: float
    high: float

    @property
    def kind(self) -> tuple[_core.KnobKind, int]:
        """A number."""
        return _core.KnobKind.number, 0

    @property
    def volume(self) -> float:
        """The length of the range."""
        return self.high - self.low

    unit = volume

    def position(self, value: Any, name: str) -> float:
        """The share of the range below the value."""
        number = _number(value, name)
        if not self.low <= number <= self.high:
            raise InputError(f"{name} must be in [{self.low:g}, {self.high:g}], got {number:g}.", name)
        return min(max((number - self.low) / self.volume, 0.0), 1.0)

    def value(self, position: float) -> float:
        """The number at a position."""
        inside = min(max(self.low + position * self.volume, self.low), self.high)
        return self.high if position >= 1 else float(inside)  # the length of a range may be rounded

    def narrow(self, within: Any, name: str) -> Within:
        """The positions of a narrower range."""
        if within is None:
            return 0.0, 1.0
        low, high = _pair(within, name)
        if not self.low <= low < high <= self.high or (high - low) / self.volume < NARROWEST:
            raise InputError(
                f"within of {name} must be a range inside [{self.low:g}, {self.high:g}], got ({low:g}, {high:g}).",
                "within",
            )
        return self.position(low, name), self.position(high, name)

    def describe(self) -> list[float]:
        """The ends."""
        return [self.low, self.high]


@dataclass(frozen=True)
class Stepped:
    """A knob with equal steps, such as a whole number: low, low + step, …, high.

    >>> days = Stepped(1, 14, 1)
    >>> days.count, days.value(days.position(3, "days"))
    (14, 3.0)
    """

    low: float
    high: float
    step: float

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
    def kind(self) -> tuple[_core.KnobKind, int]:
        """Steps."""
        return _core.KnobKind.steps, self.count

    @property
    def volume(self) -> float:
        """The number of steps."""
        return float(self.count)

    @property
    def unit(self) -> float:
        """Steps have probabilities."""
        return 1.0

    def position(self, value: Any, name: str) -> float:
        """The middle of the cell of a step."""
        number = _number(value, name)
        place = (min(max(number, self.low - self.step), self.high + self.step) - self.low) / self.step
        if not (0 <= round(place) < self.count and abs(place - round(place)) <= self._rounding):
            raise InputError(
                f"{name} must be one of {self.low:g}, {self.low + self.step:g}, …, {self.high:g}, got {number:g}.", name
            )
        return (round(place) + 0.5) / self.count

    def value(self, position: float) -> float:
        """The step whose cell has the position."""
        place = min(max(math.floor(position * self.count), 0), self.count - 1)
        return float(self.high if place == self.count - 1 else self.low + place * self.step)

    def narrow(self, within: Any, name: str) -> Within:
        """The cells of the steps in a narrower range, which must have at least one."""
        if within is None:
            return 0.0, 1.0
        low, high = _pair(within, name)
        first = math.ceil((min(max(low, self.low), self.high + self.step) - self.low) / self.step - self._rounding)
        last = math.floor((max(min(high, self.high), self.low - self.step) - self.low) / self.step + self._rounding)
        if first > last or first >= self.count or last < 0:
            raise InputError(f"within of {name} must contain one of its steps, got ({low:g}, {high:g}).", "within")
        return max(first, 0) / self.count, min(last + 1, self.count) / self.count

    def describe(self) -> dict[str, Any]:
        """The ends and the step."""
        return {"low": self.low, "high": self.high, "step": self.step}


@dataclass(frozen=True, init=False)
class Choice:
    """A knob with unordered options, such as templates.

    >>> Choice(["plain", "bold"]).position("bold", "template")
    1.0
    """

    options: tuple[Option, ...]

    def __init__(self, options: Iterable[Option]) -> None:
        if not isinstance(options, Iterable):
            raise ParameterError(f"options must be a list of options, got {options!r}.", "options")
        listed = (options,) if isinstance(options, str) else tuple(options)
        given = tuple(option.item() if isinstance(option, np.generic) else option for option in listed)
        if not 2 <= len(given) <= MOST_OPTIONS:
            raise ParameterError(f"Choice must have 2 to {MOST_OPTIONS} options, got {len(given)}.", "options")
        wrong = [option for option in given if not isinstance(option, str | int | float) or option != option]
        if wrong:
            raise ParameterError(f"options must be text, numbers, True or False, got {wrong[0]!r}.", "options")
        if len(set(given)) < len(given):
            raise ParameterError(f"options must be distinct, got {list(given)}.", "options")
        object.__setattr__(self, "options", given)

    @property
    def kind(self) -> tuple[_core.KnobKind, int]:
        """A choice."""
        return _core.KnobKind.choice, len(self.options)

    @property
    def volume(self) -> float:
        """The number of options."""
        return float(len(self.options))

    @property
    def unit(self) -> float:
        """Options have probabilities."""
        return 1.0

    def position(self, value: Any, name: str) -> float:
        """The number of an option."""
        for number, option in enumerate(self.options if isinstance(value, _SCALARS) else ()):
            same_kind = isinstance(option, bool) == isinstance(value, bool | np.bool_)  # True == 1 otherwise
            if same_kind and option == value:
                return float(number)
        raise InputError(f"{name} must be one of {', '.join(map(repr, self.options))}, got {value!r}.", name)

    def value(self, position: float) -> Option:
        """The option with a number."""
        return self.options[int(position)]

    def narrow(self, within: Any, name: str) -> Within:
        """The bits of the options that a decision may use."""
        if within is None:
            return float(2 ** len(self.options) - 1), 0.0
        if not isinstance(within, _SCALARS) and not isinstance(within, Iterable):
            raise InputError(f"within of {name} must be a list of its options, got {within!r}.", "within")
        allowed = [within] if isinstance(within, _SCALARS) else list(within)
        if not allowed:
            raise InputError(f"within of {name} must have at least one option, got none.", "within")
        return float(sum(2**place for place in {int(self.position(option, name)) for option in allowed})), 0.0

    def describe(self) -> dict[str, Any]:
        """The options."""
        return {"options": list(self.options)}


def knob_from_description(description: Any) -> Any:
    """The knob of a description, as a user writes it.

    >>> knob_from_description([10, 50]), knob_from_description({"options": ["a", "b"]})
    ((10, 50), Choice(options=('a', 'b')))
    """
    if isinstance(description, Mapping):
        return Choice(**description) if "options" in description else Stepped(**description)
    return tuple(description)


def check_knob(name: str, knob: Any) -> Knob:
    """Check one of the `actions` of an agent.

    >>> check_knob("price", (10, 50))
    Span(low=10.0, high=50.0)
    """
    if isinstance(knob, Stepped | Choice):
        return knob
    try:
        return Span(*check_range(name, knob))
    except ParameterError as error:
        raise ParameterError(f"{error} Or use Stepped or Choice.", "actions") from None


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


def _number(value: Any, name: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {value!r}.", name) from None
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise InputError(f"{name} must be a finite number, got {number}.", name)
    return number


def _pair(within: Any, name: str) -> Within:
    try:
        low, high = within
    except (TypeError, ValueError):
        raise InputError(f"within of {name} must be (low, high), got {within!r}.", "within") from None
    return _number(low, name), _number(high, name)
