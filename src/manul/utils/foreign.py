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


def is_polars_frame(table: Any) -> bool:
    return can(table, "iter_columns")


def is_pandas_frame(table: Any) -> bool:
    return can(table, "to_dict", "columns")


def is_arrow_table(table: Any) -> bool:
    return can(table, "to_pydict", "schema")


def is_series(value: Any) -> bool:
    """Whether a value is a pandas Series.

    >>> is_series([31])
    False
    """
    return can(value, "iloc", "index") and not can(value, "columns")


def is_polars_column(column: Any) -> bool:
    return can(column, "to_arrow", "to_list")


def is_arrow_column(column: Any) -> bool:
    return can(column, "to_pylist")


def is_sparse(value: Any) -> bool:
    """Whether a value is rows of a sparse matrix.

    >>> is_sparse({"age": 31})
    False
    """
    return can(value, "tocoo", "shape")
