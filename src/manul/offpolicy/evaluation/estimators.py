"""The loss of a policy, estimated from a log that another policy made, by any registered estimator.

Each row has a weight, the policy's density at the logged action over the logged density.
"""

from __future__ import annotations

import math

import numpy as np

from manul.actions.ranges import Actions
from manul.errors import InputError, ParameterError
from manul.logs.batching import Logs, Rows, declared_ranges, pieces, repeatable
from manul.offpolicy.evaluation import bandwidth as slope
from manul.offpolicy.evaluation import intervals, policy_densities
from manul.offpolicy.evaluation.estimator_registry import ESTIMATORS
from manul.offpolicy.evaluation.intervals import Terms
from manul.offpolicy.evaluation.row_losses import checked_rows, scaled_losses
from manul.types import Estimate, Floats, Policy, Within
from manul.utils.validation import check_bandwidth, check_choice, check_has_rows, check_number, check_seed


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
    terms = ESTIMATORS[estimator].fit(policy, log, span, scale)
    sums, ends = _Sums(), intervals.start(interval, check_seed(seed), largest_weight)
    for rows in pieces(log):
        densities = policy_densities.densities(policy, rows)
        contribution = terms(rows, densities / checked_rows(rows, scale).densities, scaled_losses(rows, scale))
        sums.add(contribution, densities, rows)
        ends.add(contribution)
    return sums.estimate(ends, estimator, interval, level, scale, largest_weight, getattr(policy, "bandwidth", None))


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


def _check(estimator: str, interval: str, level: float, largest_weight: float | None) -> None:
    allowed = ESTIMATORS[estimator].intervals
    check_choice("interval", interval, intervals.NAMES)
    if allowed is not None:
        check_choice("interval", interval, allowed, f"{estimator} has no other.")
    check_number("level", level, 0, 1, "Try 0.95.", ends="()")
    if largest_weight is not None:
        check_number("largest_weight", largest_weight, 0, math.inf, "Omit it to use the bound from the log.", ends="(]")
