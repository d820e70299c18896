"""Densities for logs that have none: what was played, as a function of the context.

The range is cut into bins, and a softmax of the standardised context says how likely each one is; within a bin all
actions are alike. A share of a uniform density is mixed in, so that weights stay bounded. Nothing that was logged can
tell whether this is right: the log that comes back is marked, and the doctor says so.
"""

from __future__ import annotations

import numpy as np

from manul.actions.ranges import Actions
from manul.logs.log import Log, Selection
from manul.types import Floats, Within
from manul.utils.validation import are_within, check_has_rows, check_range, check_whole_number, range_advice, reject

_FITTED_ROWS = 20_000
_STEPS = 150
_PENALTY = 1e-3
_FLOOR = 0.02


class EstimatedLog(Log):
    """A log whose densities were estimated."""

    densities_estimated = True

    def rows(self, chosen: Selection) -> EstimatedLog:
        """Some of the rounds; what was estimated stays marked."""
        some = super().rows(chosen)
        return EstimatedLog(some.contexts, some.actions, some.densities, some.losses, some.lows, some.highs)


def estimate_densities(log: Log, *, actions: Within | None = None, bins: int = 16) -> EstimatedLog:
    """The log with densities estimated from its contexts and actions, and marked as such; use it when none were logged.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/4), manul.worlds.linear(rounds=2000)).log
    >>> guessed = estimate_densities(log)
    >>> [finding.title for finding in manul.offpolicy.doctor(guessed) if finding.severity == "note"]
    ['estimated densities']
    """
    check_whole_number("bins", bins, 2, 256, "Try 16.")
    check_has_rows(len(log))
    span = Actions(*check_range("actions", actions or getattr(log, "action_range", None) or (0.0, 1.0)))
    places = np.floor((log.actions - span.low) / span.span * bins).astype(np.int64)
    inside = f"in [{span.low:g}, {span.high:g}]"
    reject(~are_within(log.actions, span.low, span.high), log.actions, "actions", inside, range_advice("actions"))
    places = np.minimum(places, bins - 1)
    table = _standardised(log.contexts)
    some = slice(None, None, -(-len(log) // _FITTED_ROWS))
    shares = _softmax(table, _fitted(table[some], places[some], bins))[np.arange(len(log)), places]
    densities = ((1 - _FLOOR) * shares * bins + _FLOOR) / span.span
    return EstimatedLog(log.contexts, log.actions, densities, log.losses, log.lows, log.highs)


def _standardised(contexts: np.ndarray[tuple[int, int], np.dtype[np.float32]]) -> Floats:
    table = contexts.astype(np.float64)
    spread = table.std(axis=0)
    table = (table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.column_stack([np.ones(len(table)), table])


def _softmax(table: Floats, weights: Floats) -> Floats:
    scores = np.einsum("nd,dk->nk", table, weights)
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = powers / powers.sum(axis=1, keepdims=True)
    return shares


def _fitted(table: Floats, places: np.ndarray[tuple[int], np.dtype[np.int64]], bins: int) -> Floats:
    """Accelerated gradient descent on the penalised likelihood; half the mean square of a row bounds its curvature."""
    wanted = np.eye(bins)[places]
    curvature = 0.5 * float((table * table).sum(axis=1).mean()) + _PENALTY
    weights = ahead = np.zeros((table.shape[1], bins))
    for step in range(_STEPS):
        slope = np.einsum("nd,nk->dk", table, _softmax(table, ahead) - wanted) / len(table) + _PENALTY * ahead
        before, weights = weights, ahead - slope / curvature
        ahead = weights + step / (step + 3) * (weights - before)
    return weights
