"""Rows of data frames: the rows of a pandas frame as Series or named tuples."""

from __future__ import annotations

from typing import Any

from manul.errors import InputError
from manul.utils.foreign import can, is_series


def is_record(row: Any) -> bool:
    """Return whether a row is a pandas Series whose index is not row numbers, or a named tuple.

    >>> import pandas
    >>> is_record(pandas.Series({"age": 31})), is_record(pandas.Series([31])), is_record((31,))
    (True, False, False)
    """
    if isinstance(row, tuple):
        return can(row, "_fields")
    return is_series(row) and (not len(row) or row.index.dtype.kind not in "iu")


def to_fields(record: Any) -> dict[str, Any]:
    """The fields of a row by name; the index that `itertuples` adds is no field.

    >>> import pandas
    >>> frame = pandas.DataFrame({"age": [31], "city": ["Oslo"]})
    >>> to_fields(frame.iloc[0]) == to_fields(next(frame.itertuples())) == {"age": 31, "city": "Oslo"}
    True
    """
    if not isinstance(record, tuple):
        return dict(zip(distinct_names(record.index.tolist(), "context"), record.tolist(), strict=True))
    fields: dict[str, Any] = record._asdict()  # type: ignore[attr-defined]
    if type(record).__module__.startswith("pandas."):
        fields.pop("Index", None)
        lost = next((name for name in fields if name.startswith("_")), None)
        if lost is not None:
            raise InputError(
                f"context has a field {lost!r}, because itertuples cannot keep the name of that column. "
                "Use frame.to_dict('records').",
                "context",
            )
    return fields


def distinct_names(names: list[Any], what: str) -> list[str]:
    """The names of columns; raises InputError if one is no text or appears twice.

    >>> distinct_names(["age", "city"], "contexts")
    ['age', 'city']
    """
    known: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            advice = "Rename it, or pass rows of numbers without names, as an array."
            raise InputError(f"{what} must have text as column names, got {name!r}. {advice}", what)
        if name in known:
            raise InputError(f"{what} must have distinct column names, got {name!r} twice. Rename one.", what)
        known.add(name)
    return names


def is_missing(value: object) -> bool:
    """Return whether a value is missing: None, NaN, NaT or `pandas.NA`.

    >>> import pandas
    >>> [is_missing(value) for value in (None, float("nan"), pandas.NA, pandas.NaT, 0.0, "")]
    [True, True, True, True, False, False]
    """
    return value is None or type(value).__name__ == "NAType" or bool(value != value)
