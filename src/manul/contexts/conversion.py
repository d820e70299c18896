"""Conversion of contexts to the forms that agents take: rows of numbers, or dicts of named fields."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.contexts import data_frames
from manul.contexts.dates import CLOCK, DATE, bad_date
from manul.contexts.records import is_record, to_fields
from manul.contexts.schema import Context
from manul.errors import FileError, InputError
from manul.utils.foreign import is_sparse

Row = npt.NDArray[np.float32]
Fields = dict[str, Any]
MAX_NAMES = 2**16  # the limit of the core

_KINDS = {
    _core.Kind.number: "a number",
    _core.Kind.text: "text",
    _core.Kind.flag: "true or false",
    _core.Kind.time: "a date or time",
}


def row(context: Context) -> Row:
    """Convert one context to a row of numbers; None is an empty context.

    >>> row([1, 2.5])
    array([1. , 2.5], dtype=float32)
    """
    if is_record(context):
        context = list(to_fields(context).values())
    values = _numbers([] if context is None else context, "context")
    if values.ndim != 1:
        raise InputError(
            f"context must be one row of numbers, got shape {values.shape}. For several contexts, use the _many methods.",
            "context",
        )
    _check_finite(values[np.newaxis], "context")
    return values


def matrix(contexts: Any) -> Row:
    """Convert many contexts to a matrix, one per row; the columns of a table must be numbers.

    >>> matrix([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    columns = None if isinstance(contexts, np.ndarray) else data_frames.columns(contexts)
    values = _numbers(contexts, "contexts") if columns is None else _column_numbers(columns)
    if values.ndim != 2:
        raise InputError(
            f"contexts must be a table with one row per context, got shape {values.shape}. Use reshape(-1, width).",
            "contexts",
        )
    _check_finite(values, "contexts")
    return values


def one_row(context: Context) -> Any:
    """One `context` as a batch.

    >>> one_row([1.0, 2.0]).shape, one_row({"age": 3.0})
    ((1, 2), [{'age': 3.0}])
    """
    return [context] if is_named(context) else row(context)[np.newaxis]


def number_rows(contexts: Any) -> Row:
    """Convert many contexts for an agent whose contexts are rows of numbers; the columns of a table are in its order.

    >>> number_rows({"size": [1, 3], "age": [2, 4]}).tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    is_records = isinstance(contexts, list | tuple) and len(contexts) > 0 and is_record(contexts[0])
    return matrix([row(each) for each in contexts] if is_records else contexts)


def is_named(context: object) -> bool:
    """Return whether a context has named fields: a mapping, a row of a data frame, or a sparse row (by column number).

    >>> is_named({"age": 31}), is_named([31])
    (True, False)
    """
    return isinstance(context, Mapping) or is_sparse(context) or is_record(context)


def to_dict(context: Any) -> Fields:
    """Convert a context with named fields to a dict.

    >>> to_dict({"age": 31})
    {'age': 31}
    """
    if isinstance(context, dict):
        return context
    if isinstance(context, Mapping):
        return dict(context)
    if is_record(context):
        return to_fields(context)
    sparse = context.tocoo()
    return {str(column): float(value) for column, value in zip(sparse.coords[-1], sparse.data, strict=True)}


def to_dicts(contexts: Any) -> list[Fields] | None:
    """Convert many contexts with named fields to dicts; return None if they are rows of numbers.

    >>> to_dicts([{"age": 31}, {"age": 7}])
    [{'age': 31}, {'age': 7}]
    """
    if is_sparse(contexts):
        return [to_dict(contexts[[number]]) for number in range(contexts.shape[0])]
    columns = data_frames.lists(contexts)
    if columns is not None:
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    if isinstance(contexts, np.ndarray) or not isinstance(contexts, Iterable):
        return None
    rows = list(contexts)
    if set(map(type, rows)) == {dict}:  # the usual case, without a loop in Python
        return rows
    return [to_dict(context) for context in rows] if rows and all(map(is_named, rows)) else None


def parse_names(names: Any) -> tuple[dict[str, _core.Kind], dict[int, str], dict[int, int]]:
    """Parse the names in a file: the kinds of fields, the names of features, and the columns of features in a row.

    >>> parse_names({"fields": {"age": "number"}, "features": {"7": "age"}, "columns": {"7": 0}})
    ({'age': Kind.number}, {7: 'age'}, {7: 0})
    """
    try:
        fields, known, columns = (dict(names[part]) for part in ("fields", "features", "columns"))
        kinds = {_valid(field): _core.Kind[kind] for field, kind in fields.items()}
        texts = {_whole(feature, 2**32): _valid(name) for feature, name in known.items()}
        places = {_whole(feature, 2**32): _whole(column, len(columns)) for feature, column in columns.items()}
    except (KeyError, TypeError, ValueError):
        raise FileError("The file is damaged: invalid names of context fields.", "names") from None
    if len(names) != 3 or max(len(kinds), len(texts)) > MAX_NAMES:
        raise FileError(f"The file has more than {MAX_NAMES} names of context fields.", "names")
    return kinds, texts, places


def _valid(name: str) -> str:
    name.encode()
    return name


def _whole(value: Any, end: int) -> int:
    if isinstance(value, bool | float) or not 0 <= int(value) < end:
        raise ValueError
    return int(value)


def check_width(width: int, expected: int) -> None:
    """Check that a context has the width of the first one.

    >>> check_width(3, 3)
    """
    if width != expected:
        raise InputError(
            f"context must have {expected} numbers, like the first one, got {width}. Use a new agent for new features.",
            "context",
        )


def field_error(what: _core.Fault, field: str, value: str, kinds: Mapping[str, _core.Kind]) -> InputError:
    """The error for an invalid field of a context; `value` is the text of a bad date or time.

    >>> field_error(_core.Fault.infinite, "age", "", {})
    InputError("field 'age' must be a finite number, got infinity. Omit fields with missing values.")
    """
    if what in (_core.Fault.bad_date, _core.Fault.bad_clock):
        return bad_date(field, value, DATE if what == _core.Fault.bad_date else CLOCK)
    name = _short(field)
    sentences = {
        _core.Fault.infinite: f"field {name} must be a finite number, got infinity. Omit fields with missing values.",
        _core.Fault.changed_kind: f"field {name} must be {_KINDS.get(kinds.get(field), 'of one type')}, like the first time, "  # type: ignore[arg-type]
        "got another type. Pass that type, or use another name.",
        _core.Fault.too_many: f"context must have at most 4096 features; field {name} exceeds the limit.",
        _core.Fault.unknown_type: f"field {name} must be a number, text, boolean, date, time, None, list or dict, "
        "got another type. Convert it first.",
        _core.Fault.too_deep: f"context must be nested at most 32 levels deep; field {name} exceeds the limit.",
        _core.Fault.bad_key: f"context must have text as keys, got another type in {name}. Use str(key).",
        _core.Fault.bad_text: f"context must be valid Unicode, got a lone surrogate in field {name}.",
    }
    return InputError(sentences[what], "context")


def _column_numbers(columns: dict[str, data_frames.Values]) -> Row:
    for name, values in columns.items():
        wrong = (
            None if isinstance(values, np.ndarray) else next((each for each in values if isinstance(each, str)), None)
        )
        if wrong is not None:
            rule = "numbers like the first ones"
            raise InputError(f"contexts must be {rule}, got {wrong!r:.60} in column {name!r}.", "contexts")
    parts = [_numbers(values, "contexts") for values in columns.values()]
    return np.column_stack(parts) if parts else np.empty((0, 0), np.float32)


def _numbers(values: Any, name: str) -> Row:
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "biuf" and numbers.size:
            numbers = np.asarray(values, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(numbers, dtype=np.float32)
    except (TypeError, ValueError):
        if name == "context" and data_frames.is_table(values):
            rule = f"one row, got a table of shape {values.shape}. For several contexts, use the _many methods."
            raise InputError(f"context must be {rule}", "context") from None
        raise InputError(
            f"{name} must be a row of numbers or a mapping of fields, got {_short(values)}. Try {{'city': 'Oslo'}}.",
            name,
        ) from None


def _check_finite(values: Row, name: str) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        at_row, column = np.argwhere(~finite)[0]
        place = f"column {column}" if name == "context" else f"row {at_row}, column {column}"
        raise InputError(
            f"{name} must be finite numbers, got {values[at_row, column]} in {place}. Fill in missing values first.",
            name,
        )


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."
