"""What the checks need to know of the actions of an agent: one number, or several knobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Decision, Decisions, Within
from manul.actions.distribution import Atoms, Distribution
from manul.actions.joint import JointDistribution
from manul.actions.kinds.knob import Knob
from manul.actions.limits import what_is_left
from manul.actions.space import UNNAMED, ActionSpace

Floats = npt.NDArray[np.float64]
_POINTS = 50  # actions at which a density with several knobs is checked, in each of some contexts


class CheckedSpace(Protocol):
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


def space_of(agent: Any) -> CheckedSpace:
    """The actions of an agent.

    >>> import manul
    >>> space_of(manul.Auto(actions={"price": (10, 50), "template": manul.Choice(["a", "b"])})).within
    {'price': (14.0, 50.0), 'template': ['b']}
    """
    space: ActionSpace[Any] = agent.space
    return OneKnob(space.ends) if space.is_number else AnySpace(space)


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


class AnySpace:
    def __init__(self, space: ActionSpace[Any]) -> None:
        self.space = space

    @property
    def within(self) -> Any:
        """Each knob without its lowest tenth, its first step or its first option."""
        return self.space.unwrap({name: _upper_part(knob) for name, knob in self.space.knobs})

    def is_too_wide(self, _bandwidth: float) -> bool:
        return False

    def check_density(self, distribution: JointDistribution, within: Any = None) -> None:
        """Check the joint distribution and that of each knob; with limits, these are shares of draws."""
        names = [] if self.space.limits else self.space.names
        parts = [distribution, *map(distribution.marginal, names)]
        assert all(abs(part.integral() - 1) < 1e-9 for part in parts), "a distribution must integrate to 1"
        actions = list(self._actions(within))
        assert all(distribution.density(action) > 0 for action in actions), "a density must be positive on its support"
        if within is None:
            return
        inside = self.space.wrap(actions[0])
        for name, knob in self.space.knobs:
            action = self.space.unwrap({**inside, name: knob.value(0.0)})
            outside = distribution.density(action) * self.space.volume
            assert outside < 1e-9, "a density must be 0 outside its range, up to the rounding of cells"

    def check_inverse_densities(self, decisions: Decisions) -> None:
        """Check the mean of each knob, whose tails are lighter than that of the product, and that the product is joint."""
        by_knob = decisions.densities_by_knob
        left = what_is_left(self.space, decisions.actions)
        assert left.inside.all(), "an action must be inside the limits"
        if by_knob is None:
            _check_mean(1 / (decisions.densities * np.prod([*left.lengths.values()], axis=0)), 1.0, "density")
            return
        for name in self.space.names:
            _check_mean(1 / (by_knob[name] * left.lengths[name]), 1.0, f"density of {name}")
        product = np.prod(list(by_knob.values()), axis=0)
        same = np.allclose(decisions.densities, product, rtol=1e-9, atol=0)
        assert same, "the joint density must be the product of the densities of the knobs"

    def contains(self, within: Any, action: Any) -> bool:
        """Whether each knob lies in its narrower range."""
        return all(self.space.contains(within, self.space.positions(action)))

    def shares(self, decisions: Decisions) -> Floats:
        """The mean distance of the knobs' positions from 30 % of their ranges; options are spread over the range."""
        sizes = [knob.volume if knob.is_option else 1.0 for _, knob in self.space.knobs]
        table = self.space.rows(decisions.actions, len(decisions))
        distances: Floats = np.abs(table / np.array(sizes) - 0.3).mean(axis=1)
        return distances

    def rows(self, decisions: Decisions) -> list[Any]:
        """The action and the joint density of each row."""
        return [(decision.action, decision.density) for decision in decisions]

    def twice(self, decision: Decision) -> Decisions:
        columns = self.space.unwrap(self.space.columns_of([decision.action] * 2))
        return Decisions(columns, np.full(2, decision.density))

    def bad_actions(self, decision: Decision) -> list[Any]:
        """No mapping, an unknown knob, and for each knob, none and one that it does not have."""
        values = dict(self.space.wrap(decision.action))
        if not self.space.is_named:
            return [_beyond(self.space.knobs[0][1]), {"no such knob": 1}]
        actions: list[Any] = [0.5, {**values, "no such knob": 1}]
        for name, knob in self.space.knobs:
            actions.append({each: value for each, value in values.items() if each != name})
            actions.append({**values, name: _beyond(knob)})
        return actions

    def bad_ranges(self) -> list[Any]:
        """No mapping, an unknown knob, and for each knob, a range that leaves nothing."""
        empty: dict[str, Any] = {name: [] if knob.is_option else (1e308, 1e308) for name, knob in self.space.knobs}
        if not self.space.is_named:
            return [empty[UNNAMED], {"no such knob": (0.0, 1.0)}]
        return [(0.0, 1.0), {"no such knob": (0.0, 1.0)}, *({name: nothing} for name, nothing in empty.items())]

    def _actions(self, within: Any) -> Iterator[Any]:
        """Actions inside the ranges and the limits."""
        shares = np.random.default_rng(0).random((_POINTS, len(self.space.knobs)))
        lows, highs = (np.tile(ends, (_POINTS, 1)) for ends in self.space.ranges(within))
        if self.space.limited is not None:
            self.space.limited.core.place(lows, highs, shares)
        else:
            for place, (_, knob) in enumerate(self.space.knobs):
                shares[:, place] = _place(knob, shares[:, place], lows[0, place], highs[0, place])
        yield from map(self.space.action, shares)


def _place(knob: Knob, shares: Floats, low: float, high: float) -> Floats:
    """Positions at shares of a range, or of the allowed options."""
    if not knob.is_option:
        return low + shares * (high - low)
    allowed = np.array([number for number in range(knob.core[1]) if int(low) >> number & 1], dtype=np.float64)
    return allowed[(shares * len(allowed)).astype(np.int64)]


def _beyond(knob: Knob) -> Any:
    """A value that the knob does not have."""
    return object() if knob.is_option else knob.sweep(2)[-1] + knob.volume + 1.0


def _upper_part(knob: Knob) -> Any:
    if knob.is_option:
        return knob.sweep(0)[1:]
    values = knob.sweep(10**6 if knob.is_discrete else 11)
    return values[1], values[-1]


def _check_mean(values: Floats, expected: float, what: str) -> None:
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - expected) <= 5 * error + 1e-9 * expected, (
        f"mean of 1/{what} must be {expected}, got {values.mean()}"
    )
