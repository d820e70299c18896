"""Knobs: the parts of an action that are set together, such as a price, a number of days and a template.

The core knows positions: a number in [0, 1] for a range, the middle of one of n equal cells for a step, and the number of a
category for a choice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.ranges import NARROWEST
from manul.errors import InputError, ParameterError
from manul.types import Floats, Within
from manul.utils.suggestions import remedy
from manul.utils.validation import check_number, check_range

MOST_KNOBS, MOST_OPTIONS, MOST_COLUMNS, MOST_STEPS = 16, 32, 64, 1_000_000
_ROUNDING = 1e-9  # of the number of steps: how far a value may be off
_SCALARS = str | int | float | np.generic
Option = str | int | float | bool
KnobValue = float | Option
KnobAction = Mapping[str, KnobValue]


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
        return float(min(max(self.low + position * self.volume, self.low), self.high))

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
        if abs(steps - round(steps)) > self._rounding:
            raise ParameterError(
                f"step must divide the range from {low:g} to {high:g}, got {step:g}, of which it has {steps:g}.", "step"
            )
        if self._rounding > 0.1:
            raise ParameterError(f"step must be above the precision of {high:g}, got {step:g}.", "step")

    @property
    def _rounding(self) -> float:
        """How far, in steps, a value may be off by rounding."""
        return _ROUNDING * self.count + 4 * math.ulp(max(abs(self.low), abs(self.high))) / self.step

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
        given = (options,) if isinstance(options, str) else tuple(options)
        if not 2 <= len(given) <= MOST_OPTIONS:
            raise ParameterError(f"Choice must have 2 to {MOST_OPTIONS} options, got {len(given)}.", "options")
        wrong = [option for option in given if not isinstance(option, str | int | float) or option != option]
        if wrong:
            raise ParameterError(f"options must be texts, numbers or truth values, got {wrong[0]!r}.", "options")
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


@dataclass(frozen=True)
class Knobs:
    """The knobs of an action, in order.

    >>> knobs = Knobs.check({"price": (10, 50), "template": Choice(["a", "b"])})
    >>> knobs.action(knobs.positions({"price": 20, "template": "b"}))
    {'price': 20.0, 'template': 'b'}
    """

    knobs: tuple[tuple[str, Knob], ...]

    @classmethod
    def check(cls, actions: Mapping[str, Any]) -> Knobs:
        """Check the `actions` of an agent: a mapping of names to (low, high), Stepped or Choice."""
        if not 1 <= len(actions) <= MOST_KNOBS:
            raise ParameterError(f"actions must have 1 to {MOST_KNOBS} knobs, got {len(actions)}.", "actions")
        knobs = cls(tuple((_check_name(name), _check_knob(name, knob)) for name, knob in actions.items()))
        columns = sum(knob.kind[1] if isinstance(knob, Choice) else 1 for _, knob in knobs.knobs)
        if columns > MOST_COLUMNS:
            raise ParameterError(
                f"actions must have at most {MOST_COLUMNS} knobs and options of choices together, got {columns}.",
                "actions",
            )
        return knobs

    @cached_property
    def names(self) -> list[str]:
        """The names of the knobs."""
        return [name for name, _ in self.knobs]

    @cached_property
    def volume(self) -> float:
        """The volume of the space of actions: the inverse of the uniform density."""
        return math.prod(knob.volume for _, knob in self.knobs)

    @property
    def kinds(self) -> list[tuple[_core.KnobKind, int]]:
        """The knobs as the core takes them."""
        return [knob.kind for _, knob in self.knobs]

    @property
    def actions(self) -> dict[str, Any]:
        """The knobs as a user writes them."""
        return {name: (knob.low, knob.high) if isinstance(knob, Span) else knob for name, knob in self.knobs}

    def positions(self, action: Any) -> Floats:
        """The positions of an action; raises InputError if a knob is missing, unknown, or cannot have its value."""
        if not isinstance(action, Mapping):
            raise InputError(
                f"action must be a mapping of {', '.join(self.names)} to values, got {action!r}.", "action"
            )
        self.check_names(action, "action")
        missing = [name for name in self.names if name not in action]
        if missing:
            raise InputError(f"action must set the knob {missing[0]!r} too.", missing[0])
        return np.array([knob.position(action[name], name) for name, knob in self.knobs])

    def action(self, positions: Iterable[float]) -> dict[str, KnobValue]:
        """The action at positions."""
        return {name: knob.value(place) for (name, knob), place in zip(self.knobs, positions, strict=True)}

    def columns(self, actions: Sequence[KnobAction]) -> dict[str, npt.NDArray[Any]]:
        """Many actions as columns by knob; options keep their types.

        >>> knobs = Knobs.check({"days": Stepped(1, 14, 1), "template": Choice(["a", 2])})
        >>> knobs.columns([{"days": 3, "template": 2}])
        {'days': array([3.]), 'template': array([2], dtype=object)}
        """
        kinds = {name: object if isinstance(knob, Choice) else np.float64 for name, knob in self.knobs}
        return {name: np.array([action[name] for action in actions], dtype=kind) for name, kind in kinds.items()}

    def ranges(self, within: Mapping[str, Any] | None) -> tuple[Floats, Floats]:
        """The lows and highs of the positions that a decision may use, as the core takes them."""
        if within is None:
            return self._whole_ranges
        if not isinstance(within, Mapping):
            raise InputError(f"within must be a mapping of knobs to ranges, got {within!r}.", "within")
        self.check_names(within, "within")
        return self._ends(within)

    @cached_property
    def _whole_ranges(self) -> tuple[Floats, Floats]:
        lows, highs = self._ends({})
        lows.flags.writeable = highs.flags.writeable = False
        return lows, highs

    def _ends(self, within: Mapping[str, Any]) -> tuple[Floats, Floats]:
        ends = np.array([knob.narrow(within.get(name), name) for name, knob in self.knobs])
        return np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])

    def densities(self, densities: Iterable[float]) -> dict[str, float]:
        """The densities of the knobs in the units of their values; probabilities for steps and options."""
        return {name: density / knob.unit for (name, knob), density in zip(self.knobs, densities, strict=True)}

    @cached_property
    def units(self) -> Floats:
        """What the density of each knob's position is divided by."""
        return np.array([knob.unit for _, knob in self.knobs])

    def describe(self) -> list[Any]:
        """The knobs in JSON values, in order; `from_description` is the inverse."""
        return [[name, knob.describe()] for name, knob in self.knobs]

    @classmethod
    def from_description(cls, description: Iterable[Any]) -> Knobs:
        """The knobs of a description.

        >>> Knobs.from_description(Knobs.check({"days": Stepped(1, 14, 1)}).describe()).names
        ['days']
        """
        pairs = [(name, knob_from_description(knob)) for name, knob in description]
        if len({name for name, _ in pairs}) < len(pairs):
            raise ParameterError("actions must have one knob per name.", "actions")
        return cls.check(dict(pairs))

    def check_names(self, given: Mapping[str, Any], what: str) -> None:
        """Raise InputError for the first name that is not a knob."""
        unknown = [name for name in given if name not in self.names]
        if unknown:
            advice = remedy(str(unknown[0]), self.names, f"The knobs are {', '.join(self.names)}.")
            raise InputError(f"{what} has an unknown knob {unknown[0]!r}. {advice}", what)


def check_one_knob(policy: object, purpose: str) -> None:
    """Reject a policy with several knobs where actions are single numbers.

    >>> check_one_knob("any policy", "evaluate")
    """
    knobs = getattr(policy, "knobs", None)
    if isinstance(knobs, Knobs):
        raise ParameterError(
            f"{purpose} takes policies with one knob, but this one sets {', '.join(knobs.names)}.", "policy"
        )


def knob_from_description(description: Any) -> Any:
    """The knob of a description, as a user writes it.

    >>> knob_from_description([10, 50]), knob_from_description({"options": ["a", "b"]})
    ((10, 50), Choice(options=('a', 'b')))
    """
    if isinstance(description, Mapping):
        return Choice(**description) if "options" in description else Stepped(**description)
    return tuple(description)


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ParameterError(f"names of knobs must be texts, got {name!r}.", "actions")
    return name


def _check_knob(name: str, knob: Any) -> Knob:
    if isinstance(knob, Stepped | Choice):
        return knob
    try:
        return Span(*check_range(name, knob))
    except ParameterError as error:
        raise ParameterError(f"{error} Or use Stepped or Choice.", "actions") from None


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
