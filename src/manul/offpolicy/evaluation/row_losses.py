"""The rows of a log as estimators use them: losses scaled to [0, 1], and every value checked."""

from __future__ import annotations

from manul.logs.batching import Rows
from manul.types import Floats, Within
from manul.utils.validation import USABLE, check_losses, reject, usable_densities

_REMEDY = "Log the density of each decision, or see manul.offpolicy.estimate_densities."


def scaled_losses(rows: Rows, scale: Within) -> Floats:
    """The losses as shares of their range."""
    return (rows.losses - scale[0]) / (scale[1] - scale[0])


def checked_rows(rows: Rows, scale: Within) -> Rows:
    """The rows, after a check of their losses and densities."""
    check_losses(rows.losses, scale, rows.first)
    reject(~usable_densities(rows.densities), rows.densities, "density", USABLE, _REMEDY, rows.first)
    return rows
