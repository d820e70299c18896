"""Contexts that vary one feature and hold the others at typical values."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.contexts import data_frames
from manul.contexts.dates import days, from_json
from manul.contexts.records import is_missing, is_record, to_fields
from manul.errors import InputError, ParameterError, remedy

POINTS, LABELS = 200, 12  # per plot: a smooth line, and as many texts as fit below an axis
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sweep:
    """Contexts that vary one feature, their positions on an axis, those of the observed contexts, and labels of texts.

    The positions of dates are days since 1970.
    """

    contexts: list[Any]
    positions: Floats
    observed: Floats
    labels: tuple[str, ...] = ()
    dates: bool = False


def sweep(contexts: object, feature: int | str) -> Sweep:
    """Contexts that differ only in one feature, over its observed range.

    >>> sweep({"age": [1.0, 2.0, 9.0], "city": ["Oslo", "Rome", "Oslo"]}, "city").contexts
    [{'age': 2.0, 'city': 'Oslo'}, {'age': 2.0, 'city': 'Rome'}]
    """
    fields = _fields(contexts)
    if fields is not None:
        return _sweep_fields(fields, feature)
    table = np.asarray(getattr(contexts, "contexts", contexts), dtype=np.float64)
    _check(table, feature)
    assert isinstance(feature, int)
    values = np.linspace(table[:, feature].min(), table[:, feature].max(), POINTS)
    return Sweep(vary(table, feature, values), values, table[:, feature])


def _sweep_fields(fields: dict[str, list[Any]], feature: int | str) -> Sweep:
    name = list(fields)[feature] if isinstance(feature, int) and 0 <= feature < len(fields) else str(feature)
    if name not in fields:
        more = f" and {len(fields) - 20} more" if len(fields) > 20 else ""
        advice = remedy(name, fields, f"The contexts have {', '.join(list(fields)[:20])}{more}.")
        raise ParameterError(f"unknown feature {feature!r}. {advice}", "feature")
    known = [value for value in fields[name] if not is_missing(value)]
    if not known:
        raise InputError(f"feature {name!r} has only missing values.", "feature")
    if any(isinstance(value, str) for value in known):
        levels = sorted(text for text, _ in Counter(map(str, known)).most_common(LABELS))
        return _sweep_levels(fields, name, {text: text for text in levels})
    if all(isinstance(value, bool) for value in known):
        return _sweep_levels(fields, name, {str(value): value for value in sorted({*known})})
    if all(isinstance(value, datetime.date) for value in known):
        return _sweep_dates(fields, name, known)
    try:
        numbers = list(map(float, known))
    except (TypeError, ValueError):
        raise InputError(
            f"feature {name!r} must be numbers, texts or dates, got {known[0]!r:.60}.", "feature"
        ) from None
    values = np.linspace(min(numbers), max(numbers), POINTS)
    observed = np.array([np.nan if is_missing(value) else float(value) for value in fields[name]], dtype=np.float64)
    return Sweep(vary(fields, name, values.tolist()), values, observed)


def _sweep_levels(fields: dict[str, list[Any]], name: str, levels: dict[str, Any]) -> Sweep:
    position = {text: float(number) for number, text in enumerate(levels)}
    observed = np.array([position.get(str(value), np.nan) for value in fields[name]])
    contexts = vary(fields, name, list(levels.values()))
    return Sweep(contexts, np.arange(len(levels), dtype=np.float64), observed, tuple(levels))


def _sweep_dates(fields: dict[str, list[Any]], name: str, known: list[Any]) -> Sweep:
    first, last = min(known, key=days), max(known, key=days)
    values = list(dict.fromkeys(first + (last - first) * step / (POINTS - 1) for step in range(POINTS)))
    observed = np.array([np.nan if is_missing(value) else days(value) for value in fields[name]])
    return Sweep(vary(fields, name, values), np.array(list(map(days, values))), observed, dates=True)


def _fields(contexts: Any) -> dict[str, list[Any]] | None:
    """The columns of contexts with named fields; None if they are rows of numbers."""
    if isinstance(contexts, Mapping) or data_frames.is_table(contexts):
        columns = data_frames.lists(contexts)
    elif (
        isinstance(contexts, list | tuple) and contexts and (isinstance(contexts[0], Mapping) or is_record(contexts[0]))
    ):
        columns = data_frames.from_rows(row if isinstance(row, Mapping) else to_fields(row) for row in contexts)
    else:
        columns = getattr(contexts, "fields", None)
    return (
        None
        if columns is None
        else {name: [_plain(value, name) for value in values] for name, values in columns.items()}
    )


def _plain(value: Any, name: str) -> Any:
    """A value of NumPy, pandas or JSON as one of Python."""
    if type(value).__name__ == "Timestamp":
        return value.to_pydatetime(warn=False)
    if isinstance(value, np.datetime64):
        return value.astype("datetime64[us]").item()
    return value.item() if isinstance(value, np.generic) else from_json(value, name)


def vary(contexts: Any, feature: int | str, values: Any) -> list[Any]:
    """Contexts that differ in one feature, one per value, with the others at their typical values.

    >>> vary({"age": [1.0, 2.0, 9.0], "city": ["Oslo", "Rome", "Oslo"]}, "age", [7.0])
    [{'age': 7.0, 'city': 'Oslo'}]
    """
    if isinstance(contexts, Mapping):
        typical = {name: typical_value(column) for name, column in contexts.items()}
        base = {name: value for name, value in typical.items() if value is not None}
        return [base | {feature: value} for value in values]
    rows = np.tile(np.median(np.asarray(contexts, dtype=np.float64), axis=0), (len(values), 1))
    rows[:, int(feature)] = values
    return list(rows)


def typical_value(values: Iterable[Any]) -> Any:
    """The median of numbers or dates, or the most common value of others; None if all values are missing.

    >>> typical_value(["grey", "blue", None, "grey"]), typical_value([3.0, 1.0, 2.0])
    ('grey', 2.0)
    """
    known = [value for value in values if not is_missing(value)]
    if not known:
        return None
    if any(isinstance(value, str) for value in known):
        known = list(map(str, known))
    elif all(isinstance(value, datetime.date) for value in known):
        return sorted(known, key=days)[len(known) // 2]
    elif not isinstance(known[0], bool | list | tuple | dict | datetime.time):
        return float(np.median(list(map(float, known))))
    by_text = {repr(value): value for value in known}
    return by_text[min(Counter(map(repr, known)).items(), key=lambda item: (-item[1], item[0]))[0]]


def _check(table: Floats, feature: int | str) -> None:
    if table.ndim != 2 or not len(table):
        raise InputError(f"contexts must be a table with at least one row, got shape {table.shape}.", "contexts")
    if not (isinstance(feature, int) and 0 <= feature < table.shape[1]):
        raise ParameterError(f"feature must be a column from 0 to {table.shape[1] - 1}, got {feature!r}.", "feature")
