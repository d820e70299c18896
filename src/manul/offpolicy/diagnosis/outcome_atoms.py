"""Losses that occur again and again: zeros in place of large losses, and a ceiling inside the declared range."""

from __future__ import annotations

import math

import numpy as np

from manul.actions.decision import Within
from manul.offpolicy.diagnosis.latest_rows import LatestRows
from manul.offpolicy.diagnosis.smooth_regression import SmoothRegression
from manul.offpolicy.diagnosis.symptoms import Symptom

CERTAIN = 5.0  # standard errors
COMMON = 0.02  # of the rows have a loss that is looked at
LEAST_ROWS = 500
_VARIED = 50  # different losses; fewer are counts or ratings, whose values all repeat
_LOWEST = 0.1  # of the rows, by expected loss: there the best loss is natural
_TOPS = (0.5, 0.3, 0.2, 0.1, 0.05, 0.025)  # shares of the rows whose expected losses count as large


def find_atoms(rows: LatestRows, declared: Within) -> list[Symptom]:
    """Zeros where large losses are expected, and a ceiling."""
    values, counts = np.unique(rows.losses, return_counts=True)
    if len(rows) < LEAST_ROWS or len(values) < _VARIED:
        return []
    best, worst = counts[0] / len(rows), counts[-1] / len(rows)
    return [
        *(_lost(rows, float(values[0])) if COMMON <= best < 1 - COMMON else []),
        *(_ceiling(rows, float(values[-1]), worst, declared) if worst >= COMMON else []),
    ]


def _ceiling(rows: LatestRows, value: float, share: float, declared: Within) -> list[Symptom]:
    """A note: whether nothing costs more, or what costs more was cut, no log can show. Zero is a natural end."""
    if value == 0 or value >= declared[1] - 1e-9 * (declared[1] - declared[0]):
        return []
    outcome = rows.outcome
    which, end, comparison = ("smallest", "a floor", "less") if outcome.higher else ("largest", "a ceiling", "more")
    stated, limit = outcome.from_loss(value), outcome.from_loss(declared[1])
    text = (
        f"{100 * share:.2g} % of the {outcome.plural} are {stated:g}, the {which}, though the range goes to {limit:g}. "
    )
    advice = (
        f"If they were cut there, bad policies look better than they are; if {comparison} is impossible, all is well."
    )
    return [("note", f"{outcome.plural} end at {end}", text + advice)]


def _lost(rows: LatestRows, value: float) -> list[Symptom]:
    """Rows of which the best loss is the rarer the larger the other losses near them are; if it becomes more frequent, losses are lost."""
    lost = rows.losses == value
    capped = np.minimum(rows.losses, np.quantile(rows.losses[~lost], 0.99))
    expected = SmoothRegression(rows.decisions).held_out_predictions(np.arange(len(rows)), capped, ~lost)
    order = np.argsort(expected, kind="stable")
    lost = lost[order[int(_LOWEST * len(rows)) :]]
    for top in _TOPS:
        few, many = lost[: -int(top * len(rows))], lost[-int(top * len(rows)) :]
        pooled = lost.mean()
        error = math.sqrt(max(pooled * (1 - pooled), 1e-9) * (1 / len(few) + 1 / len(many)))
        if many.mean() - few.mean() > CERTAIN * error:
            return [_lost_symptom(rows, value, float(many.mean()), float(few.mean()))]
    return []


def _lost_symptom(rows: LatestRows, value: float, often: float, seldom: float) -> Symptom:
    outcome = rows.outcome
    stated, worst = outcome.from_loss(value), "lowest" if outcome.higher else "largest"
    text = (
        f"{100 * often:.2g} % of the {outcome.plural} are {stated:g} where the {worst} are expected, "
        f"and {100 * seldom:.2g} % where better ones are. "
    )
    advice = (
        f"Either {outcome.plural} were lost and {stated:g} was filled in, or such decisions do end with {stated:g} more often. "
        f"Remove the rows whose {outcome.name} is unknown."
    )
    return "warning", f"{outcome.plural} filled with a default", text + advice
