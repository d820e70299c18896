"""The doubly robust estimator `dr` (Dudik, Langford and Li 2011): the policy's expected loss under an outcome model, plus
the weighted residuals of the model, divided by the mean weight as in `snips`. The direct method `dm` is the model alone.

Predictions are multiplied by a coefficient from 0 to 1, the one with the smallest error: 0 is `snips`, 1 trusts the model.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manul.actions.space import ActionSpace
from manul.logs.rows import Rows
from manul.logs.sample import Sample
from manul.offpolicy.cross_fitting import CriticSettings
from manul.offpolicy.evaluation.estimators import TermsOf, register_estimator
from manul.offpolicy.evaluation.intervals import NONE, Terms
from manul.offpolicy.evaluation.outcome_model import Regressor, cross_fit
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog
from manul.utils.validation import Floats, check_has_rows

CHANCE = 2.0  # standard errors that a mean control may be from 0 by chance
Predictions = Callable[[Rows], tuple[Floats, Floats]]


@register_estimator("dr", fitted=True, intervals="approximate", outcome_models=True)
def doubly_robust(policy: PolicyOnLog, sample: Sample, outcome_model: str | Regressor | None = None) -> TermsOf:
    """Cross-fit an outcome model to the log; terms are the expected loss plus the self-normalised residual."""
    predictions = fit_predictions(policy, sample, outcome_model)
    products = np.zeros((5, 5))
    for rows in sample.pieces():
        weights = policy.weights(rows)
        predicted, expected = predictions(rows)
        columns = np.stack([np.ones(len(weights)), expected, weights * predicted, weights * rows.shares, weights])
        products += np.einsum("in,jn->ij", columns, columns)
    coefficient = control_coefficient(products)
    _, mean, known, paid, weight = (products[0] / products[0, 0]).tolist()
    residual = (paid - coefficient * known) / weight if weight > 0 else 0.0
    limited = min(max(coefficient * mean + residual, 0.0), 1.0) - coefficient * mean
    matched = known / weight if weight > 0 else mean

    def terms(rows: Rows, weights: Floats, losses: Floats) -> Terms:
        predicted, expected = predictions(rows)
        controls = expected - matched - weights * (predicted - matched)
        predicted, expected = coefficient * predicted, coefficient * expected
        # `residual` times (weight - mean weight) adds up to 0; with it, the spread of the numerators is that of the value.
        corrections = (weights * (losses - predicted) - residual * (weights - weight)) / (weight or 1.0)
        numerators = expected + corrections + (limited - residual)
        return Terms(numerators, np.ones(len(losses)), weights, losses, controls)

    return terms


@register_estimator("dm", fitted=True, intervals=(NONE,), outcome_models=True)
def direct_method(policy: PolicyOnLog, sample: Sample, outcome_model: str | Regressor | None = None) -> TermsOf:
    """Cross-fit an outcome model to the log; terms are the expected loss of the policy, and weights are not used."""
    predictions = fit_predictions(policy, sample, outcome_model)

    def terms(rows: Rows, weights: Floats, losses: Floats) -> Terms:
        return Terms(predictions(rows)[1], np.ones(len(losses)), weights, losses)

    return terms


def fit_predictions(policy: PolicyOnLog, sample: Sample, outcome_model: str | Regressor | None) -> Predictions:
    """Cross-fit an outcome model; returns the predicted loss of each logged action and the expected one of the policy."""
    settings = _settings(policy, sample.repeatable("A model"))
    model = cross_fit(outcome_model or "critic", sample, settings)
    known: dict[int, tuple[Floats, Floats]] = {}  # of other actions than numbers, which take a search to draw

    def predictions(rows: Rows) -> tuple[Floats, Floats]:
        if rows.first in known:
            return known[rows.first]
        points, shares = policy.points(rows)
        if rows.space.is_number:
            points = np.clip(points, *settings.space.ends)
        predicted = model.predict(rows, np.concatenate([rows.positions[:, np.newaxis], points], axis=1))
        both = predicted[:, 0], (predicted[:, 1:] * shares).sum(axis=1)
        if not rows.space.is_number:
            known[rows.first] = both
        return both

    return predictions


def control_coefficient(products: Floats) -> float:
    """The coefficient of the predictions with the smallest squared error, from products of (1, Q, w q, w u, w) summed over rows.

    Q is the expected prediction of the policy, q that of the logged action, u the loss and w the weight. The error is the
    observed variance and a bias: with the coefficient c, the estimate is off by 1 - c times the mean of the control,
    Q - w q / mean w, as far as it is not 0 by chance. Rows that match nowhere add to that mean, but not to the variance.
    """
    _, mean, known, paid, weight = (products[0] / products[0, 0]).tolist()
    if weight <= 0:
        return 1.0
    weighted = np.array([0.0, 0.0, 0.0, 1.0, -paid / weight]) / weight
    control = np.array([-mean, 1.0, -1.0 / weight, 0.0, known / weight**2])
    spread = float(control @ products @ control)
    if spread <= 1e-12 * products[0, 0]:
        return 0.0
    off = max(float(products[0, 0] * (mean - known / weight)) ** 2 - CHANCE**2 * spread, 0.0)
    return min(max((off - float(weighted @ products @ control)) / (off + spread), 0.0), 1.0)


def _settings(policy: PolicyOnLog, sample: Sample) -> CriticSettings:
    """The number of rows, and the space of the log; a range is widened to all actions of the log and of the policy."""
    total, number = 0, sample.space.is_number
    low, high = sample.span if sample.declared else policy.range(sample.span)
    for batch in sample.batches:
        total += len(batch)
        if len(batch) and number:
            low, high = min(low, float(batch.actions.min())), max(high, float(batch.actions.max()))
    check_has_rows(total)
    return CriticSettings(
        total, ActionSpace((low, high)) if number else sample.space.with_limits(()), sample.scale, seed=0
    )
