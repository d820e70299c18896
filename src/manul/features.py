"""Contexts as people have them, turned into rows of numbers for the core."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from manul.errors import InputError
from manul.types import Context

Row = npt.NDArray[np.float32]


def row(context: Context) -> Row:
    """One context as a row; None is a context with nothing in it.

    >>> row([1, 2.5])
    array([1. , 2.5], dtype=float32)
    """
    values = _numbers([] if context is None else context)
    if values.ndim != 1:
        raise InputError(
            f"context must be one row of numbers; got an array of shape {values.shape}. Use the _many form for several rows."
        )
    _check_finite(values[np.newaxis], "context")
    return values


def matrix(contexts: npt.ArrayLike) -> Row:
    """Many contexts, one per row.

    >>> matrix([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    values = _numbers(contexts)
    if values.ndim != 2:
        raise InputError(
            f"contexts must be a table with one row per context; got an array of shape {values.shape}. Use reshape(-1, width)."
        )
    _check_finite(values, "contexts")
    return values


def check_width(width: int, expected: int) -> None:
    """Refuses a context of another width than the first one had.

    >>> check_width(3, 3)
    """
    if width != expected:
        raise InputError(
            f"context must have {expected} numbers, as the first one had; got {width}. Start a new agent for other features."
        )


def _numbers(values: npt.ArrayLike) -> Row:
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "biuf" and numbers.size:
            numbers = np.asarray(values, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(numbers, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(f"context must be numbers; got {_short(values)}. Encode text as numbers first.") from None


def _check_finite(values: Row, name: str) -> None:
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        at_row, column = bad[0]
        where = f"column {column}" if name == "context" else f"row {at_row}, column {column}"
        raise InputError(
            f"{name} must be finite numbers; got {values[at_row, column]} in {where}. Fill gaps before deciding."
        )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
