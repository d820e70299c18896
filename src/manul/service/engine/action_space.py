"""The actions of a loop, one number or several knobs: what requests may contain, and decisions as the agent learns from them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from manul.actions.decision import Decision, Decisions, KnobsDecision, KnobsDecisions, Within
from manul.actions.knobs import Choice, Knob, Knobs, KnobValue, Span, Stepped
from manul.errors import ManulError, ParameterError
from manul.logs.knob_views import volumes
from manul.service import wire
from manul.service.errors import Invalid
from manul.service.loop_settings import NewLoop, agent_settings
from manul.service.store.blocks import DecisionRow
from manul.utils.validation import AS_DECIDED, USABLE, Floats, are_within, check_range, reject, usable_densities


class ActionSpace(Protocol):
    @property
    def actions(self) -> Any:
        """The actions as agents take them."""

    @property
    def knobs(self) -> Sequence[tuple[str, Knob]]:
        """The names and knobs."""

    def check_within(self, within: Any) -> None:
        """Refuse a narrower range that these actions do not have."""

    def check_action(self, action: Any, within: Any) -> Any:
        """The action as it is stored; refuses one that these actions, or the narrower range, do not have."""

    def volume(self, within: Any) -> float:
        """The volume of a narrower range: the inverse of the uniform density."""

    def decision(self, stored: DecisionRow) -> Any:
        """A stored decision; an action of unknown density counts as if it had been drawn uniformly."""

    def decisions(self, stored: Sequence[DecisionRow]) -> Any:
        """Stored decisions as columns."""


class OneNumber:
    """Actions that are numbers.

    >>> OneNumber((10.0, 50.0)).volume((12.0, 20.0))
    8.0
    """

    def __init__(self, actions: Within) -> None:
        self.actions = actions
        self.knobs: Sequence[tuple[str, Knob]] = (("action", Span(*actions)),)

    def check_within(self, within: Any) -> None:
        """Refuse ranges by knob; the agent checks the range itself."""
        if isinstance(within, dict):
            raise Invalid(f"within must be [low, high], because this loop has one knob, got {within}.", "within")

    def check_action(self, action: Any, within: Any) -> float:
        """Refuse values by knob, and actions outside the range."""
        if isinstance(action, dict):
            raise Invalid(f"action must be a number, because this loop has one knob, got {action}.", "action")
        low, high = within or self.actions
        values = np.array([action])
        reject(
            ~are_within(values, np.array(low), np.array(high)), values, "action", f"in [{low:g}, {high:g}]", AS_DECIDED
        )
        return float(action)

    def volume(self, within: Any) -> float:
        low, high = within or self.actions
        return float(high - low)

    def decision(self, stored: DecisionRow) -> Decision:
        density = 1.0 / self.volume(stored.within) if stored.density is None else stored.density
        return Decision(stored.action, density, stored.within)

    def decisions(self, stored: Sequence[DecisionRow]) -> Decisions:
        rows = [self.decision(each) for each in stored]
        actions, densities = (np.array([each[place] for each in rows]) for place in (0, 1))
        if not any(each.within for each in rows):
            return Decisions(actions, densities)
        ends = np.array([each.within or self.actions for each in rows], np.float64)
        return Decisions(actions, densities, ends[:, 0], ends[:, 1])


class SeveralKnobs:
    """Actions that set several knobs.

    >>> space = SeveralKnobs(Knobs.check({"price": (10, 50), "template": Choice(["a", "b"])}))
    >>> space.volume(None), space.volume({"price": [10, 20], "template": ["b"]})
    (80.0, 10.0)
    """

    def __init__(self, knobs: Knobs) -> None:
        self._knobs, self.actions = knobs, knobs.actions
        self.knobs: Sequence[tuple[str, Knob]] = knobs.knobs

    @property
    def described(self) -> Knobs:
        return self._knobs

    def check_within(self, within: Any) -> None:
        """Refuse unknown knobs, and ranges that leave nothing."""
        self._ends(within)

    def check_action(self, action: Any, within: Any) -> dict[str, KnobValue]:
        """The action in the order of the knobs, with numbers on their grids; refuses values that a knob does not have."""
        try:
            self._check_numbers(action, "action")
            positions = self._knobs.positions(action)
        except ManulError as error:
            raise Invalid(str(error), "action") from None
        for (name, knob), place, low, high in zip(self.knobs, positions, *self._ends(within), strict=True):
            allowed = int(low) >> int(place) & 1 if isinstance(knob, Choice) else low <= place <= high
            if not allowed:
                raise Invalid(f"{name} must be in {within[name]}, got {action[name]}. {AS_DECIDED}", "action")
        return {
            name: float(action[name]) if isinstance(knob, Span) else knob.value(place)
            for (name, knob), place in zip(self.knobs, positions, strict=True)
        }

    def volume(self, within: Any) -> float:
        """The product of the lengths of ranges and the numbers of steps and options."""
        return math.prod(float(each[0]) for each in volumes(self._knobs, [within], 1).values())

    def decision(self, stored: DecisionRow) -> KnobsDecision:
        density = 1.0 / self.volume(stored.within) if stored.density is None else stored.density
        return KnobsDecision(stored.action, density, stored.densities or {}, stored.within)

    def decisions(self, stored: Sequence[DecisionRow]) -> KnobsDecisions:
        rows = [self.decision(each) for each in stored]
        actions = self._knobs.columns([each.action for each in rows])
        return KnobsDecisions(actions, np.array([each.density for each in rows]), {})

    def _ends(self, within: Any) -> tuple[Floats, Floats]:
        try:
            for name, ends in within.items() if isinstance(within, dict) else ():
                for end in ends:
                    self._check_numbers({name: end}, "within")
            return self._knobs.ranges(within)
        except ManulError as error:
            raise Invalid(str(error), "within") from None

    def _check_numbers(self, values: Any, field: str) -> None:
        """Refuse texts and truth values of numeric knobs, which Python would convert."""
        known = dict(self.knobs)
        for name, value in values.items() if isinstance(values, Mapping) else ():
            if isinstance(value, str | bool) and isinstance(known.get(name), Span | Stepped):
                raise Invalid(f"{name} must be a number, got {value!r}.", field)


def action_space(settings: NewLoop) -> ActionSpace:
    """The actions of a loop.

    >>> action_space(NewLoop(name="offers", actions={"days": wire.Knob(low=1, high=14, step=1)})).actions
    {'days': Stepped(low=1.0, high=14.0, step=1.0)}
    """
    try:
        if not isinstance(settings.actions, dict):
            return OneNumber(check_range("actions", settings.actions))
        knobs = Knobs.check({name: _knob(name, knob) for name, knob in settings.actions.items()})
        return SeveralKnobs(knobs.with_limits(agent_settings(settings).get("limits")))
    except ManulError as error:
        raise Invalid(str(error), "agent" if error.field == "limits" else "actions") from None


def _knob(name: str, knob: Any) -> Any:
    """A knob as a user of Python writes it."""
    if not isinstance(knob, wire.Knob):
        return check_range(name, knob)
    steps = {"low": knob.low, "high": knob.high, "step": knob.step}
    if (knob.options is None) == all(value is None for value in steps.values()):
        raise ParameterError(f"{name} must have low, high and step, or options.", "actions")
    if knob.options is not None:
        return Choice(knob.options)
    missing = [each for each, value in steps.items() if value is None]
    if missing:
        raise ParameterError(f"{name} must have a {missing[0]} too.", "actions")
    return Stepped(**steps)  # type: ignore[arg-type]


def check_density(density: float | None, densities: Mapping[str, float] | None, space: ActionSpace) -> float | None:
    """The density of an observed action, which the densities of all its knobs may replace."""
    if densities is not None:
        names = [name for name, _ in space.knobs]
        if not isinstance(space, SeveralKnobs):
            raise Invalid("densities must not be given to a loop with one knob; give its density.", "densities")
        if sorted(densities) != sorted(names):
            raise Invalid(
                f"densities must have a number for each of {', '.join(names)}, got {dict(densities)}.", "densities"
            )
        for name, knob in space.knobs:
            if not isinstance(knob, Span) and densities[name] > 1 + 1e-9:
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
