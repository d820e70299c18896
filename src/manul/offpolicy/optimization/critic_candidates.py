"""The candidates "auto": the critic with a bandwidth, valued on rows that it was not trained on.

The schedule of training is the one with the lowest squared error on held-out rows. The value of each bandwidth is doubly
robust. The narrowest bandwidth is chosen whose value is not above the lowest value plus one standard error: with the same
critic, a narrower window is nearly always better, but its value is less certain. Bandwidths whose gain the log can show are
preferred.

If actions are no numbers, there is one candidate, whose windows the critic chooses. Few logged decisions match those of another policy,
so a model must say what it loses: a critic that learned from the held-out rows only, because a critic finds its own actions
better than they are.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from manul.actions.pieces import KnobPieces
from manul.actions.space import UNNAMED
from manul.agents.auto import Auto, window_centres
from manul.logs.rows import Rows
from manul.logs.sample import Sample
from manul.offpolicy import cross_fitting
from manul.offpolicy.cross_fitting import CriticSettings
from manul.offpolicy.evaluation.exact_mass import PolicyTerms
from manul.offpolicy.evaluation.objections import is_supported
from manul.offpolicy.evaluation.paired_values import PairedValue
from manul.offpolicy.evaluation.piece_masses import overlay
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog
from manul.utils.validation import Floats

SHARES = tuple(2.0**-power for power in range(7, 2, -1))  # bandwidths as shares of the range: 1/128 to 1/8
POINTS = 16  # at which the predicted loss is averaged over a window
FEWEST_HITS = 30  # rows with a positive weight, below which a value is not trusted


@dataclass(frozen=True)
class WindowTerms:
    """Windows of one bandwidth on rows: importance weights, half widths, and predicted losses."""

    weights: Floats
    halves: Floats
    predicted: Floats
    expected: Floats
    judged: Floats | None = None  # if actions are no numbers, the expected loss by a critic of other rows
    exact: PolicyTerms | None = None  # if the masses on the logged pieces are known and asked for


def window_terms(critic: Auto, rows: Rows, bandwidth: float, *, exact: bool = False) -> WindowTerms:
    """The weights of the critic's best windows, and the losses that it predicts for the logged and its own actions.

    With `exact`, also the masses of the windows on the pieces of the log, if it has any.
    """
    lows, highs = rows.ends()
    contexts = cross_fitting.critic_contexts(rows)
    centres = window_centres(critic, contexts, bandwidth, rows.within)
    halves = np.minimum(bandwidth, (highs - lows) / 2)
    inside = np.abs(rows.actions - centres) <= halves
    weights = np.where(inside, 1.0 / (2.0 * halves * rows.densities), 0.0)
    steps = (np.arange(POINTS) + 0.5) / POINTS * 2.0 - 1.0
    points = np.clip(centres[:, np.newaxis] + halves[:, np.newaxis] * steps, lows[:, np.newaxis], highs[:, np.newaxis])
    losses = cross_fitting.predict(critic, rows, np.column_stack([rows.actions, points]))
    known = _exact_terms(rows, weights, centres, halves, losses[:, 1:]) if exact else None
    return WindowTerms(weights, halves, losses[:, 0], losses[:, 1:].mean(axis=1), exact=known)


def _exact_terms(rows: Rows, weights: Floats, centres: Floats, halves: Floats, curves: Floats) -> PolicyTerms | None:
    """The masses of windows, with the predicted losses at the middles of `POINTS` equal parts of each.

    The prediction of an action is that of its part, so that the mean over the window is exact.
    """
    logged = None if rows.pieces is None else rows.pieces[UNNAMED]
    if logged is None or not (np.diff(logged.starts) > 0).all():
        return None
    edges = centres[:, np.newaxis] + halves[:, np.newaxis] * np.linspace(-1.0, 1.0, POINTS + 1)
    densities = np.repeat(0.5 / halves, POINTS)
    parts = KnobPieces(np.arange(len(rows) + 1) * POINTS, edges[:, :-1].ravel(), edges[:, 1:].ravel(), densities)
    places = np.clip((rows.actions - edges[:, 0]) / (2.0 * halves) * POINTS, 0, POINTS - 1).astype(np.int64)
    return PolicyTerms(weights, overlay(parts, logged), curves[np.arange(len(rows)), places], curves.ravel())


def drawn_terms(critic: Auto, judge: Auto, rows: Rows) -> WindowTerms:
    """The weights of a critic whose actions are no numbers, and the losses that it and its judge predict for actions drawn from it."""
    policy = PolicyOnLog(critic)
    points = np.concatenate([rows.positions[:, np.newaxis], policy.points(rows)[0]], axis=1)
    own, judged = (cross_fitting.predict(each, rows, points) for each in (critic, judge))
    halves, weights = np.full(len(rows), 0.5), policy.weights(rows)
    expected, expected_by_judge = (each[:, 1:].mean(axis=1) for each in (own, judged))
    return WindowTerms(weights, halves, own[:, 0], expected, expected_by_judge, policy.exact_terms(rows))


def weight_cap(total: int) -> float:
    """Weights are capped here when a policy is valued, so that one small density has little effect."""
    return 10.0 * math.sqrt(total)


def squared_errors(critics: Sequence[Auto], rows: Rows) -> Floats:
    """The sum of the squared errors of each critic on rows."""
    predictions = (cross_fitting.predict(each, rows, rows.positions) for each in critics)
    return np.array([((predicted - rows.shares) ** 2).sum() for predicted in predictions])


def bandwidth_values(critic: Auto, rows: Rows, settings: CriticSettings) -> list[PairedValue]:
    """The values of all bandwidths on held-out rows."""
    low, high = settings.space.ends
    cap, values = weight_cap(settings.total), []
    for share in SHARES:
        terms = window_terms(critic, rows, share * (high - low))
        values.append(PairedValue())
        values[-1].add(np.minimum(terms.weights, cap), rows.shares, terms.predicted, terms.expected)
    return values


def held_out_windows(sample: Sample, total: int) -> Iterator[list[tuple[int, Rows]]]:
    """The rows of each piece of a log by fold."""
    for piece in sample.pieces():
        yield [(fold, rows) for fold, _, rows in cross_fitting.fold_rows(piece, total)]


def is_trusted(value: PairedValue) -> bool:
    return value.hits >= FEWEST_HITS


def supported(values: Sequence[PairedValue]) -> list[int]:
    """The numbers of the bandwidths of which the log has so many decisions that it can show a gain."""
    return [number for number, value in enumerate(values) if is_supported(value.mean_weight, value.effective_size)]


def choose(values: Sequence[PairedValue]) -> int:
    """The number of the chosen bandwidth; values begin with the narrowest.

    Bandwidths with many matching decisions come first, if they promise a gain: what the log cannot check is often worse than
    it looks. Without such a promise, the narrowest of all is as good a guess as before.
    """
    trusted = [number for number, value in enumerate(values) if is_trusted(value)]
    if not trusted:
        return len(values) - 1  # the log says nothing; the widest window is the most cautious
    checked = [number for number in supported(values) if number in trusted]
    if checked and values[narrowest := _narrowest(values, checked)].gain > 0:
        return narrowest
    return _narrowest(values, trusted)


def _narrowest(values: Sequence[PairedValue], numbers: Sequence[int]) -> int:
    """The first number whose value is not above the lowest value plus one standard error."""
    lowest = min(values[number].value + values[number].error for number in numbers)
    return next(number for number in numbers if values[number].value <= lowest)
