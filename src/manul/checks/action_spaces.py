"""What the checks need to know of the actions of an agent: one number, or several knobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Decision, Decisions, KnobsDecision, KnobsDecisions, Within
from manul.actions.distribution import Atoms, Distribution
from manul.actions.knobs import Choice, Knob, Knobs, Stepped
from manul.actions.knobs_distribution import KnobsDistribution
from manul.actions.limits import DeclaredLimits
from manul.logs.knob_views import what_is_left

Floats = npt.NDArray[np.float64]
_POINTS = 200  # actions at which a density with several knobs is checked


class ActionSpace(Protocol):
    @property
    def within(self) -> Any:
        """A narrower range."""

    def is_too_wide(self, bandwidth: float) -> bool:
        """Whether windows of this bandwidth do not fit in the narrower range."""

    def check_density(self, distribution: Any, within: Any = None) -> None:
        """Check that a distribution integrates to 1, is positive on its support, and 0 outside the narrower range."""

    def check_inverse_densities(self, decisions: Any) -> None:
        """Check that the mean of 1/density over own draws is the volume, within five standard errors."""

    def contains(self, within: Any, action: Any) -> bool:
        """Whether an action lies in the narrower range."""

    def shares(self, decisions: Any) -> Floats:
        """A loss in [0, 1] of each decision."""

    def rows(self, decisions: Any) -> list[Any]:
        """The actions and densities of many decisions, row by row."""

    def twice(self, decision: Any) -> Any:
        """Two decisions like this one."""

    def bad_actions(self, decision: Any) -> list[Any]:
        """Actions that the agent cannot have drawn."""

    def bad_ranges(self) -> list[Any]:
        """Narrower ranges that it must reject."""


def space_of(agent: Any) -> ActionSpace:
    """The actions of an agent.

    >>> import manul
    >>> space_of(manul.Auto(actions={"price": (10, 50), "template": manul.Choice(["a", "b"])})).within
    {'price': (14.0, 50.0), 'template': ['b']}
    """
    knobs = getattr(agent, "knobs", None)
    return OneKnob(agent.actions) if knobs is None else SeveralKnobs(knobs)


class OneKnob:
    def __init__(self, actions: Within) -> None:
        self.low, self.high = actions

    @property
    def within(self) -> Within:
        return self.low + 0.1 * (self.high - self.low), self.high

    def is_too_wide(self, bandwidth: float) -> bool:
        """Whether two bandwidths do not fit in the narrower range."""
        return bandwidth > 0.45 * (self.high - self.low)

    def check_density(self, distribution: Distribution | Atoms, within: Within | None = None) -> None:
        """Check a distribution; the support is the whole range, or the set of actions of a discrete agent."""
        assert abs(distribution.integral() - 1) < 1e-9, "a distribution must integrate to 1"
        low, high = (self.low, self.high) if within is None else within
        support = distribution.positions if isinstance(distribution, Atoms) else np.linspace(low, high, 1001)
        assert (distribution.density_many(support) > 0).all(), "a density must be positive on the whole support"
        assert low <= support[0] <= support[-1] <= high, "a support must lie in its range"
        outside = [np.nextafter(low, -np.inf), np.nextafter(high, np.inf)]
        assert within is None or not distribution.density_many(outside).any(), "a density must be 0 outside its range"

    def check_inverse_densities(self, decisions: Decisions) -> None:
        """Check the mean against the length of the range."""
        _check_mean(1 / decisions.densities, self.high - self.low, "density")

    def contains(self, within: Within, action: float) -> bool:
        return within[0] <= action <= within[1]

    def shares(self, decisions: Decisions) -> Floats:
        """The distance from a point at 30 % of the range."""
        distances: Floats = np.abs((decisions.actions - self.low) / (self.high - self.low) - 0.3)
        return distances

    def rows(self, decisions: Decisions) -> list[Any]:
        """The action and the density of each row."""
        return list(zip(decisions.actions.tolist(), decisions.densities.tolist(), strict=True))

    def twice(self, decision: Decision) -> Decisions:
        return Decisions(np.full(2, decision.action), np.full(2, decision.density))

    def bad_actions(self, _decision: Decision) -> list[float]:
        return [self.high + 1]

    def bad_ranges(self) -> list[Within]:
        return [(self.low - 1, self.high)]


class SeveralKnobs:
    def __init__(self, knobs: Knobs) -> None:
        self.knobs = knobs

    @property
    def within(self) -> dict[str, Any]:
        """Each knob without its lowest tenth, its first step or its first option."""
        return {name: _upper_part(knob) for name, knob in self.knobs.knobs}

    def is_too_wide(self, _bandwidth: float) -> bool:
        return False

    def check_density(self, distribution: KnobsDistribution, within: dict[str, Any] | None = None) -> None:
        """Check the joint distribution and that of each knob."""
        parts = [distribution, *map(distribution.marginal, self.knobs.names)]
        assert all(abs(part.integral() - 1) < 1e-9 for part in parts), "a distribution must integrate to 1"
        actions = list(self._actions(within))
        assert all(distribution.density(action) > 0 for action in actions), "a density must be positive on its support"
        if within is None:
            return
        for name, knob in self.knobs.knobs:
            outside = distribution.density({**actions[0], name: knob.value(0.0)}) * self.knobs.volume
            assert outside < 1e-9, "a density must be 0 outside its range, up to the rounding of cells"

    def check_inverse_densities(self, decisions: KnobsDecisions) -> None:
        """Check the mean of each knob, whose tails are lighter than that of the product, and that the product is joint."""
        left = what_is_left(self.knobs, decisions.actions)
        assert left.inside.all(), "an action must be inside the limits"
        for name in self.knobs.names:
            _check_mean(1 / (decisions.densities_by_knob[name] * left.lengths[name]), 1.0, f"density of {name}")
        product = np.prod(list(decisions.densities_by_knob.values()), axis=0)
        same = np.allclose(decisions.densities, product, rtol=1e-9, atol=0)
        assert same, "the joint density must be the product of the densities of the knobs"

    def contains(self, within: dict[str, Any], action: dict[str, Any]) -> bool:
        """Whether each knob lies in its narrower range."""
        return all(
            action[name] in allowed if isinstance(allowed, list) else allowed[0] <= action[name] <= allowed[1]
            for name, allowed in within.items()
        )

    def shares(self, decisions: KnobsDecisions) -> Floats:
        """The mean distance of the knobs' positions from 30 % of their ranges; options are spread over the range."""
        distances = [abs(self._shares(action) - 0.3).mean() for action in self._rows(decisions.actions)]
        return np.array(distances)

    def rows(self, decisions: KnobsDecisions) -> list[Any]:
        """The action and the joint density of each row."""
        return list(zip(self._rows(decisions.actions), decisions.densities.tolist(), strict=True))

    def twice(self, decision: KnobsDecision) -> KnobsDecisions:
        by_knob = {name: np.full(2, density) for name, density in decision.densities.items()}
        return KnobsDecisions(self.knobs.columns([decision.action] * 2), np.full(2, decision.density), by_knob)

    def bad_actions(self, decision: KnobsDecision) -> list[Any]:
        """No mapping, an unknown knob, and for each knob, none and one that it does not have."""
        actions: list[Any] = [0.5, {**decision.action, "no such knob": 1}]
        for name, knob in self.knobs.knobs:
            beyond = object() if isinstance(knob, Choice) else knob.value(1.0) + knob.volume + 1.0  # type: ignore[operator]
            actions.append({each: value for each, value in decision.action.items() if each != name})
            actions.append({**decision.action, name: beyond})
        return actions

    def bad_ranges(self) -> list[Any]:
        """No mapping, an unknown knob, and for each knob, a range that leaves nothing."""
        empty = {name: [] if isinstance(knob, Choice) else (1e308, 1e308) for name, knob in self.knobs.knobs}
        return [(0.0, 1.0), {"no such knob": (0.0, 1.0)}, *({name: nothing} for name, nothing in empty.items())]

    def _actions(self, within: dict[str, Any] | None) -> Iterator[dict[str, Any]]:
        """Actions inside the ranges and the limits."""
        shares = np.random.default_rng(0).random((_POINTS, len(self.knobs.knobs)))
        lows, highs = (np.tile(ends, (_POINTS, 1)) for ends in self.knobs.ranges(within))
        limits = self.knobs.limited or DeclaredLimits(self.knobs.knobs, ())
        limits.core.place(lows, highs, shares)
        yield from map(self.knobs.action, shares)

    def _rows(self, columns: dict[str, npt.NDArray[Any]]) -> list[dict[str, Any]]:
        lists = [column.tolist() for column in columns.values()]
        return [dict(zip(columns, values, strict=True)) for values in zip(*lists, strict=True)]

    def _shares(self, action: dict[str, Any]) -> Floats:
        sizes = [knob.volume if isinstance(knob, Choice) else 1.0 for _, knob in self.knobs.knobs]
        shares: Floats = self.knobs.positions(action) / np.array(sizes)
        return shares


def _upper_part(knob: Knob) -> Any:
    if isinstance(knob, Choice):
        return list(knob.options[1:])
    high: Any = knob.value(1.0)
    if isinstance(knob, Stepped):
        return knob.value(1.5 / knob.count), high
    return knob.value(0.1), high


def _check_mean(values: Floats, expected: float, what: str) -> None:
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - expected) <= 5 * error + 1e-9 * expected, (
        f"mean of 1/{what} must be {expected}, got {values.mean()}"
    )
