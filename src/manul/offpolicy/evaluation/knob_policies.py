"""Policies with several knobs on a log: their densities at the logged actions, and actions drawn from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from manul.actions.space import ActionSpace, several_knobs
from manul.errors import InputError, ParameterError
from manul.logs.batching import Rows
from manul.logs.log import Log
from manul.offpolicy.evaluation.smoothed_knobs import SmoothedKnobs
from manul.utils.validation import Floats

DRAWS = 4  # actions per row, at which predicted losses are averaged


class KnobsPolicy:
    """A policy with several knobs; its densities are remembered, because it takes a search to compute them."""

    def __init__(self, policy: Any) -> None:
        self.policy, self.knobs = policy, several_knobs(policy)
        self.space = self.knobs
        self._densities: dict[tuple[int, int], Floats] = {}

    @staticmethod
    def of(policy: Any) -> KnobsPolicy:
        """The policy, if it is one already, or a new one."""
        return policy if isinstance(policy, KnobsPolicy) else KnobsPolicy(policy)

    def densities(self, rows: Rows, contexts: Any) -> Floats:
        """The joint density of each action of a piece of a log."""
        place = rows.first, len(rows)
        if place not in self._densities:
            self._check(rows)
            self._densities[place] = self._compute_densities(rows, contexts)
        return self._densities[place]

    def _compute_densities(self, rows: Rows, contexts: Any) -> Floats:
        if isinstance(self.policy, SmoothedKnobs):
            return _joint(self.policy.factors_many(contexts, rows.positions, rows.within), rows)
        if hasattr(self.policy, "densities_many"):
            return np.asarray(self.policy.densities_many(contexts, rows.positions, rows.within), np.float64)
        actions = [_knobs(rows).action(positions) for positions in rows.positions]
        pairs = zip(self._distributions(rows, contexts), actions, strict=True)
        return np.array([distribution.density(action) for distribution, action in pairs])

    def draws(self, rows: Rows, contexts: Any) -> Floats:
        """The positions of a few actions per row, drawn from the policy; the same ones in every call."""
        self._check(rows)
        count, rng = len(rows), np.random.default_rng(rows.first)
        if isinstance(self.policy, SmoothedKnobs):
            return self.policy.draws_many(contexts, rows.positions, rows.within, rng, DRAWS)
        if hasattr(self.policy, "decide_many_again"):
            numbers = DRAWS * (rows.first + np.arange(count, dtype=np.uint64))
            again = self.policy.decide_many_again
            drawn = [again(numbers + np.uint64(each), contexts, rows.within).actions for each in range(DRAWS)]
            return np.stack([_knobs(rows).table(columns) for columns in drawn], axis=1)
        each_row = self._distributions(rows, contexts)
        draws = [[_knobs(rows).positions(one.sample(rng)) for _ in range(DRAWS)] for one in each_row]
        return np.array(draws).reshape(count, DRAWS, -1)

    def _distributions(self, rows: Rows, contexts: Any) -> list[Any]:
        within = [None] * len(rows) if rows.within is None else rows.within
        return [self.policy.distribution(context, each) for context, each in zip(contexts, within, strict=True)]

    def _check(self, rows: Rows) -> None:
        if self.knobs != rows.knobs:
            raise InputError(_mismatch(self.knobs, _knobs(rows)), "policy")


def as_knobs_policy(policy: Any, knobs: ActionSpace, bandwidth: Mapping[str, float] | None) -> KnobsPolicy:
    """A policy that sets these knobs, or a function of a context with windows.

    >>> knobs = ActionSpace({"price": (10, 50), "days": (1, 14)})
    >>> as_knobs_policy(lambda context: {"price": 20, "days": 3}, knobs, None).knobs.names
    ['price', 'days']
    """
    if hasattr(policy, "distribution"):
        if bandwidth is not None:
            raise ParameterError(f"bandwidth applies only to functions of a context, got {bandwidth!r}.", "bandwidth")
        if several_knobs(policy) != knobs:
            raise ParameterError(_mismatch(several_knobs(policy), knobs), "policy")
        return KnobsPolicy(policy)
    if not callable(policy):
        raise ParameterError(
            f"policy must have a method distribution or be a function of a context, got {policy!r}.", "policy"
        )
    return KnobsPolicy(SmoothedKnobs(policy, knobs, bandwidth))


def check_log(first: Log | None, actions: object) -> ActionSpace | None:
    """The knobs of a log by its first batch, None for one knob; rejects what several knobs cannot have.

    >>> check_log(None, (0.0, 1.0))
    """
    knobs = None if first is None else first.knobs
    if knobs is None or first is None:
        return None
    if actions is not None:
        raise ParameterError("actions applies to logs with one knob; this one has its own knobs.", "actions")
    if first.densities_estimated:
        raise InputError("With several knobs, densities must be logged, but those of this log were estimated.", "log")
    return knobs


def _mismatch(other: object, knobs: ActionSpace) -> str:
    """Say how the knobs of a policy differ from those of the log."""
    if not isinstance(other, ActionSpace):
        return f"The log has the knobs {', '.join(knobs.names)}, but the policy sets one number."
    if other.names != knobs.names:
        return f"The log has the knobs {', '.join(knobs.names)}, but the policy sets {', '.join(other.names)}."
    pairs = zip(knobs.actions.items(), other.actions.values(), strict=True)
    name, ours, theirs = next((name, ours, theirs) for (name, ours), theirs in pairs if ours != theirs)
    return f"The knob {name} of the log is {ours}, but that of the policy is {theirs}."


def _joint(factors: Floats, rows: Rows) -> Floats:
    """The joint densities: knobs that the policy leaves out have the logged ones."""
    out = np.isnan(factors)
    if not out.any():
        return np.asarray(factors.prod(axis=1), np.float64)
    if rows.densities_by_knob is None:
        raise InputError("policy must set all knobs, because the log has no densities by knob.", "policy")
    logged = np.column_stack([rows.densities_by_knob[name] for name in _knobs(rows).names])
    # The logged joint density is kept as it is: its factors may have been rounded.
    ratios: Floats = np.where(out, 1.0, factors / logged).prod(axis=1)
    return ratios * rows.densities


def _knobs(rows: Rows) -> ActionSpace:
    assert rows.knobs is not None
    return rows.knobs
