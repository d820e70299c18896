"""Off-policy evaluation: estimates the loss of a policy from the log of another policy.

The importance weight of a row is the policy's density at the logged action divided by the logged density.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import numpy as np

from manul.actions.decision import Within
from manul.actions.ranges import Actions
from manul.actions.space import ActionSpace, check_one_knob
from manul.errors import InputError, ParameterError
from manul.logs.batching import Logs, Rows, as_loss_range, declared_ranges, pieces, repeatable
from manul.offpolicy import named_logs
from manul.offpolicy.estimate import Estimate
from manul.offpolicy.evaluation import bandwidth as slope
from manul.offpolicy.evaluation import intervals, policy_densities
from manul.offpolicy.evaluation.empirical_likelihood import UNKNOWN_BOUND
from manul.offpolicy.evaluation.estimated_densities import check_estimated, check_not_rounded, widen
from manul.offpolicy.evaluation.estimator_registry import ESTIMATORS
from manul.offpolicy.evaluation.intervals import Terms
from manul.offpolicy.evaluation.knob_policies import as_knobs_policy, check_log
from manul.offpolicy.evaluation.loss_scaling import scale_losses
from manul.offpolicy.evaluation.objections import Evidence
from manul.offpolicy.evaluation.outcome_model import Regressor
from manul.offpolicy.evaluation.policy_objections import PolicyObjections
from manul.offpolicy.evaluation.progress_bar import with_progress
from manul.offpolicy.evaluation.weight_bounds import WeightBounds
from manul.outcomes import AnyRange, outcome_of
from manul.policies.policy import Policy
from manul.utils.validation import Floats, check_bandwidth, check_choice, check_has_rows, check_number, check_seed

_WITH_BOUNDS = ("empirical-likelihood", *intervals.BOUNDED)


def evaluate(
    policy: Policy | policy_densities.Deterministic,
    log: Logs,
    estimator: str | None = None,
    interval: str | None = None,
    *,
    level: float = 0.95,
    seed: int = 0,
    actions: Within | None = None,
    losses: AnyRange | None = None,
    rewards: AnyRange | None = None,
    bandwidth: float | Mapping[str, float] | None = None,
    largest_weight: float | None = None,
    outcome_model: str | Regressor | None = None,
    progress: bool = False,
) -> Estimate:
    """Estimate the loss of a policy on the contexts of a log, or of batches of a log, with a confidence interval.

    If the log has rewards, the estimate is printed and drawn as a mean reward, and `reward` of the estimate has it as a number.

    The default estimator is `snips`. With several knobs, it is the doubly robust `dr` if the log has enough decisions like
    those of the policy, and otherwise `dm`, the prediction of a model. There is an interval only if at least 100 decisions match.

    A function from context to action is smoothed with a bandwidth, by default the choice of SLOPE, or 1/16 of the range of
    each of several knobs; the interval is that of the smoothed policy. The default interval is `empirical-likelihood`, or
    `normal` if the estimator does not allow it. Others are `bootstrap` and `normal`, which are too narrow if few decisions
    match or a few of them have large weights; `clopper-pearson` and `bernstein`; and `sequence`, which remains valid if it
    is computed repeatedly as the log grows. `largest_weight` is an upper bound of all weights, by default the policy's
    largest density divided by the column `floor` of the log. Without either, or with several knobs,
    `empirical-likelihood` assumes a million, and `clopper-pearson` and `bernstein` are refused. Intervals hold for
    losses in their range; with `losses="auto"` that is the range of the log, so they are a little narrow. `objections`
    of the estimate say why not to trust it.

    The estimators `dr` and `dm` predict losses with an `outcome_model`: by default the critic of `Auto`, or the name of a
    registered model, or a regressor of scikit-learn.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=5000)).log
    >>> estimate = evaluate(lambda context: 0.5, log, bandwidth=1/4)
    >>> estimate.low < estimate.value < estimate.high, estimate.rows
    (True, 5000)
    """
    first, log = named_logs.peek(log)
    losses = as_loss_range(first, losses, rewards)
    knobs = check_log(first, actions)
    leads, estimator = estimator is None, estimator or ("snips" if knobs is None else "dr")
    interval = _check(estimator, interval, level, largest_weight)
    span, scale = declared_ranges(log, actions, losses)
    policy = as_policy(policy, log, span or (0.0, 1.0), scale, bandwidth, knobs)
    if leads and knobs is not None and not _corrects(log, policy):
        estimator, interval = "dm", intervals.NONE
    terms = ESTIMATORS[estimator].fit(policy, log, span, scale, **_model_options(estimator, outcome_model))
    doubts = PolicyObjections(policy)
    sums, ends = _Sums(), intervals.start(interval, check_seed(seed), largest_weight)
    bounds = WeightBounds(policy, largest_weight) if interval in _WITH_BOUNDS else WeightBounds(policy, UNKNOWN_BOUND)
    for rows in with_progress(pieces(log, several=True), log, progress=progress):
        densities, shares = policy_densities.densities(policy, rows), scale_losses(rows, scale)
        contribution = terms(rows, densities / rows.densities, shares)
        bounds.add(rows)
        if interval in intervals.BOUNDED:
            bounds.require(interval)
        sums.add(contribution, rows)
        doubts.add(rows)
        ends.add(contribution)
    sums.check(largest_weight, needs_weights=knobs is None or not ESTIMATORS[estimator].outcome_models)
    bound = max(bounds.largest, sums.largest)
    if knobs is not None and ESTIMATORS[estimator].outcome_models and not sums.evidence.supported:
        ends, interval = intervals.start(intervals.NONE, 0), intervals.NONE
    low, high = ends.ends(level, bound)
    if sums.estimated:
        check_not_rounded(*np.concatenate(sums.estimated, axis=1))
        check_estimated(estimator, sums.evidence.mean_weight)
        low, high = widen((low, high), sums.evidence.mean_weight)
    window = policy.bandwidth if isinstance(policy, policy_densities.Smoothed) else None
    estimate = sums.estimate((low, high), bound, estimator, interval, level, scale, window)
    objections = sorted([*doubts.objections(), *estimate.objections], key=lambda objection: objection.severity)
    return replace(
        estimate,
        outcome=outcome_of(first),
        smoothing=policy_densities.smoothing(policy),
        objections=tuple(objections),
    )


def _corrects(log: Logs, policy: Policy) -> bool:
    """Whether a log with several knobs has enough decisions like those of the policy, so that weights correct a model."""
    evidence = Evidence()
    for rows in pieces(repeatable(log, "Evaluation with several knobs"), several=True):
        weights = policy_densities.densities(policy, rows) / rows.densities
        evidence.add(rows, Terms(weights, weights, weights, weights))
    check_has_rows(evidence.rows)
    return evidence.corrects


def _model_options(estimator: str, outcome_model: str | Regressor | None) -> dict[str, str | Regressor | None]:
    if ESTIMATORS[estimator].outcome_models:
        return {"outcome_model": outcome_model}
    if outcome_model is not None:
        raise ParameterError(f"outcome_model applies only to dr and dm, not to {estimator}.", "outcome_model")
    return {}


class _Sums:
    """The sums from which an estimate is computed, except for its interval."""

    def __init__(self) -> None:
        self.numerator, self.denominator, self.largest = 0.0, 0.0, 0.0
        self.evidence, self.estimated = Evidence(), list[Floats]()  # actions and estimated densities

    def add(self, terms: Terms, rows: Rows) -> None:
        self.numerator += float(terms.numerators.sum())
        self.denominator += float(terms.denominators.sum())
        self.largest = max(self.largest, float(terms.weights.max()))
        self.evidence.add(rows, terms)
        self.estimated += [np.array([rows.actions, rows.densities])] if rows.estimated else []

    def estimate(
        self,
        ends: Within,
        bound: float,
        estimator: str,
        interval: str,
        level: float,
        scale: Within,
        bandwidth: float | None,
    ) -> Estimate:
        # The true loss is in its range, whatever the weights are; and an interval contains its estimate.
        value, inside = self.numerator / self.denominator, (max(ends[0], 0.0), min(ends[1], 1.0))
        objections = self.evidence.objections(
            bound, interval, inside, has_model=ESTIMATORS[estimator].outcome_models, scale=scale, value=value
        )
        low, high = min(inside[0], value), max(inside[1], value)
        lowest, highest = scale
        return Estimate(
            value=lowest + (highest - lowest) * value,
            low=lowest + (highest - lowest) * low,
            high=lowest + (highest - lowest) * high,
            effective_size=self.evidence.effective_size,
            largest_weight=self.largest,
            mean_weight=self.evidence.mean_weight,
            rows=self.evidence.rows,
            estimator=estimator,
            interval=interval,
            level=level,
            bandwidth=bandwidth,
            objections=objections,
        )

    def check(self, largest_weight: float | None, *, needs_weights: bool) -> None:
        check_has_rows(self.evidence.rows)
        if not self.evidence.weights and needs_weights:
            advice = "Check that both use the same units, or use a larger bandwidth or epsilon."
            raise InputError(f"The policy has density 0 at every logged action. {advice}", "log")
        if largest_weight is not None and self.largest > largest_weight:
            rule = f"at least the largest weight, {self.largest:g}"
            raise InputError(f"largest_weight must be {rule}, got {largest_weight:g}.", "largest_weight")


def as_policy(
    policy: Policy | policy_densities.Deterministic,
    log: Logs,
    actions: Within,
    losses: Within,
    bandwidth: float | Mapping[str, float] | None,
    knobs: ActionSpace | None = None,
) -> Policy:
    """A policy as it is, or a function of a context smoothed with a bandwidth, by default the choice of SLOPE."""
    if knobs is not None:
        return cast(Policy, as_knobs_policy(policy, knobs, cast(Any, bandwidth)))
    check_one_knob(policy, "A log with one knob")
    if isinstance(policy, Policy):
        if bandwidth is not None:
            raise ParameterError(f"bandwidth applies only to functions of a context, got {bandwidth!r}.", "bandwidth")
        return policy
    if not callable(policy):
        raise ParameterError(
            f"policy must have a method distribution or be a function of a context, got {policy!r}.", "policy"
        )
    chosen = ""
    if bandwidth is None:
        bandwidth = slope.choose_bandwidth(policy, repeatable(log, "SLOPE"), actions, losses)
        chosen = " (chosen by SLOPE)"
    half = check_bandwidth(cast(Any, bandwidth), Actions(*actions))
    return policy_densities.Smoothed(policy, half, actions, chosen)


def _check(estimator: str, interval: str | None, level: float, largest_weight: float | None) -> str:
    allowed = ESTIMATORS[estimator].intervals
    if interval is None:
        preferred = ("empirical-likelihood", "normal", intervals.NONE)
        interval = next((name for name in preferred if name in (allowed or preferred)), preferred[0])
    advice = None if allowed is None else f"Estimator {estimator} has no others."
    check_choice("interval", interval, allowed or intervals.NAMES, advice)
    check_number("level", level, 0, 1, "Try 0.95.", ends="()")
    if largest_weight is not None:
        check_number("largest_weight", largest_weight, 0, math.inf, "Omit it for the default.", ends="(]")
    return interval
