"""Estimators of the loss of a policy from the log of another policy: ips, snips and dr.

The importance weight of a row is the policy's density at the logged action divided by the logged density. `ips` averages
weight times loss (section 2 of the paper), `snips` divides by the mean weight, and `dr` (Dudik, Langford and Li 2011) uses a
model of the loss and weights only its residuals.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from manul.actions.ranges import Actions
from manul.errors import InputError, ParameterError
from manul.logs.batching import Logs, Rows, declared_ranges, pieces, repeatable
from manul.offpolicy.evaluation import bandwidth as slope
from manul.offpolicy.evaluation import intervals, policy_densities
from manul.offpolicy.evaluation.intervals import Terms
from manul.offpolicy.evaluation.outcome_model import LossModel
from manul.types import Estimate, Floats, Policy, Within
from manul.utils.validation import (
    USABLE,
    check_bandwidth,
    check_choice,
    check_has_rows,
    check_losses,
    check_number,
    check_seed,
    reject,
    usable_densities,
)

ESTIMATORS = ("ips", "snips", "dr")
_FOR_MODELS = ("bootstrap", "normal")


def evaluate(
    policy: Policy | policy_densities.Deterministic,
    log: Logs,
    estimator: str = "snips",
    interval: str = "bootstrap",
    *,
    level: float = 0.95,
    seed: int = 0,
    actions: Within | None = None,
    losses: Within | None = None,
    bandwidth: float | None = None,
    largest_weight: float | None = None,
) -> Estimate:
    """Estimate the loss that a policy would have had on the contexts of a log, or of the batches of one.

    A function from context to action is smoothed with a bandwidth, chosen by SLOPE unless it is given; the interval is
    then that of the smoothed policy. Intervals are `bootstrap`, `normal`, `clopper-pearson`, `bernstein`, and `sequence`,
    which is valid at all times, however often it is computed. `largest_weight` is an upper bound of the weights; it makes
    `sequence` narrower, and the others default to the policy's largest density divided by the smallest in the log.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=5000)).log
    >>> estimate = evaluate(lambda context: 0.5, log, bandwidth=1/4)
    >>> estimate.low < estimate.value < estimate.high, estimate.rows
    (True, 5000)
    """
    _check(estimator, interval, level, largest_weight)
    span, scale = declared_ranges(log, actions, losses)
    if not isinstance(policy, Policy):
        policy = _smoothed(policy, log, span or (0.0, 1.0), scale, bandwidth)
    elif bandwidth is not None:
        raise ParameterError(
            f"bandwidth must be omitted for a policy with a distribution, got {bandwidth!r}.", "bandwidth"
        )
    terms = _model_terms(policy, log, span, scale) if estimator == "dr" else _TERMS[estimator]
    sums, ends = _Sums(), intervals.start(interval, check_seed(seed), largest_weight)
    for rows in pieces(log):
        densities = policy_densities.densities(policy, rows)
        found = terms(rows, densities / _checked(rows, scale).densities, _scaled(rows, scale))
        sums.add(found, densities, rows)
        ends.add(found)
    return sums.estimate(ends, estimator, interval, level, scale, largest_weight, getattr(policy, "bandwidth", None))


_Terms = Callable[[Rows, Floats, Floats], Terms]


def _ips(rows: Rows, weights: Floats, losses: Floats) -> Terms:
    return Terms(weights * losses, np.ones(len(rows.actions)), weights, losses)


def _snips(rows: Rows, weights: Floats, losses: Floats) -> Terms:  # noqa: ARG001 - as all terms
    return Terms(weights * losses, weights, weights, losses)


_TERMS: dict[str, _Terms] = {"ips": _ips, "snips": _snips}


def _model_terms(policy: Policy, log: Logs, span: Within | None, scale: Within) -> _Terms:
    own: Within = getattr(policy, "actions", (0.0, 1.0))
    model = LossModel(span or own)
    for rows in pieces(repeatable(log, "dr")):
        model.add(rows, _scaled(_checked(rows, scale), scale))
    check_has_rows(model.grams is not None)
    model.fit()

    def terms(rows: Rows, weights: Floats, losses: Floats) -> Terms:
        expected = model.expected(rows, policy_densities.moments(policy, rows))
        return Terms(expected + weights * (losses - model.predict(rows)), np.ones(len(losses)), weights, losses)

    return terms


class _Sums:
    """The sums for an estimate, without its interval."""

    def __init__(self) -> None:
        self.rows, self.numerator, self.denominator = 0, 0.0, 0.0
        self.weights, self.squares, self.largest = 0.0, 0.0, 0.0
        self.densest, self.thinnest = 0.0, np.inf

    def add(self, terms: Terms, densities: Floats, rows: Rows) -> None:
        self.rows += len(terms.weights)
        self.numerator += float(terms.numerators.sum())
        self.denominator += float(terms.denominators.sum())
        self.weights += float(terms.weights.sum())
        self.squares += float((terms.weights * terms.weights).sum())
        self.largest = max(self.largest, float(terms.weights.max()))
        self.densest = max(self.densest, float(densities.max()))
        self.thinnest = min(self.thinnest, float(rows.densities.min()))

    def estimate(
        self,
        ends: intervals.Interval,
        estimator: str,
        interval: str,
        level: float,
        scale: Within,
        largest_weight: float | None,
        bandwidth: float | None,
    ) -> Estimate:
        self._check(largest_weight)
        value = self.numerator / self.denominator
        low, high = ends.ends(level, largest_weight or self.densest / self.thinnest)
        least, worst = scale
        # The interval lies within the range of losses and contains the estimate.
        low, high = min(max(low, 0.0), value), max(min(high, 1.0), value)
        return Estimate(
            value=least + (worst - least) * value,
            low=least + (worst - least) * low,
            high=least + (worst - least) * high,
            effective_size=self.weights**2 / self.squares,
            largest_weight=self.largest,
            mean_weight=self.weights / self.rows,
            rows=self.rows,
            estimator=estimator,
            interval=interval,
            level=level,
            bandwidth=bandwidth,
        )

    def _check(self, largest_weight: float | None) -> None:
        check_has_rows(self.rows)
        if not self.weights:
            raise InputError("The policy chooses none of the logged actions. Log with more exploration.", "log")
        if largest_weight is not None and self.largest > largest_weight:
            raise InputError(
                f"largest_weight must be at least the largest weight, {self.largest:g}, got {largest_weight:g}.",
                "largest_weight",
            )


def _smoothed(
    policy: policy_densities.Deterministic, log: Logs, actions: Within, losses: Within, bandwidth: float | None
) -> policy_densities.Smoothed:
    if not callable(policy):
        raise ParameterError(
            f"policy must have a distribution or be a function of a context, got {policy!r}. Try manul.load.", "policy"
        )
    if bandwidth is None:
        bandwidth = slope.choose_bandwidth(policy, repeatable(log, "SLOPE"), actions, losses)
    return policy_densities.Smoothed(policy, check_bandwidth(bandwidth, Actions(*actions)), actions)


def _scaled(rows: Rows, scale: Within) -> Floats:
    return (rows.losses - scale[0]) / (scale[1] - scale[0])


def _checked(rows: Rows, scale: Within) -> Rows:
    check_losses(rows.losses, scale, rows.first)
    reject(~usable_densities(rows.densities), rows.densities, "density", USABLE, _REMEDY, rows.first)
    return rows


_REMEDY = "Log the density of each decision, or see manul.offpolicy.estimate_densities."


def _check(estimator: str, interval: str, level: float, largest_weight: float | None) -> None:
    check_choice("estimator", estimator, ESTIMATORS, "Try 'snips'.")
    check_choice("interval", interval, intervals.NAMES)
    if estimator == "dr":
        check_choice("interval", interval, _FOR_MODELS, "Other intervals need ips or snips.")
    check_number("level", level, 0, 1, "Try 0.95.", ends="()")
    if largest_weight is not None:
        check_number("largest_weight", largest_weight, 0, math.inf, "Omit it to use the bound from the log.", ends="(]")
