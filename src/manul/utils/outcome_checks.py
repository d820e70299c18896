"""What an outcome must be before anything is learned from it: the one home of those sentences."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manul.errors import InputError
from manul.types import Floats, Within

AS_DECIDED = "Pass the decision as decide returned it."
# Beyond these, weights and their squares overflow; no policy that can be evaluated comes near them.
LEAST_DENSITY, LARGEST_DENSITY = 1e-100, 1e100
USABLE = f"in [{LEAST_DENSITY:g}, {LARGEST_DENSITY:g}]"
DECLARE = "Declare the range with losses=(low, high)."


def check_outcomes(
    actions: Floats, densities: Floats, losses: Floats, lows: Floats, highs: Floats, *, loss_range: Within
) -> None:
    """Refuses actions outside their range, densities that no draw can have, and losses that were not declared.

    >>> one = np.ones(1)
    >>> check_outcomes(0.5 * one, one, 0.25 * one, 0 * one, one, loss_range=(0.0, 1.0))
    """
    low, high = loss_range
    inside = (actions >= lows) & (actions <= highs)
    refuse(~inside, actions, "action", f"in [{lows.flat[0]:g}, {highs.flat[0]:g}]", AS_DECIDED)
    refuse(~usable_densities(densities), densities, "density", USABLE, AS_DECIDED)
    refuse(~((losses >= low) & (losses <= high)), losses, "loss", f"in [{low:g}, {high:g}]", DECLARE)


def usable_densities(densities: Floats) -> npt.NDArray[np.bool_]:
    """Which densities a draw can have, and weights can be made of.

    >>> usable_densities(np.array([0.0, 0.24, np.inf]))
    array([False,  True, False])
    """
    usable: npt.NDArray[np.bool_] = (densities >= LEAST_DENSITY) & (densities <= LARGEST_DENSITY)
    return usable


def refuse(bad: npt.NDArray[np.bool_], values: Floats, name: str, rule: str, remedy: str) -> None:
    """Raises for the first value that breaks a rule.

    >>> refuse(np.array([False]), np.ones(1), "loss", "in [0, 1]", "Declare it.")
    """
    if bad.any():
        first = int(np.argmax(bad))
        where = "" if len(values) == 1 else f" in row {first}"
        raise InputError(f"{name} must be {rule}; got {values[first]:g}{where}. {remedy}")
