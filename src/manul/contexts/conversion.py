"""Contexts as people have them: rows of numbers, or named fields as they arrive in JSON and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.contexts.encoding import Columns
from manul.errors import FileError, InputError
from manul.types import Context

Row = npt.NDArray[np.float32]
Fields = dict[str, Any]
MOST_NAMES = 2**16  # the most that the core remembers

_KINDS = {_core.Kind.number: "a number", _core.Kind.text: "text", _core.Kind.flag: "true or false"}


def row(context: Context) -> Row:
    """One context as a row; None is a context with nothing in it.

    >>> row([1, 2.5])
    array([1. , 2.5], dtype=float32)
    """
    values = _numbers([] if context is None else context, "context")
    if values.ndim != 1:
        raise InputError(
            f"context must be one row of numbers; got shape {values.shape}. Use the _many form for several.", "context"
        )
    _check_finite(values[np.newaxis], "context")
    return values


def matrix(contexts: Any) -> Row:
    """Many contexts, one per row; columns of text become one column per text.

    >>> matrix([[1, 2], [3, 4]]).shape
    (2, 2)
    """
    columns = _columns(contexts)
    values = _numbers(contexts, "contexts") if columns is None else _one_hot(columns)
    if values.ndim != 2:
        raise InputError(
            f"contexts must be a table with one row per context; got shape {values.shape}. Use reshape(-1, width).",
            "contexts",
        )
    _check_finite(values, "contexts")
    return values


def is_named(context: object) -> bool:
    """Whether a context has names: a mapping, or a sparse row, whose names are its columns.

    >>> is_named({"age": 31}), is_named([31])
    (True, False)
    """
    return isinstance(context, Mapping) or _is_sparse(context)


def to_dict(context: Any) -> Fields:
    """A context with names as a plain dict.

    >>> to_dict({"age": 31})
    {'age': 31}
    """
    if isinstance(context, dict):
        return context
    if isinstance(context, Mapping):
        return dict(context)
    sparse = context.tocoo()
    return {str(column): float(value) for column, value in zip(sparse.coords[-1], sparse.data, strict=True)}


def to_dicts(contexts: Any) -> list[Fields] | None:
    """Many contexts with names, as dicts; None where the contexts are rows of numbers.

    >>> to_dicts([{"age": 31}, {"age": 7}])
    [{'age': 31}, {'age': 7}]
    """
    if _is_sparse(contexts):
        return [to_dict(contexts[[number]]) for number in range(contexts.shape[0])]
    columns = _columns(contexts)
    if columns is not None:
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
    if isinstance(contexts, np.ndarray) or not isinstance(contexts, Iterable):
        return None
    rows = list(contexts)
    return [to_dict(each) for each in rows] if rows and all(is_named(each) for each in rows) else None


def parse_names(names: Any) -> tuple[dict[str, _core.Kind], dict[int, str], dict[int, int]]:
    """What a file says of contexts with names: the kinds of fields, the names of features, their columns in a row.

    >>> parse_names({"fields": {"age": "number"}, "features": {"7": "age"}, "columns": {"7": 0}})
    ({'age': Kind.number}, {7: 'age'}, {7: 0})
    """
    try:
        fields, known, columns = (dict(names[part]) for part in ("fields", "features", "columns"))
        kinds = {_valid(field): _core.Kind[kind] for field, kind in fields.items()}
        texts = {_whole(feature, 2**32): _valid(name) for feature, name in known.items()}
        places = {_whole(feature, 2**32): _whole(column, len(columns)) for feature, column in columns.items()}
    except (KeyError, TypeError, ValueError):
        raise FileError("names must be those of contexts; got others. Save the file again.", "names") from None
    if len(names) != 3 or max(len(kinds), len(texts)) > MOST_NAMES:
        raise FileError(f"names must be at most {MOST_NAMES}; got more. Save the file again.", "names")
    return kinds, texts, places


def _valid(name: str) -> str:
    name.encode()
    return name


def _whole(value: Any, end: int) -> int:
    if isinstance(value, bool | float) or not 0 <= int(value) < end:
        raise ValueError
    return int(value)


def check_width(width: int, expected: int) -> None:
    """Refuses a context of another width than the first one had.

    >>> check_width(3, 3)
    """
    if width != expected:
        raise InputError(
            f"context must have {expected} numbers, as the first one had; got {width}. Start a new agent.", "context"
        )


def field_error(what: _core.Fault, field: str, kinds: Mapping[str, _core.Kind]) -> InputError:
    """What was wrong with a field.

    >>> field_error(_core.Fault.infinite, "age", {})
    InputError("field 'age' must be a finite number; got infinity. Leave the field out where it is not known.")
    """
    name = _short(field)
    sentences = {
        _core.Fault.infinite: f"field {name} must be a finite number; got infinity. Leave the field out where it is not known.",
        _core.Fault.changed_kind: f"field {name} must stay {_KINDS.get(kinds.get(field), 'of one kind')}, as it was first; "  # type: ignore[arg-type]
        "got another kind. Give it another name.",
        _core.Fault.too_many: f"context must have at most 4096 features; got more, at field {name}. Leave some out.",
        _core.Fault.unknown_type: f"field {name} must be a number, text, true, false, null, a list or an object; "
        "got something else. Convert it first.",
        _core.Fault.too_deep: f"context must be nested at most 32 deep; got more, at field {name}. Flatten it.",
        _core.Fault.bad_key: f"context must have text as names; got another key in {name}. Use str(key).",
        _core.Fault.bad_text: f"context must be valid Unicode; got a lone surrogate in field {name}. Replace it.",
    }
    return InputError(sentences[what], "context")


def _is_sparse(context: object) -> bool:
    return hasattr(context, "tocoo") and hasattr(context, "shape")


def _columns(frame: Any) -> dict[str, list[Any]] | None:
    if hasattr(frame, "iter_columns"):
        return {column.name: column.to_list() for column in frame.iter_columns()}
    if hasattr(frame, "columns") and hasattr(frame, "to_dict"):
        return {str(name): frame[name].tolist() for name in frame.columns}
    return None


def _one_hot(columns: dict[str, list[Any]]) -> Row:
    return Columns.fit(columns, levels=None).rows(columns)


def _numbers(values: Any, name: str) -> Row:
    try:
        numbers = np.asarray(values)
        if numbers.dtype.kind not in "biuf" and numbers.size:
            numbers = np.asarray(values, dtype=np.float64)
        with np.errstate(over="ignore"):
            return np.ascontiguousarray(numbers, dtype=np.float32)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be numbers in a row, or fields with names; got {_short(values)}. Try {{'city': 'Oslo'}}.",
            name,
        ) from None


def _check_finite(values: Row, name: str) -> None:
    bad = np.argwhere(~np.isfinite(values))
    if len(bad):
        at_row, column = bad[0]
        where = f"column {column}" if name == "context" else f"row {at_row}, column {column}"
        raise InputError(
            f"{name} must be finite numbers; got {values[at_row, column]} in {where}. Fill gaps before deciding.", name
        )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
