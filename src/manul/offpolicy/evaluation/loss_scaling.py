"""The losses of a log as estimators use them: checked, and scaled to [0, 1]."""

from __future__ import annotations

import numpy as np

from manul.actions.decision import Within
from manul.logs.batching import Rows
from manul.utils.validation import USABLE, Floats, are_within, reject, usable_densities

_ADVICE = "Log the density of each decision, or estimate it with manul.offpolicy.estimate_densities."
_FLOOR_ADVICE = "Log the smallest density of any action, or omit floors."


def scale_losses(rows: Rows, scale: Within) -> Floats:
    """The losses as shares of their range; raises InputError if a loss, density or floor is unusable."""
    rows.outcome.with_losses(scale).check(rows.losses, rows.first)
    reject(~usable_densities(rows.densities), rows.densities, "density", USABLE, _ADVICE, rows.first)
    if rows.floors is not None:
        outside = ~(np.isnan(rows.floors) | are_within(rows.floors, 0.0, rows.densities))
        reject(outside, rows.floors, "floor", "from 0 to the density of its row, or NaN", _FLOOR_ADVICE, rows.first)
    return (rows.losses - scale[0]) / (scale[1] - scale[0])
