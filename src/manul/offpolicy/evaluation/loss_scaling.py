"""The losses of a log as estimators use them: checked, and scaled to [0, 1]."""

from __future__ import annotations

from manul.logs.batching import Rows
from manul.types import Floats, Within
from manul.utils.validation import USABLE, check_losses, reject, usable_densities

_ADVICE = "Log the density of each decision, or estimate it with manul.offpolicy.estimate_densities."


def scale_losses(rows: Rows, scale: Within) -> Floats:
    """The losses as shares of their range; raises InputError if a loss or density is unusable."""
    check_losses(rows.losses, scale, rows.first)
    reject(~usable_densities(rows.densities), rows.densities, "density", USABLE, _ADVICE, rows.first)
    return (rows.losses - scale[0]) / (scale[1] - scale[0])
