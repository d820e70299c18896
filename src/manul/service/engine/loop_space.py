"""The actions of a loop: what requests may contain, and stored decisions as the agent learns from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from manul.actions.decision import Decision, Decisions
from manul.actions.kinds import knob_from_description
from manul.actions.kinds.knob import NARROWEST, Knob
from manul.actions.limits import check_limits, what_is_left
from manul.actions.space import ActionSpace
from manul.errors import ManulError, ParameterError
from manul.service.errors import Invalid
from manul.service.loop_settings import NewLoop, agent_settings
from manul.service.store.blocks import DecisionRow
from manul.utils.validation import AS_DECIDED, USABLE, Floats, reject, usable_densities


class LoopSpace(ActionSpace[Any]):
    """The space of a loop's actions, with the checks of requests.

    >>> LoopSpace.of(NewLoop(name="tests", actions=(1, 14))).actions
    (1.0, 14.0)
    """

    @classmethod
    def of(cls, settings: NewLoop) -> LoopSpace:
        """The space of a loop with these settings."""
        try:
            return cls(_space(settings.actions), agent_settings(settings).get("limits"))
        except ManulError as error:
            raise Invalid(str(error), "agent" if error.field == "limits" else "actions") from None

    @property
    def titled(self) -> Sequence[tuple[str, Knob[Any]]]:
        """The knobs with names for people."""
        return [(title, knob) for title, (_, knob) in zip(self.titles, self.knobs, strict=True)]

    def check_within(self, within: Any) -> Any:
        """A narrower range as it is stored; refuses one that these actions do not have. The agent checks that of one number."""
        if within is None:
            return None
        if isinstance(within, dict) and not self.is_named:
            kind = "a list of options" if self.knobs[0][1].is_option else "[low, high]"
            raise Invalid(f"within must be {kind}, because this loop has one knob, got {within}.", "within")
        if not self.is_number:
            self._box(within)
            return within if self.is_named else self.stated(within)
        if len(within) != 2 or any(isinstance(end, str | bool) for end in within):
            raise Invalid(f"within must be two numbers, [low, high], got {within}.", "within")
        return float(within[0]), float(within[1])

    def check_action(self, action: Any, within: Any, context: Any) -> Any:
        """The action as it is stored, with numbers on their grids; refuses one that the narrower range does not have, or
        that breaks the limits."""
        if isinstance(action, dict) and not self.is_named:
            kind = "one option" if self.knobs[0][1].is_option else "a number"
            raise Invalid(f"action must be {kind}, because this loop has one knob, got {action}.", "action")
        try:
            values = self.wrap(action)
            for name, value in values.items():
                self._check_number(name, value, "action")
            positions = self.positions(action)
        except ManulError as error:
            raise Invalid(str(error), "action") from None
        ranges = {} if within is None else self.wrap_within(within)
        for (name, knob), place, low, high in zip(self.knobs, positions, *self._box(within), strict=True):
            if not knob.contains(low, high, place):
                stated = knob.stated(ranges[name], name)
                ends = f"[{stated[0]:g}, {stated[1]:g}]" if self.is_number else list(stated)
                raise Invalid(f"{name or 'action'} must be in {ends}, got {values[name]}. {AS_DECIDED}", "action")
        stored = {
            name: knob.value(place) if knob.is_discrete else float(values[name])
            for (name, knob), place in zip(self.knobs, positions, strict=True)
        }
        check_limits(self, self.unwrap(stored), within, context)
        return self.unwrap(stored)

    def decision(self, stored: DecisionRow) -> Decision:
        """A stored decision; an action of unknown density counts as if it had been drawn uniformly from what was allowed."""
        return Decision(stored.action, self._density(stored), stored.within, None, stored.densities)

    def _lengths(self, stored: DecisionRow) -> list[float]:
        """What the narrower range and the limits left of each knob: 1 / (its density if its positions were uniform)."""
        if self.limited is not None:
            columns = self.unwrap(self.columns_of([stored.action]))
            context = stored.context if isinstance(stored.context, dict) else None
            lengths = what_is_left(self, columns, [stored.within], [context]).lengths
            return [max(float(lengths[name][0]), NARROWEST * knob.volume) for name, knob in self.knobs]
        values, ranges = self.wrap(stored.action), zip(*self.ranges(stored.within), strict=True)
        return [
            (ends[1] - ends[0]) * float(knob.units(np.array([values[name]]))[0]) if knob.is_bent else knob.size(ends)
            for (name, knob), ends in zip(self.knobs, ranges, strict=True)
        ]

    def decisions(self, stored: Sequence[DecisionRow]) -> Decisions:
        """Stored decisions as columns."""
        given, known = [each.action for each in stored], [each.density for each in stored]
        densities = np.array(known if None not in known else [self._density(each) for each in stored], np.float64)
        if not self.is_number:
            return Decisions(self.unwrap(self.columns_of(given)), densities)
        actions = self.knobs[0][1].as_column(given, "action")
        if not any(each.within for each in stored):
            return Decisions(actions, densities)
        lows, highs = np.array([each.within or self.ends for each in stored], np.float64).T
        return Decisions(actions, densities, lows, highs)

    def _density(self, stored: DecisionRow) -> float:
        return 1.0 / math.prod(self._lengths(stored)) if stored.density is None else stored.density

    def check_density(self, density: float | None, densities: Mapping[str, float] | None) -> float | None:
        """The density of an observed action, which the densities of all its knobs may replace."""
        if densities is not None:
            if not self.is_named:
                raise Invalid("densities must not be given to a loop with one knob; give its density.", "densities")
            if sorted(densities) != sorted(self.names):
                raise Invalid(
                    f"densities must have a number for each of {', '.join(self.names)}, got {dict(densities)}.",
                    "densities",
                )
            for name, knob in self.knobs:
                if knob.is_discrete and densities[name] > 1 + 1e-9:
                    raise Invalid(
                        f"density of {name} must be a probability, at most 1, got {densities[name]:g}.", "densities"
                    )
            product = math.prod(densities.values())
            if density is not None and not math.isclose(density, product, rel_tol=1e-6):
                raise Invalid(f"density must be the product of the densities, {product:g}, got {density:g}.", "density")
            density = product if density is None else density
        values = np.array([1.0 if density is None else density])
        reject(~usable_densities(values), values, "density", USABLE, AS_DECIDED)
        return density

    def _box(self, within: Any) -> tuple[Floats, Floats]:
        try:
            for name, ends in ({} if within is None else self.wrap_within(within)).items():
                for end in ends:
                    self._check_number(name, end, "within")
            return self.ranges(within)
        except ManulError as error:
            raise Invalid(str(error), "within") from None

    def _check_number(self, name: str, value: Any, field: str) -> None:
        """Refuse texts and truth values of numeric knobs, which Python would convert."""
        if isinstance(value, str | bool) and not dict(self.knobs)[name].is_option:
            raise Invalid(f"{name or field} must be a number, got {value!r}.", field)


def _space(actions: Any) -> ActionSpace[Any]:
    """The space of settings, in which a mapping has knobs by name."""
    if not isinstance(actions, dict):
        return ActionSpace.from_description(msgspec.to_builtins(actions))
    for name, knob in actions.items():
        if not isinstance(knob, tuple | msgspec.Struct):
            rule = "two numbers, [low, high], or an object with steps or options"
            raise ParameterError(f"{name} must be {rule}, got {knob!r:.80}. See /openapi.json.", "actions")
    return ActionSpace({name: knob_from_description(name, msgspec.to_builtins(knob)) for name, knob in actions.items()})
