"""Contexts that vary one feature and hold the others at typical values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.errors import InputError, ParameterError
from manul.utils.suggestions import remedy

POINTS, LABELS = 200, 12  # per plot: a smooth line, and as many texts as fit below an axis
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sweep:
    """Contexts that vary one feature, their positions on an axis, those of the observed contexts, and labels of texts."""

    contexts: list[Any]
    positions: Floats
    observed: Floats
    labels: tuple[str, ...] = ()


def sweep(contexts: object, feature: int | str) -> Sweep:
    """Contexts that differ only in one feature, over its observed range.

    >>> sweep({"age": [1.0, 2.0, 9.0], "city": ["Oslo", "Rome", "Oslo"]}, "city").contexts
    [{'age': 2.0, 'city': 'Oslo'}, {'age': 2.0, 'city': 'Rome'}]
    """
    fields = contexts if isinstance(contexts, Mapping) else getattr(contexts, "fields", None)
    if fields is not None:
        return _sweep_fields({str(name): list(values) for name, values in fields.items()}, feature)
    table = np.asarray(getattr(contexts, "contexts", contexts), dtype=np.float64)
    _check(table, feature)
    assert isinstance(feature, int)
    values = np.linspace(table[:, feature].min(), table[:, feature].max(), POINTS)
    return Sweep(vary(table, feature, values), values, table[:, feature])


def _sweep_fields(fields: dict[str, list[Any]], feature: int | str) -> Sweep:
    name = list(fields)[feature] if isinstance(feature, int) and 0 <= feature < len(fields) else str(feature)
    if name not in fields:
        advice = remedy(name, fields, f"Try {next(iter(fields), 'another')}.")
        raise ParameterError(
            f"feature must be one of {', '.join(list(fields)[:20])}, got {feature!r}. {advice}", "feature"
        )
    known = [value for value in fields[name] if value is not None and value == value]
    if not known:
        raise InputError(f"feature {name!r} has only missing values.", "feature")
    if any(isinstance(value, str) for value in known):
        labels = tuple(sorted(text for text, _ in Counter(map(str, known)).most_common(LABELS)))
        position = {text: float(number) for number, text in enumerate(labels)}
        observed = np.array([position.get(str(value), np.nan) for value in fields[name]])
        return Sweep(vary(fields, name, labels), np.arange(len(labels), dtype=np.float64), observed, labels)
    values = np.linspace(min(known), max(known), POINTS)
    observed = np.array([np.nan if value is None else value for value in fields[name]], dtype=np.float64)
    return Sweep(vary(fields, name, values.tolist()), values, observed)


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
    """The median of numbers, or the most common text or boolean; None if all values are missing.

    >>> typical_value(["grey", "blue", None, "grey"]), typical_value([3.0, 1.0, 2.0])
    ('grey', 2.0)
    """
    known = [value for value in values if value is not None and value == value]
    if not known:
        return None
    if any(isinstance(value, str) for value in known):
        known = list(map(str, known))
    elif not isinstance(known[0], bool):
        return float(np.median(known))
    return min(Counter(known).items(), key=lambda item: (-item[1], item[0]))[0]


def _check(table: Floats, feature: int | str) -> None:
    if table.ndim != 2 or not len(table):
        raise InputError(f"contexts must be a table with at least one row, got shape {table.shape}.", "contexts")
    if not (isinstance(feature, int) and 0 <= feature < table.shape[1]):
        raise ParameterError(f"feature must be a column from 0 to {table.shape[1] - 1}, got {feature!r}.", "feature")
