"""The baseline of a rollout: what decides today, and keeps deciding unless the learner is shown to be no worse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Protocol

import numpy as np

from manul.actions.distribution import Distribution
from manul.errors import InputError, ParameterError
from manul.types import Context, Policy, Within
from manul.utils import model_files

CELLS = 1024  # a baseline's single action counts as spread over this part of the range, so that it has a density
CALLER = "caller"


class Baseline(Protocol):
    """Where the baseline's action comes from."""

    def distribution(self, context: Context, within: Within, action: float | None) -> Distribution:
        """What the baseline plays; `action` is the caller's own action, if given."""

    def action(self, distribution: Distribution, within: Within, action: float | None, seed: Sequence[int]) -> float:
        """The baseline's action."""

    def describe(self) -> tuple[Any, model_files.Arrays]:
        """The baseline in JSON values, and its arrays."""


@dataclass(frozen=True)
class ConstantBaseline:
    """Always the same action.

    >>> ConstantBaseline(0.5, (0.0, 1.0)).distribution([1.0], (0.0, 1.0), None).densities
    array([1024.])
    """

    constant: float
    actions: Within

    def distribution(self, _context: Context, within: Within, action: float | None) -> Distribution:
        """The cell around the action."""
        if action is not None:
            raise InputError("action must only be given to a rollout with baseline='caller'.", "action")
        return cell(self.constant, within, self.actions)

    def action(self, _distribution: Distribution, within: Within, _action: float | None, _seed: Sequence[int]) -> float:
        """The constant action, moved into the narrowed range."""
        return min(max(self.constant, within[0]), within[1])

    def describe(self) -> tuple[Any, model_files.Arrays]:
        """The action."""
        return self.constant, {}


@dataclass(frozen=True)
class CallerBaseline:
    """The action that the caller would choose, which comes with each decision."""

    actions: Within

    def distribution(self, _context: Context, within: Within, action: float | None) -> Distribution:
        """The cell around the caller's action."""
        low, high = within
        if not isinstance(action, Real) or not low <= float(action) <= high:
            rule = f"what you would choose, in [{low:g}, {high:g}]"
            raise InputError(f"action must be {rule}, since the baseline is the caller, got {action!r}.", "action")
        return cell(float(action), within, self.actions)

    def action(self, _distribution: Distribution, _within: Within, action: float | None, _seed: Sequence[int]) -> float:
        """The caller's action."""
        assert action is not None
        return float(action)

    def describe(self) -> tuple[Any, model_files.Arrays]:
        """The word."""
        return CALLER, {}


@dataclass(frozen=True, eq=False)
class PolicyBaseline:
    """A saved policy, or an agent that does not learn any more."""

    policy: Any
    actions: Within

    def distribution(self, context: Context, within: Within, action: float | None) -> Distribution:
        """What the policy plays; policies with single actions play the cells around them."""
        if action is not None:
            raise InputError("action must only be given to a rollout with baseline='caller'.", "action")
        played = self.policy.distribution(context, within)
        return played if isinstance(played, Distribution) else cell(played.mean(), within, self.actions)

    def action(self, distribution: Distribution, _within: Within, _action: float | None, seed: Sequence[int]) -> float:
        """An action drawn from the policy."""
        return distribution.sample(np.random.default_rng(seed))

    def describe(self) -> tuple[Any, model_files.Arrays]:
        """The policy as in its own file."""
        kind, parameters, arrays = model_files.contents(self.policy)
        return {"kind": kind, "parameters": parameters}, arrays


def cell(action: float, within: Within, actions: Within) -> Distribution:
    """The part of the range that a single action stands for: 1/1024 of it, inside the narrowed range.

    >>> cell(1.0, (0.0, 1.0), (0.0, 1.0)).edges.tolist()
    [0.9990234375, 1.0]
    """
    width = min((actions[1] - actions[0]) / CELLS, within[1] - within[0])
    low = min(max(action - width / 2, within[0]), within[1] - width)
    return Distribution.uniform(low, low + width)


def check_baseline(baseline: Any, actions: Within) -> Baseline:
    """Check a baseline against the range of actions: a number, a policy, or "caller".

    >>> check_baseline(2.0, (0.0, 1.0))
    Traceback (most recent call last):
    manul.errors.ParameterError: baseline must be in [0, 1], the range of actions, got 2.0.
    """
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
