"""Contexts as a table of columns, one of which can be replaced, for the effects of features."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass
from datetime import datetime, time
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.contexts import conversion, data_frames
from manul.contexts.dates import from_json
from manul.contexts.records import is_missing
from manul.errors import InputError
from manul.logs.log import Log

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ContextTable:
    """Contexts as columns by name; the policy takes them as dicts if `named`, otherwise as rows of numbers."""

    columns: dict[str, list[Any]]
    named: bool

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def sample(self, rows: int) -> ContextTable:
        """At most so many rows, chosen at random with a fixed seed."""
        if len(self) <= rows:
            return self
        chosen = np.sort(np.random.default_rng(0).choice(len(self), rows, replace=False)).tolist()
        return ContextTable(
            {name: [values[row] for row in chosen] for name, values in self.columns.items()}, self.named
        )

    def only(self, names: Container[str]) -> ContextTable:
        return ContextTable({name: values for name, values in self.columns.items() if name in names}, self.named)

    def as_rows(self) -> ContextTable:
        """The same contexts for a policy that takes rows of numbers."""
        for name, values in self.columns.items():
            wrong = next((value for value in values if not isinstance(value, int | float | np.number)), None)
            if wrong is not None or any(map(is_missing, values)):
                got = "a missing value" if wrong is None else repr(wrong)
                rule = "must be numbers, because the policy takes rows of numbers"
                raise InputError(f"contexts: column {name!r} {rule}, got {got}.", "contexts")
        return ContextTable(self.columns, named=False)

    def with_values(self, name: str, rows: Ints, values: Sequence[Any]) -> Any:
        """The contexts of some rows, with values in one column, as a policy takes them."""
        contexts = self.contexts
        if not self.named:
            changed = contexts[rows]
            changed[:, list(self.columns).index(name)] = values
            return changed
        return [contexts[row] | {name: value} for row, value in zip(rows.tolist(), values, strict=True)]

    @cached_property
    def contexts(self) -> Any:
        """All contexts, as a policy takes them: dicts without missing values, or a matrix."""
        if not self.named:
            return np.column_stack([np.asarray(column, dtype=np.float32) for column in self.columns.values()])
        rows: list[dict[str, Any]] = [{} for _ in range(len(self))]
        for name, column in self.columns.items():
            for row, value in zip(rows, column, strict=True):
                if not is_missing(value):
                    row[name] = value
        return rows


def context_table(contexts: Any) -> ContextTable:
    """Contexts as a table: a matrix, a data frame, columns by name, a list of dicts, or a log."""
    if isinstance(contexts, Log):
        contexts = _log_contexts(contexts)
    columns = _named_columns(contexts)
    if columns is not None:
        table = ContextTable(
            {name: [from_json(value, name) for value in columns[name]] for name in columns}, named=True
        )
    else:
        matrix = conversion.matrix(contexts)
        numbers = matrix.T.astype(np.float64).tolist()
        table = ContextTable({f"column {number}": column for number, column in enumerate(numbers)}, named=False)
    if not len(table):
        raise InputError("contexts must have at least one row and one column.", "contexts")
    return table


def _log_contexts(log: Log) -> Any:
    if log.fields is not None:
        return log.fields
    return log.contexts if log.features is None else list(log.context_rows())


def _named_columns(contexts: Any) -> dict[str, list[Any]] | None:
    if isinstance(contexts, Mapping):
        return _mapping_columns(contexts)
    columns = data_frames.lists(contexts)
    if columns is not None:
        return columns
    rows = conversion.to_dicts(contexts)
    if rows is None:
        return None
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _mapping_columns(contexts: Mapping[Any, Any]) -> dict[str, list[Any]]:
    columns = {}
    for name, values in contexts.items():
        if isinstance(values, str | bytes) or not (isinstance(values, Sized) and isinstance(values, Iterable)):
            rule = "a table with one row per context, or columns by name"
            raise InputError(f"contexts must be {rule}, got {values!r} as column {name!r}.", "contexts")
        columns[str(name)] = np.asarray(values).tolist() if isinstance(values, np.ndarray) else list(values)
    if len(counts := {len(values) for values in columns.values()}) > 1:
        raise InputError(f"contexts: the columns must have one length, got lengths {sorted(counts)}.", "contexts")
    return columns


def value_text(value: object) -> str:
    """A value of a feature as text.

    >>> value_text(12345.678), value_text(datetime(2024, 5, 1)), value_text(2019)
    ('12345.7', '2024-05-01', '2019')
    """
    if isinstance(value, datetime) and value.time() == time():
        return value.date().isoformat()
    return f"{value:g}" if isinstance(value, float | np.floating) else str(value)


def effect_text(effect: float) -> str:
    """A difference with its sign.

    >>> effect_text(-29020.4), effect_text(0.123456)
    ('-29,020', '+0.1235')
    """
    return f"{effect:+,.0f}" if abs(effect) >= 1000 else f"{effect:+.4g}"
