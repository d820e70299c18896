"""Estimation of densities for logs that have none: a model of the logged actions given the context.

The range is divided into bins, whose probabilities are a softmax of the standardised context; the density is uniform within
a bin. A uniform density is mixed in to bound the weights. The log cannot show whether the model is right, so the resulting
log is marked, and the doctor reports it.
"""

from __future__ import annotations

import numpy as np

from manul.actions.ranges import Actions
from manul.logs.log import Log
from manul.types import Floats, Within
from manul.utils.validation import are_within, check_has_rows, check_range, check_whole_number, range_advice, reject

_MAX_ROWS = 20_000  # for fitting; more rows of a log change the model little
_STEPS = 150  # of gradient descent, enough to converge on standardised contexts
_PENALTY = 1e-3  # on the squared weights
_FLOOR = 0.02  # the share of the uniform density


def estimate_densities(log: Log, *, actions: Within | None = None, bins: int = 16) -> Log:
    """Estimate the densities of a log from its contexts and actions, for logs without densities.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/4), manul.worlds.linear(rounds=2000)).log
    >>> estimated = estimate_densities(log)
    >>> [finding.title for finding in manul.offpolicy.doctor(estimated) if finding.severity == "note"]
    ['estimated densities']
    """
    check_whole_number("bins", bins, 2, 256, "Try 16.")
    check_has_rows(len(log))
    span = Actions(*check_range("actions", actions or getattr(log, "action_range", None) or (0.0, 1.0)))
    labels = np.floor((log.actions - span.low) / span.span * bins).astype(np.int64)
    inside = f"in [{span.low:g}, {span.high:g}]"
    reject(~are_within(log.actions, span.low, span.high), log.actions, "actions", inside, range_advice("actions"))
    labels = np.minimum(labels, bins - 1)
    table = _standardise(log.contexts)
    sample = slice(None, None, -(-len(log) // _MAX_ROWS))
    probabilities = _softmax(table, _fit(table[sample], labels[sample], bins))[np.arange(len(log)), labels]
    densities = ((1 - _FLOOR) * probabilities * bins + _FLOOR) / span.span
    return Log(log.contexts, log.actions, densities, log.losses, log.lows, log.highs, densities_estimated=True)


def _standardise(contexts: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> Floats:
    table = contexts.astype(np.float64)
    spread = table.std(axis=0)
    table = (table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.column_stack([np.ones(len(table)), table])


def _softmax(table: Floats, weights: Floats) -> Floats:
    scores = np.einsum("nd,dk->nk", table, weights)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    probabilities: Floats = powers / powers.sum(axis=1, keepdims=True)
    return probabilities


def _fit(table: Floats, labels: np.ndarray[tuple[int], np.dtype[np.int64]], bins: int) -> Floats:
    """Accelerated gradient descent on the penalised likelihood; half the mean squared norm of a row bounds its curvature."""
    targets = np.eye(bins)[labels]
    curvature = 0.5 * float((table * table).sum(axis=1).mean()) + _PENALTY
    weights = ahead = np.zeros((table.shape[1], bins))
    for step in range(_STEPS):
        slope = np.einsum("nd,nk->dk", table, _softmax(table, ahead) - targets) / len(table) + _PENALTY * ahead
        before, weights = weights, ahead - slope / curvature
        ahead = weights + step / (step + 3) * (weights - before)
    return weights
