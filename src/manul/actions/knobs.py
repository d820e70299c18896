"""Knobs: the parts of an action that are set together, such as a price, a number of days and a template."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.knob_kinds import Choice, Knob, KnobValue, Option, Span, Stepped, check_knob, knob_from_description
from manul.actions.limits import DeclaredLimits, Limit
from manul.errors import InputError, ParameterError
from manul.utils.suggestions import remedy
from manul.utils.validation import Floats

__all__ = ["Choice", "Knob", "KnobAction", "KnobValue", "Knobs", "Option", "Span", "Stepped", "check_one_knob"]

MOST_KNOBS, MOST_COLUMNS = 16, 64
# Windows of 16 knobs change the uniform density up to 1e48 times, and densities must be usable, in [1e-100, 1e100].
LEAST_VOLUME, LARGEST_VOLUME = 1e-50, 1e50
KnobAction = Mapping[str, KnobValue]


@dataclass(frozen=True)
class Knobs:
    """The knobs of an action, in order, and the limits between them. Equal knobs may have other limits.

    >>> knobs = Knobs.check({"price": (10, 50), "template": Choice(["a", "b"])})
    >>> knobs.action(knobs.positions({"price": 20, "template": "b"}))
    {'price': 20.0, 'template': 'b'}
    """

    knobs: tuple[tuple[str, Knob], ...]
    limits: tuple[Limit, ...] = field(default=(), compare=False)

    def with_limits(self, limits: Iterable[str | Limit] | None) -> Knobs:
        """The same knobs with other limits.

        >>> knobs = Knobs.check({"price": (10, 50), "discount": (0, 0.5)})
        >>> knobs.with_limits(["discount <= 1 - 9 / price"]).limits[0].most
        '1 - 9 / price'
        """
        return replace(self, limits=DeclaredLimits(self.knobs, limits or ()).limits)

    @cached_property
    def limited(self) -> DeclaredLimits | None:
        """The limits as the core takes them."""
        return DeclaredLimits(self.knobs, self.limits) if self.limits else None

    @classmethod
    def check(cls, actions: Mapping[str, Any]) -> Knobs:
        """Check the `actions` of an agent: a mapping of names to (low, high), Stepped or Choice."""
        if not 1 <= len(actions) <= MOST_KNOBS:
            raise ParameterError(f"actions must have 1 to {MOST_KNOBS} knobs, got {len(actions)}.", "actions")
        knobs = cls(tuple((_check_name(name), check_knob(name, knob)) for name, knob in actions.items()))
        columns = sum(knob.kind[1] if isinstance(knob, Choice) else 1 for _, knob in knobs.knobs)
        if columns > MOST_COLUMNS:
            raise ParameterError(
                f"actions must have at most {MOST_COLUMNS} knobs and options of choices together, got {columns}.",
                "actions",
            )
        if not LEAST_VOLUME <= knobs.volume <= LARGEST_VOLUME:
            raise ParameterError(
                f"The product of the lengths of all ranges must be in [{LEAST_VOLUME:g}, {LARGEST_VOLUME:g}], "
                f"got {knobs.volume:g}. Use other units, such as thousands.",
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


def _check_name(name: Any) -> str:
    if not isinstance(name, str) or not name:
        raise ParameterError(f"names of knobs must be text and not empty, got {name!r}.", "actions")
    return name
