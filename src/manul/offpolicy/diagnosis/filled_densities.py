"""Densities that were not logged with the action: one value, such as their mean, in many rows."""

from __future__ import annotations

import math

import numpy as np

from manul.offpolicy.diagnosis.latest_rows import LatestRows
from manul.offpolicy.diagnosis.symptoms import Symptom

CERTAIN = 4.0  # standard errors
COMMON = 0.05  # of the rows have a density that is looked at
LEAST_ROWS = 500
_FAR = 0.1  # of the range, more than the width of a window with that density
_SIMILAR = 3.0  # times as large or small
_TIMES = 20  # parts of the log, within which rows are compared
_MOST = 4  # densities that are looked at


def find_filled_densities(rows: LatestRows) -> list[Symptom]:
    """A density of many rows that unusual actions have more often than with similar densities of the same time.

    >>> rng = np.random.default_rng(0)
    >>> explored, filled = rng.random(4000) < 0.1, rng.random(4000) < 0.3
    >>> actions = np.where(explored, rng.random(4000), 0.5 + 0.05 * rng.random(4000))[:, np.newaxis]
    >>> densities = np.where(filled, 15.0, np.where(explored, 0.1, rng.uniform(14, 16, 4000)))
    >>> rows = LatestRows(np.zeros((4000, 0)), actions, densities, densities, rewards=False, estimated=False, continuous=True)
    >>> find_filled_densities(rows)[0][1]
    'densities filled with a default'
    """
    if len(rows) < LEAST_ROWS or not rows.continuous or rows.estimated:
        return []
    values, counts = np.unique(rows.densities, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST]
    for value, count in zip(values[order], counts[order], strict=True):
        if count >= COMMON * len(rows) and _z_score(rows, float(value)) > CERTAIN:
            share = f"{100 * count / len(rows):.2g} % of the rows have the same density"
            text = f"{share}, also rows with actions that similar densities do not have. "
            advice = (
                "Either it was filled in for missing densities, or the policy plays one more action in every context. Log the "
                "density of each decision, or remove these rows."
            )
            return [("warning", "densities filled with a default", text + advice)]
    return []


def _z_score(rows: LatestRows, value: float) -> float:
    """The Mantel-Haenszel statistic of unusual actions in rows with this density, against similar ones of the same time."""
    far = np.abs(rows.positions[:, 0] - rows.greedy[:, 0]) > _FAR + 1 / value
    same = rows.densities == value
    similar = (rows.densities < _SIMILAR * value) & (rows.densities > value / _SIMILAR)
    excess = variance = 0.0
    for part in np.array_split(np.arange(len(rows)), _TIMES):
        part = part[similar[part]]
        total, ours, unusual = len(part), int(same[part].sum()), int(far[part].sum())
        if total > 1:
            excess += float((far[part] & same[part]).sum()) - ours * unusual / total
            variance += ours * (total - ours) * unusual * (total - unusual) / (total**2 * (total - 1))
    return excess / math.sqrt(variance) if variance > 0 else 0.0
