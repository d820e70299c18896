"""Densities that were not logged with the action: one value, such as their mean, in many rows."""

from __future__ import annotations

import math

import numpy as np

from manul.offpolicy.diagnosis.latest_rows import LatestRows
from manul.offpolicy.diagnosis.smooth_regression import Flags, SmoothRegression, z_score
from manul.offpolicy.diagnosis.symptoms import Symptom

LIKELY, CERTAIN = 2.5, 4.0  # standard errors
COMMON = 0.05  # of the rows have a density that is looked at
LEAST_ROWS = 500
_FAR = 0.1  # of the range, more than the width of a window with that density
_SIMILAR = 3.0  # times as large or small
_TIMES = 20  # parts of the log, within which rows are compared
_A_SIGN = 3.0  # standard errors
_MOST = 4  # densities that are looked at


def find_filled_densities(rows: LatestRows) -> list[Symptom]:
    """A density of many rows that unusual actions have more often than with similar densities of the same time."""
    if len(rows) < LEAST_ROWS or not rows.continuous or rows.estimated:
        return []
    values, counts = np.unique(rows.densities, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:_MOST]
    for value, count in zip(values[order], counts[order], strict=True):
        common = count >= COMMON * len(rows)
        if common and _are_unusual(rows, float(value)) and _is_anywhere(rows, float(value)):
            share = f"{100 * count / len(rows):.2g} % of the rows have the same density"
            text = f"{share}, also rows with actions that similar densities do not have. "
            advice = (
                "Either it was filled in for missing densities, or the policy plays one more action in every context. Log the "
                "density of each decision, or remove these rows."
            )
            return [("warning", "densities filled with a default", text + advice)]
    return []


def _are_unusual(rows: LatestRows, value: float) -> bool:
    """Whether unusual actions and this density go together, among rows of the same time with similar densities.

    The first test is that of Mantel and Haenszel; the second allows for rows nearby that depend on each other.
    """
    far = (np.abs(rows.positions[:, 0] - rows.greedy[:, 0]) > _FAR + 1 / value).astype(np.float64)
    same, similar = (rows.densities == value).astype(np.float64), _are_similar(rows, value)
    products, variance = np.zeros(len(rows)), 0.0
    for part in np.array_split(np.arange(len(rows)), _TIMES):
        part = part[similar[part]]
        if len(part) > 1:
            products[part] = (far[part] - far[part].mean()) * (same[part] - same[part].mean())
            variance += len(part) ** 2 / (len(part) - 1) * float(far[part].var() * same[part].var())
    return float(products.sum()) > CERTAIN * math.sqrt(variance) and z_score(products) > LIKELY


def _is_anywhere(rows: LatestRows, value: float) -> bool:
    """Whether contexts do not tell which rows have this density, as they do if a policy's windows are narrower in some contexts."""
    numbers = np.flatnonzero(_are_similar(rows, value))
    same = (rows.densities[numbers] == value).astype(np.float64)
    same -= same.mean()
    predictions = SmoothRegression(rows.columns).held_out_predictions(numbers, same, blocks=len(numbers))
    return z_score(same**2 - (same - predictions) ** 2) < _A_SIGN


def _are_similar(rows: LatestRows, value: float) -> Flags:
    similar: Flags = (rows.densities < _SIMILAR * value) & (rows.densities > value / _SIMILAR)
    return similar
