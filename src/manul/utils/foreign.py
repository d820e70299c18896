"""Values of pandas, polars, Arrow and SciPy, known by the members of their types, so that none of these is imported."""

from __future__ import annotations

from functools import lru_cache
from typing import Any


@lru_cache(maxsize=256)
def _members(kind: type) -> frozenset[str]:
    return frozenset(dir(kind))


def can(value: Any, *members: str) -> bool:
    """Whether the type of a value has members. The value itself is not asked: a lazy frame of polars would warn."""
    kind: Any = type(value)
    return _members(kind).issuperset(members)


def is_pandas_frame(table: Any) -> bool:
    return can(table, "to_dict", "columns", "iloc")


def is_arrow_table(table: Any) -> bool:
    return can(table, "to_pydict", "schema")


def exports_table(table: Any) -> bool:
    """Whether a value gives its columns by Arrow's PyCapsule interface, as tables of Arrow, polars, DuckDB, Ibis and narwhals do.

    >>> exports_table([[31]])
    False
    """
    return can(table, "__arrow_c_stream__", "columns") and not is_pandas_frame(table)


def is_series(value: Any) -> bool:
    """Whether a value is a pandas Series.

    >>> is_series([31])
    False
    """
    return can(value, "iloc", "index") and not can(value, "columns")


def is_arrow_column(column: Any) -> bool:
    return can(column, "to_pylist")


def exports_column(column: Any) -> bool:
    """Whether a value is a column by Arrow's PyCapsule interface, other than one of pandas.

    >>> exports_column([31])
    False
    """
    return (can(column, "__arrow_c_stream__") or can(column, "__arrow_c_array__")) and not can(column, "iloc")


def is_sparse(value: Any) -> bool:
    """Whether a value is rows of a sparse matrix.

    >>> is_sparse({"age": 31})
    False
    """
    return can(value, "tocoo", "shape")
