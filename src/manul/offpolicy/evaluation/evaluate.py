"""Off-policy evaluation: estimates the loss of a policy from the log of another policy.

The importance weight of a row is the policy's density at the logged action divided by the logged density.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from manul.actions.decision import Within
from manul.errors import InputError, ParameterError
from manul.logs.log import Declares
from manul.logs.rows import Rows
from manul.logs.sample import Logs, Sample
from manul.offpolicy.estimate import Estimate
from manul.offpolicy.evaluation import intervals
from manul.offpolicy.evaluation.empirical_likelihood import UNKNOWN_BOUND
from manul.offpolicy.evaluation.estimated_densities import check_estimated, check_not_rounded, widen
from manul.offpolicy.evaluation.estimators import ESTIMATORS
from manul.offpolicy.evaluation.intervals import ExactMassInterval, Terms
from manul.offpolicy.evaluation.objections import Evidence
from manul.offpolicy.evaluation.outcome_model import Regressor
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog
from manul.offpolicy.evaluation.policy_objections import PolicyObjections
from manul.offpolicy.evaluation.weight_bounds import WeightBounds
from manul.offpolicy.smoothed import Function
from manul.outcomes import AnyRange, Outcome
from manul.policies.policy import Policy
from manul.utils.validation import Floats, check_choice, check_has_rows, check_number, check_seed


def evaluate(
    policy: Policy | Function,
    log: Logs,
    estimator: str | None = None,
    interval: str | None = None,
    *,
    level: float = 0.95,
    seed: int = 0,
    actions: Within | None = None,
    losses: AnyRange | None = None,
    rewards: AnyRange | None = None,
    outcome: Outcome | None = None,
    like: Declares | None = None,
    bandwidth: float | Mapping[str, float] | None = None,
    largest_weight: float | None = None,
    outcome_model: str | Regressor | None = None,
    progress: bool = False,
) -> Estimate:
    """Estimate the loss of a `policy` on the contexts of a `log`, or of batches of a log, with a confidence interval.

    If the log has rewards, the estimate is printed and drawn as a mean reward, and `reward` of the estimate has it as a number.

    `actions` and `losses` or `rewards` are the ranges of the log; if they are not given and the log does not declare them, as text
    does not, they are those of `like`, an agent or another log, or (0, 1). An `outcome` with a formula computes the losses or rewards
    from the parts of the log, such as those of sales at another cost.

    The default `estimator` is `snips`. With several knobs, steps or options, it is the doubly robust `dr` if the log
    has enough decisions like those of the policy, and otherwise `dm`, the prediction of a model. There is an interval
    only if at least 100 decisions match.

    A function from context to action is smoothed with a `bandwidth`, by default the choice of SLOPE, or 1/16 of the
    range of each of several knobs; the interval is that of the smoothed policy. The `interval` has the confidence
    `level`; a `seed` is for those that draw, and `progress` shows a bar on standard error. The default is
    `exact-mass` if the log keeps what its actions were drawn from, as those of `simulate` and of the service do: the mass of the
    policy on every piece of the logged distributions is then known, and so is what the log does not cover. Otherwise it is
    `empirical-likelihood`, or `normal` if the estimator allows neither. Others are `bootstrap` and `normal`, which
    are too narrow if few decisions match or a few of them have large weights; `clopper-pearson` and `bernstein`; and
    `sequence`, which remains valid if it is computed repeatedly as the log grows. `largest_weight` is an upper bound of
    all weights, by default the policy's largest density divided by the column `floor` of the log. Without either, or
    with several knobs, `empirical-likelihood` assumes a million, and `clopper-pearson` and `bernstein` are refused.
    Intervals hold for losses in their range; with `losses="auto"` that is the range of the log, so they are a little
    narrow. `objections` of the estimate say why not to trust it.

    The estimators `dr` and `dm` predict losses with an `outcome_model`: by default the critic of `Auto`, or the name of a
    registered model, or a regressor of scikit-learn.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=5000)).log
    >>> estimate = evaluate(lambda context: 0.5, log, bandwidth=1/4)
    >>> estimate.low < estimate.value < estimate.high, estimate.rows
    (True, 5000)
    """
    sample = Sample.of(log, actions=actions, losses=losses, rewards=rewards, outcome=outcome, like=like)
    sample.require_logged_densities()
    leads, estimator = estimator is None, estimator or _default_estimator(sample, interval)
    automatic = interval is None and largest_weight is None
    interval = _check(estimator, interval, level, largest_weight)
    examined = PolicyOnLog.of(policy, sample, bandwidth)
    if leads and estimator == "dr" and not _corrects(sample, examined):
        estimator, interval = "dm", intervals.NONE
    if automatic and interval == LIKELIHOOD:
        interval = EXACT
    terms = ESTIMATORS[estimator].fit(examined, sample, **_model_options(estimator, outcome_model))
    doubts, bounded = PolicyObjections(examined.policy), intervals.is_bounded(interval)
    sums, ends = _Sums(), intervals.start(interval, check_seed(seed), largest_weight)
    has_bounds = bounded or interval in (LIKELIHOOD, EXACT)
    bounds = WeightBounds(examined, largest_weight if has_bounds else UNKNOWN_BOUND, needed=bounded)
    for rows in sample.pieces(progress=progress):
        shares = rows.shares  # checks densities, by which weights are divided
        masses = examined.masses(rows) if intervals.is_exact(interval) else None
        if automatic and interval == EXACT and masses is None:
            interval = LIKELIHOOD
        contribution = terms(rows, examined.weights(rows), shares)._replace(masses=masses)
        bounds.add(rows, masses)
        if bounded:
            bounds.require(interval)
        sums.add(contribution, rows)
        doubts.add(rows)
        if interval != LIKELIHOOD:  # whose sums objections need anyway
            ends.add(contribution)
    ends = sums.evidence.likelihood if interval == LIKELIHOOD else ends
    has_model = ESTIMATORS[estimator].outcome_models
    sums.check(largest_weight, needs_weights=sample.space.is_number or not has_model)
    bound = max(bounds.largest, sums.largest)
    if not sample.space.is_number and has_model and not sums.evidence.supported:
        ends, interval = intervals.start(intervals.NONE, 0), intervals.NONE
    low, high = ends.ends(level, bound)
    if sums.estimated:
        check_not_rounded(*np.concatenate(sums.estimated, axis=1))
        check_estimated(estimator, sums.evidence.mean_weight)
        low, high = widen((low, high), sums.evidence.mean_weight)
    wrong = ends.exact.evidence_against_masses() if isinstance(ends, ExactMassInterval) else 0.0
    estimate = sums.estimate((low, high), bound, estimator, interval, level, sample.scale, wrong)
    objections = sorted([*doubts.objections(), *estimate.objections], key=lambda objection: objection.severity)
    return replace(
        estimate,
        bandwidth=examined.bandwidth,
        outcome=sample.outcome,
        smoothing=examined.smoothing,
        objections=tuple(objections),
    )


LIKELIHOOD, EXACT = "empirical-likelihood", "exact-mass"


def _default_estimator(sample: Sample, interval: str | None) -> str:
    """Few logged decisions match in several knobs, so a model helps; an interval that it does not allow asks for `snips`."""
    asked = len(sample.space.knobs) == 1 and interval is not None and interval not in (ESTIMATORS["dr"].intervals or ())
    return "snips" if sample.space.is_number or asked else "dr"


def _corrects(sample: Sample, policy: PolicyOnLog) -> bool:
    """Whether a log of other actions than numbers has enough decisions like those of the policy, so that weights correct a model."""
    evidence = Evidence()
    for rows in sample.repeatable("Evaluation with several knobs").pieces():
        weights = policy.weights(rows)
        evidence.add(rows, Terms(weights, weights, weights, weights))
    check_has_rows(evidence.rows)
    return evidence.corrects


def _model_options(estimator: str, outcome_model: str | Regressor | None) -> dict[str, str | Regressor | None]:
    if ESTIMATORS[estimator].outcome_models:
        return {"outcome_model": outcome_model}
    if outcome_model is not None:
        takes = " and ".join(name for name in ESTIMATORS.names() if ESTIMATORS[name].outcome_models)
        raise ParameterError(f"outcome_model applies only to {takes}, not to {estimator}.", "outcome_model")
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
        against_masses: float,
    ) -> Estimate:
        # The true loss is in its range, whatever the weights are; and an interval contains its estimate.
        value, inside = self.numerator / self.denominator, (max(ends[0], 0.0), min(ends[1], 1.0))
        objections = self.evidence.objections(
            bound,
            interval,
            inside,
            has_model=ESTIMATORS[estimator].outcome_models,
            scale=scale,
            value=value,
            against_masses=against_masses,
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


def _check(estimator: str, interval: str | None, level: float, largest_weight: float | None) -> str:
    allowed = ESTIMATORS[estimator].intervals
    if interval is None:
        preferred = (LIKELIHOOD, "normal", intervals.NONE)
        interval = next((name for name in preferred if name in (allowed or preferred)), preferred[0])
    if allowed is not None:
        check_choice("interval", interval, allowed, f"Estimator {estimator} has no others.")
    else:
        intervals.start(interval, 0)
    check_number("level", level, 0, 1, "Try 0.95.", ends="()")
    if largest_weight is not None:
        check_number("largest_weight", largest_weight, 0, math.inf, "Omit it for the default.", ends="(]")
    return interval
