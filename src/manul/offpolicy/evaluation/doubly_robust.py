"""The doubly robust estimator `dr` (Dudik, Langford and Li 2011): the policy's expected loss under an outcome model, plus
the weighted residuals of the model, divided by the mean weight as in `snips`. The direct method `dm` is the model alone.

Predictions are multiplied by a coefficient from 0 to 1, the one with the smallest error: 0 is `snips`, 1 trusts the model.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from manul.actions.decision import Within
from manul.actions.distribution import Atoms, Distribution
from manul.actions.knobs import Knobs
from manul.logs.batching import Logs, Rows, batches, pieces, repeatable
from manul.offpolicy.cross_fitting import CriticSettings
from manul.offpolicy.evaluation import policy_densities
from manul.offpolicy.evaluation.estimator_registry import TermsOf, register_estimator
from manul.offpolicy.evaluation.intervals import NONE, Terms
from manul.offpolicy.evaluation.knob_policies import KnobsPolicy
from manul.offpolicy.evaluation.loss_scaling import scale_losses
from manul.offpolicy.evaluation.outcome_model import CrossFitted, Regressor, cross_fit
from manul.policies.policy import Policy
from manul.utils.validation import Floats, check_has_rows

CHANCE = 2.0  # standard errors that a mean control may be from 0 by chance
POINTS = 16  # equally likely actions at which a predicted loss is averaged, per part of a distribution


@register_estimator("dr", fitted=True, intervals=("bootstrap", "normal"), outcome_models=True)
def doubly_robust(
    policy: Policy,
    log: Logs,
    actions: Within | None,
    losses: Within,
    outcome_model: str | Regressor | None = None,
) -> TermsOf:
    """Cross-fit an outcome model to the log; terms are the expected loss plus the self-normalised residual."""
    predictions = fit_predictions(policy, log, actions, losses, outcome_model)
    products = np.zeros((5, 5))
    for rows in pieces(log, several=True):
        weights = policy_densities.densities(policy, rows) / rows.densities
        predicted, expected = predictions(rows)
        shares = scale_losses(rows, losses)
        columns = np.stack([np.ones(len(weights)), expected, weights * predicted, weights * shares, weights])
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
def direct_method(
    policy: Policy,
    log: Logs,
    actions: Within | None,
    losses: Within,
    outcome_model: str | Regressor | None = None,
) -> TermsOf:
    """Cross-fit an outcome model to the log; terms are the expected loss of the policy, and weights are not used."""
    predictions = fit_predictions(policy, log, actions, losses, outcome_model)

    def terms(rows: Rows, weights: Floats, losses: Floats) -> Terms:
        return Terms(predictions(rows)[1], np.ones(len(losses)), weights, losses)

    return terms


def fit_predictions(
    policy: Policy, log: Logs, actions: Within | None, losses: Within, outcome_model: str | Regressor | None
) -> Callable[[Rows], tuple[Floats, Floats]]:
    """Cross-fit an outcome model; returns the predicted loss of each logged action and the expected one of the policy."""
    settings = _settings(policy, repeatable(log, "A model"), actions, losses)
    model = cross_fit(outcome_model or "critic", log, settings)
    known: dict[int, tuple[Floats, Floats]] = {}  # of several knobs, whose actions take a search to draw

    def predictions(rows: Rows) -> tuple[Floats, Floats]:
        if settings.knobs is not None:
            if rows.first not in known:
                known[rows.first] = _knobs_predictions(model, KnobsPolicy.of(policy), rows)
            return known[rows.first]
        return _predictions(model, policy, rows, settings.actions)

    return predictions


def control_coefficient(products: Floats) -> float:
    """The coefficient of the predictions with the smallest squared error, from products of (1, Q, w q, w u, w) summed over rows.

    Q is the expected prediction of the policy, q that of the logged action, u the loss and w the weight. The error is the
    observed variance and a bias: with the coefficient c, the estimate is off by 1 - c times the mean of the control,
    Q - w q / mean w, as far as it is not 0 by chance. Rows that match nowhere add to that mean, but not to the variance.

    >>> columns = np.array([[1, 1, 1, 1], [0.1, 0.2, 0.1, 0.2], [0.1, 0.2, 0.1, 0.2], [0.1, 0.2, 0.1, 0.2], [1, 1, 1, 1]])
    >>> control_coefficient(columns @ columns.T)    # nothing to gain: the policy is the logged one
    0.0
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


def _settings(policy: Policy, log: Logs, actions: Within | None, losses: Within) -> CriticSettings:
    """The number of rows, and a range that contains all actions of the log and of the policy, or the knobs of the log."""
    knobs = getattr(policy, "knobs", None)
    if isinstance(knobs, Knobs):
        total = sum(len(batch) for batch in batches(log))
        check_has_rows(total)
        return CriticSettings(total=total, actions=(0.0, 1.0), losses=losses, seed=0, knobs=knobs.with_limits(()))
    policy_range: Within = getattr(policy, "actions", (0.0, 1.0))
    low, high = actions or policy_range
    total = 0
    for batch in batches(log):
        total += len(batch)
        if len(batch):
            low, high = min(low, float(batch.actions.min())), max(high, float(batch.actions.max()))
    check_has_rows(total)
    return CriticSettings(total=total, actions=(low, high), losses=losses, seed=0)


def _predictions(model: CrossFitted, policy: Policy, rows: Rows, actions: Within) -> tuple[Floats, Floats]:
    """The predicted loss of each logged action, and the expected loss of the policy on each row."""
    points, shares = action_points(policy, rows, actions)
    predicted = model.predict(rows, np.column_stack([rows.actions, np.clip(points, *actions)]))
    return predicted[:, 0], (predicted[:, 1:] * shares).sum(axis=1)


def _knobs_predictions(model: CrossFitted, policy: KnobsPolicy, rows: Rows) -> tuple[Floats, Floats]:
    draws = policy.draws(rows, policy_densities.inputs(policy.policy, rows))
    predicted = model.predict(rows, np.concatenate([rows.positions[:, np.newaxis], draws], axis=1))
    return predicted[:, 0], predicted[:, 1:].mean(axis=1)


def action_points(policy: Policy, rows: Rows, actions: Within) -> tuple[Floats, Floats]:
    """Actions that represent the distribution of a policy on each row, and their probabilities.

    Agents play a window, and uniform actions with probability epsilon. The mean and the mean square of their action then
    determine the window.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=1)).log
    >>> points, shares = action_points(manul.Cats(leaves=8, bandwidth=1/4, epsilon=0), next(pieces(log)), (0, 1))
    >>> points[0, [0, -1]], shares[0, 0]
    (array([0.296875, 0.765625]), np.float64(0.0625))
    """
    steps = (np.arange(POINTS) + 0.5) / POINTS
    epsilon = _epsilon(policy, rows)
    if epsilon is None:
        return _points_by_row(policy, rows, steps)
    lows, highs = rows.ends(getattr(policy, "actions", actions))
    moments = policy_densities.moments(policy, rows)
    uniform, square = (lows + highs) / 2, (lows**2 + lows * highs + highs**2) / 3
    rest = max(1.0 - epsilon, 1e-12)
    centres = (moments.means - epsilon * uniform) / rest
    halves = np.sqrt(np.maximum(3.0 * ((moments.squares - epsilon * square) / rest - centres**2), 0.0))
    points = centres[:, np.newaxis] + halves[:, np.newaxis] * (2.0 * steps - 1.0)
    if epsilon == 0:
        return points, np.full(points.shape, 1 / POINTS)
    everywhere = lows[:, np.newaxis] + (highs - lows)[:, np.newaxis] * steps
    shares = np.repeat([(1.0 - epsilon) / POINTS, epsilon / POINTS], POINTS)
    return np.hstack([points, everywhere]), np.broadcast_to(shares, (len(lows), 2 * POINTS))


def _epsilon(policy: Policy, rows: Rows) -> float | None:
    """The share of uniform actions of a policy with windows; None if its distributions may have another form."""
    if isinstance(policy, policy_densities.Smoothed):
        return 0.0
    epsilon = getattr(policy, "current_epsilon", None)
    ladder = getattr(policy, "nearby", None)
    if epsilon is None or ladder or not isinstance(policy, policy_densities.Batched):
        return None
    first = policy_densities.distributions(policy, rows.select(slice(1)))[0]
    return None if isinstance(first, Atoms) else float(epsilon)


def _points_by_row(policy: Policy, rows: Rows, steps: Floats) -> tuple[Floats, Floats]:
    pairs = [_quantiles(each, steps) for each in policy_densities.distributions(policy, rows)]
    most = max(len(points) for points, _ in pairs)
    points, shares = np.zeros((2, len(pairs), most))
    for row, (values, masses) in enumerate(pairs):
        points[row], shares[row] = values[0], 0.0
        points[row, : len(values)], shares[row, : len(values)] = values, masses
    return points, shares


def _quantiles(distribution: Distribution | Atoms, steps: Floats) -> tuple[Floats, Floats]:
    if isinstance(distribution, Atoms):
        return distribution.positions, distribution.masses
    edges, densities = distribution.edges, distribution.densities
    points = edges[:-1, np.newaxis] + np.diff(edges)[:, np.newaxis] * steps
    masses = np.diff(edges) * densities / len(steps)
    return points.reshape(-1), np.repeat(masses, len(steps))
