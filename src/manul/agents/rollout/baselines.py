"""The baseline of a rollout: what decides today, and keeps deciding unless the learner is shown to be no worse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np

from manul.actions.decision import Within
from manul.actions.distribution import Atoms, Distribution
from manul.contexts.schema import Context
from manul.errors import InputError, ParameterError
from manul.policies.policy import Policy
from manul.utils import model_files

CELLS = 1024  # a baseline's single action counts as spread over this part of the range, so that it has a density
CALLER = "caller"


@dataclass(frozen=True)
class BaselineArm:
    """What the baseline plays in one decision: the density that counts, and what it draws from."""

    distribution: Distribution
    source: float | Distribution | Atoms

    def draw(self, seed: Sequence[int]) -> float:
        return self.source if isinstance(self.source, float) else self.source.sample(np.random.default_rng(seed))


class Baseline(Protocol):
    """Where the baseline's action comes from; `actions` is the range of actions."""

    @property
    def actions(self) -> Within:
        """The range of actions."""

    def arm(self, context: Context, within: Within, action: float | None) -> BaselineArm:
        """What the baseline plays; `action` is the caller's own action, if given."""

    def describe(self) -> tuple[Any, model_files.Arrays]:
        """The baseline in JSON values, and its arrays."""


@dataclass(frozen=True)
class ConstantBaseline:
    """Always the same action, or the nearest one of the narrowed range.

    >>> ConstantBaseline(0.5, (0.0, 1.0)).arm([1.0], (0.0, 1.0), None).distribution.densities
    array([1024.])
    """

    constant: float
    actions: Within

    def arm(self, _context: Context, within: Within, action: float | None) -> BaselineArm:
        _refuse(action)
        constant = min(max(self.constant, within[0]), within[1])
        return BaselineArm(cell(constant, within, self.actions), constant)

    def describe(self) -> tuple[Any, model_files.Arrays]:
        return self.constant, {}


@dataclass(frozen=True)
class CallerBaseline:
    """The action that the caller would choose, which comes with each decision."""

    actions: Within

    def arm(self, _context: Context, within: Within, action: float | None) -> BaselineArm:
        low, high = within
        if not isinstance(action, Real) or not low <= float(action) <= high:
            rule = f"what you would choose, in [{low:g}, {high:g}]"
            raise InputError(f"action must be {rule}, since the baseline is the caller, got {action!r}.", "action")
        return BaselineArm(cell(float(action), within, self.actions), float(action))

    def describe(self) -> tuple[Any, model_files.Arrays]:
        return CALLER, {}


@dataclass(frozen=True, eq=False)
class PolicyBaseline:
    """A saved policy, or an agent that does not learn any more."""

    policy: Any
    actions: Within

    def arm(self, context: Context, within: Within, action: float | None) -> BaselineArm:
        """What the policy plays; single actions count as the cells around them."""
        _refuse(action)
        source = self.policy.distribution(context, within)
        if isinstance(source, Distribution):
            return BaselineArm(source, source)
        return BaselineArm(cells(source, within, self.actions), source)

    def describe(self) -> tuple[Any, model_files.Arrays]:
        kind, parameters, arrays = model_files.contents(self.policy)
        return {"kind": kind, "parameters": parameters}, arrays


def _refuse(action: float | None) -> None:
    if action is not None:
        raise InputError("action must only be given to a rollout with baseline='caller'.", "action")


def cell(action: float, within: Within, actions: Within) -> Distribution:
    """The part of the range that a single action counts as: 1/1024 of it, inside the narrowed range.

    >>> cell(1.0, (0.0, 1.0), (0.0, 1.0)).edges.tolist()
    [0.9990234375, 1.0]
    """
    width = min((actions[1] - actions[0]) / CELLS, within[1] - within[0])
    low = min(max(action - width / 2, within[0]), within[1] - width)
    return Distribution.uniform(min(low, action), max(low + width, action))  # rounding must not leave the action out


def cells(atoms: Atoms, within: Within, actions: Within) -> Distribution:
    """The mixture of the cells of single actions.

    >>> cells(Atoms(np.array([0.0, 1.0]), np.array([0.25, 0.75]), 1.0), (0.0, 1.0), (0.0, 1.0)).densities
    array([256.,   0., 768.])
    """
    played = atoms.masses > 0
    parts = [cell(position, within, actions).edges for position in atoms.positions[played].tolist()]
    lows, highs = np.array(parts).T
    edges = np.unique(parts)
    changes = np.zeros(len(edges))
    np.add.at(changes, np.searchsorted(edges, lows), atoms.masses[played] / (highs - lows))
    np.subtract.at(changes, np.searchsorted(edges, highs), atoms.masses[played] / (highs - lows))
    return Distribution(edges, np.maximum(np.cumsum(changes)[:-1], 0.0))


def check_baseline(baseline: Any, actions: Within) -> Baseline:
    """Check a baseline against the range of actions: a number, a policy, or "caller".

    >>> check_baseline(2.0, (0.0, 1.0))
    Traceback (most recent call last):
    manul.errors.ParameterError: baseline must be in [0, 1], the range of actions, got 2.0.
    """
    _check_width(actions)
    if isinstance(baseline, str) and baseline == CALLER:
        return CallerBaseline(actions)
    if isinstance(baseline, Real) and not isinstance(baseline, bool):
        low, high = actions
        if not (math.isfinite(float(baseline)) and low <= float(baseline) <= high):
            raise ParameterError(
                f"baseline must be in [{low:g}, {high:g}], the range of actions, got {baseline!r}.", "baseline"
            )
        return ConstantBaseline(float(baseline), actions)
    if not isinstance(baseline, str) and isinstance(baseline, Policy) and isinstance(baseline, model_files.Saveable):
        own = getattr(baseline, "actions", actions)
        if tuple(own) != actions:
            raise ParameterError(f"baseline must have the actions of the agent, {actions}, got {own}.", "baseline")
        return PolicyBaseline(baseline, actions)
    raise ParameterError(f"baseline must be an action, a policy or 'caller', got {baseline!r:.60}.", "baseline")


def _check_width(actions: Within) -> None:
    """Refuse a range of actions in which a cell has hardly any numbers, or no finite density."""
    width, spacing = (actions[1] - actions[0]) / CELLS, float(np.spacing(max(map(abs, actions))))
    if width < 4 * spacing or width < np.finfo(float).tiny:
        raise ParameterError(
            f"actions must be a range in which numbers are closer than 1/{4 * CELLS} of it for a rollout, got {actions}.",
            "actions",
        )
