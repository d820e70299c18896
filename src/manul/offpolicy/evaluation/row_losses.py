"""The rows of a log as estimators use them: losses as shares of their range, and nothing that cannot be used."""

from __future__ import annotations

import numpy as np

from manul.errors import InputError
from manul.logs.pieces import Rows
from manul.types import Floats, Within
from manul.utils.outcome_checks import USABLE, usable_densities

_REMEDY = "Log the density of each decision, or see manul.offpolicy.estimate_densities."


def scaled_losses(rows: Rows, scale: Within) -> Floats:
    """The losses as shares of their range."""
    return (rows.losses - scale[0]) / (scale[1] - scale[0])


def checked_rows(rows: Rows, scale: Within) -> Rows:
    """The rows, unless a loss or a density cannot be used."""
    low, high = scale
    inside = (rows.losses >= low) & (rows.losses <= high)
    for name, values, good, rule, remedy in (
        ("loss", rows.losses, inside, f"in [{low:g}, {high:g}]", "Declare the range with losses=(low, high)."),
        ("density", rows.densities, usable_densities(rows.densities), USABLE, _REMEDY),
    ):
        if not good.all():
            bad = int(np.argmin(good))
            raise InputError(f"{name} must be {rule}; got {values[bad]:g} in row {rows.first + bad}. {remedy}")
    return rows
