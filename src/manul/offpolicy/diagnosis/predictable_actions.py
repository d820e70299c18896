"""Actions that the contexts predict better than the logged densities allow.

Whatever the policy did, given the context and everything before, 1 / (density * length of the range) of the actions in an interval
averages the interval's share of the range. The interval is drawn around the action that earlier rows predict from the context, so the
test is sharp where the policy plays, and wrong densities there are found even if next to no row explored. Bets
(`intervals.Wealth`) keep the probability of a false alarm below `FAILURE`.
"""

from __future__ import annotations

import math

import numpy as np

from manul.offpolicy.diagnosis.latest_rows import LatestRows
from manul.offpolicy.diagnosis.smooth_regression import SmoothRegression
from manul.offpolicy.diagnosis.symptoms import Symptom
from manul.utils.validation import Floats

FAILURE = 1e-4  # the probability of a false alarm
LEAST_ROWS = 400
_PARTS = 8  # each is predicted by a model of those before
_RECENT = 300  # rows that show how wide the policy's windows are
_WIDTHS = (0.5, 0.8)  # of a window of the policy
_BETS = 2.0 ** np.arange(-8, 4)


def find_predictable_actions(rows: LatestRows, resolution: float) -> list[Symptom]:
    """An error if actions are predicted too well; `resolution` is the distance of neighbouring actions, as a share of the range."""
    if len(rows) < LEAST_ROWS or not rows.continuous or rows.estimated:
        return []
    values = {width: _relative_weights(rows, width, resolution) for width in _WIDTHS}
    wealths = {width: _log_wealth(column) for width, column in values.items()}
    best = max(wealths, key=lambda width: wealths[width])
    if wealths[best] <= math.log(len(_WIDTHS) / FAILURE):
        return []
    often = f"{values[best].mean():.3g} times as frequent as their densities say"
    text = f"Near the action that the context predicts, actions are {often}. "
    advice = (
        "The densities are too small, or a column of the context is only known after the decision. Log the density of each "
        "action as it was drawn."
    )
    return [("error", "actions too predictable", text + advice)]


def _relative_weights(rows: LatestRows, width: float, resolution: float) -> Floats:
    """For each row, 1 / density in the interval, relative to its length; these average at most 1."""
    model, positions, values = SmoothRegression(rows.columns), rows.positions[:, 0], []
    parts = np.array_split(np.arange(len(rows)), _PARTS)
    for number, part in enumerate(parts[1:], 1):
        before = np.concatenate(parts[:number])
        usual = np.minimum(rows.densities[before], np.quantile(rows.densities[before], 0.9))
        model.fit(before, positions[before], usual / usual.mean())
        centre = np.clip(model.predict(part), 0, 1)
        half = min(width / (2 * float(np.quantile(rows.densities[before[-_RECENT:]], 0.75))), 0.5)
        low, high = np.maximum(centre - half, 0), np.minimum(centre + half, 1)
        inside = (positions[part] >= low) & (positions[part] <= high)
        values.append(
            inside / (rows.densities[part] * (high - low + resolution))
        )  # one more action than the length has room for
    return np.concatenate(values)


def _log_wealth(values: Floats) -> float:
    logs = np.array([np.log1p(bet * values).sum() - len(values) * math.log1p(bet) for bet in _BETS])
    return float(logs.max() + math.log(np.exp(logs - logs.max()).mean()))
