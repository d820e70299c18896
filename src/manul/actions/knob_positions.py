"""The positions of many actions with several knobs, as the core takes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.actions.knobs import Choice, Knob, Knobs, Span
from manul.errors import InputError
from manul.utils.validation import Floats


def position_table(knobs: Knobs, columns: Mapping[str, npt.ArrayLike]) -> Floats:
    """One row of positions per action, from columns by knob; raises InputError for a value that a knob cannot have.

    >>> from manul.actions.knobs import Stepped
    >>> knobs = Knobs.check({"price": (10, 50), "days": Stepped(1, 4, 1), "template": Choice(["a", "b"])})
    >>> position_table(knobs, {"price": [20.0], "days": [1.0], "template": ["b"]})
    array([[0.25 , 0.125, 1.   ]])
    """
    parts = [_positions(knob, np.asarray(columns[name]), name) for name, knob in knobs.knobs]
    return np.ascontiguousarray(np.column_stack(parts), dtype=np.float64)


def check_positions(knobs: Knobs, positions: npt.NDArray[Any], count: int) -> Floats:
    """Check a table of positions: one row for each of `count` contexts, from 0 to 1, or the number of an option.

    >>> check_positions(Knobs.check({"price": (10, 50)}), np.array([[1.5]]), 1)
    Traceback (most recent call last):
    manul.errors.InputError: positions of price must be in [0, 1], got 1.5.
    """
    table = np.ascontiguousarray(positions, dtype=np.float64)
    if table.shape != (count, len(knobs.knobs)):
        raise InputError(
            f"actions must be {count} rows of {len(knobs.knobs)} positions, got an array of shape {table.shape}.",
            "actions",
        )
    for (name, knob), column in zip(knobs.knobs, table.T, strict=True):
        highest = knob.volume - 1 if isinstance(knob, Choice) else 1.0
        bad = ~((column >= 0) & (column <= highest))
        if bad.any():
            raise InputError(f"positions of {name} must be in [0, {highest:g}], got {column[bad][0]:g}.", "actions")
    return table


def _positions(knob: Knob, values: npt.NDArray[Any], name: str) -> Floats:
    if isinstance(knob, Span) and values.dtype == np.float64:
        bad = ~((values >= knob.low) & (values <= knob.high))
        if bad.any():
            knob.position(values[bad][0], name)
        return np.clip((values - knob.low) / knob.volume, 0.0, 1.0)
    # Steps and options are few, so their positions are computed once; True is not 1.
    known: dict[tuple[type, Any], float] = {}
    pairs = [(type(value), value) for value in values.tolist()]
    for pair in dict.fromkeys(pairs):
        known[pair] = knob.position(pair[1], name)
    return np.array([known[pair] for pair in pairs], dtype=np.float64)
