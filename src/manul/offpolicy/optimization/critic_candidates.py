"""The candidates "auto": the critic with a bandwidth, valued on rows that it was not trained on.

The schedule of training is the one with the lowest squared error on held-out rows. The value of each bandwidth is doubly
robust. The narrowest bandwidth is chosen whose value is not above the lowest value plus one standard error: with the same
critic, a narrower window is nearly always better, but its value is less certain.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from manul.agents.auto import Auto
from manul.logs.batching import Logs, Rows, pieces
from manul.offpolicy import cross_fitting
from manul.offpolicy.cross_fitting import CriticSettings
from manul.offpolicy.evaluation.loss_scaling import scale_losses
from manul.offpolicy.evaluation.paired_values import PairedValue
from manul.offpolicy.optimization.results import Row
from manul.types import Floats

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
    judged: Floats | None = None  # with several knobs, the expected loss by a critic of other rows


def window_terms(critic: Auto, rows: Rows, bandwidth: float) -> WindowTerms:
    """The weights of the critic's best windows, and the losses that it predicts for the logged and its own actions."""
    lows, highs = rows.ends(critic.actions)
    contexts = cross_fitting.critic_contexts(rows)
    centres = critic.centres_many(contexts, bandwidth, rows.within)
    halves = np.minimum(bandwidth, (highs - lows) / 2)
    inside = np.abs(rows.actions - centres) <= halves
    weights = np.where(inside, 1.0 / (2.0 * halves * rows.densities), 0.0)
    steps = (np.arange(POINTS) + 0.5) / POINTS * 2.0 - 1.0
    points = np.clip(centres[:, np.newaxis] + halves[:, np.newaxis] * steps, lows[:, np.newaxis], highs[:, np.newaxis])
    losses = cross_fitting.predict(critic, rows, np.column_stack([rows.actions, points]))
    return WindowTerms(weights, halves, losses[:, 0], losses[:, 1:].mean(axis=1))


def weight_cap(total: int) -> float:
    """Weights are capped here when a policy is valued, so that one small density has little effect."""
    return 10.0 * math.sqrt(total)


def squared_errors(critics: Sequence[Auto], rows: Rows, settings: CriticSettings) -> Floats:
    """The sum of the squared errors of each critic on rows."""
    losses = scale_losses(rows, settings.losses)
    return np.array([((cross_fitting.predict(each, rows, rows.positions) - losses) ** 2).sum() for each in critics])


def bandwidth_values(critic: Auto, rows: Rows, settings: CriticSettings) -> list[PairedValue]:
    """The values of all bandwidths on held-out rows."""
    low, high = settings.actions
    losses, cap = scale_losses(rows, settings.losses), weight_cap(settings.total)
    values = []
    for share in SHARES:
        terms = window_terms(critic, rows, share * (high - low))
        values.append(PairedValue())
        values[-1].add(np.minimum(terms.weights, cap), losses, terms.predicted, terms.expected)
    return values


def held_out_windows(log: Logs, total: int) -> Iterator[list[tuple[int, Rows]]]:
    """The rows of each piece of a log by fold."""
    for piece in pieces(log):
        yield [(fold, rows) for fold, _, rows in cross_fitting.fold_rows(piece, total)]


def is_trusted(value: PairedValue) -> bool:
    """Whether enough rows have a positive weight."""
    return value.hits >= FEWEST_HITS


def choose(rows: Sequence[Row]) -> int:
    """The number of the chosen bandwidth; rows begin with the narrowest, and their penalties are standard errors.

    >>> choose([Row("auto", 0.1, None, 0.5, 0.1, 0.6), Row("auto", 0.2, None, 0.4, 0.1, 0.5)])
    0
    """
    lowest = min(row.objective for row in rows)
    if math.isinf(lowest):
        return len(rows) - 1  # the log says nothing; the widest window is the most cautious
    return next(number for number, row in enumerate(rows) if row.estimate <= lowest and not math.isinf(row.penalty))
