"""The columns of pandas, polars and Arrow tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.errors import InputError

Values = list[Any] | npt.NDArray[Any]
_NUMERIC = "biuf"  # kinds of NumPy's types: truth values, integers, unsigned integers and floats


def columns(table: Any) -> dict[str, Values] | None:
    """The columns of a table by name, numbers as arrays with NaN for missing ones; None if it is no table.

    >>> import pyarrow
    >>> columns(pyarrow.table({"city": ["Oslo", None], "age": [31, None]}))
    {'city': ['Oslo', None], 'age': array([31., nan])}
    """
    pairs = _pairs(table)
    if pairs is None:
        return None
    values: dict[str, Values] = {}
    for name, column in pairs:
        if name in values:
            raise InputError(f"contexts must have distinct column names, got {name!r} twice. Rename one.", "contexts")
        values[name] = column
    return values


def lists(table: Any) -> dict[str, list[Any]] | None:
    """The columns of a table as lists of Python's own values; None if it is no table.

    >>> import polars
    >>> lists(polars.DataFrame({"city": ["Oslo", None], "age": [31, None]}))
    {'city': ['Oslo', None], 'age': [31, None]}
    """
    if _is_polars(table):
        return {column.name: column.to_list() for column in table.iter_columns()}
    if _is_arrow(table):
        columns: dict[str, list[Any]] = table.to_pydict()
        return columns
    if _is_pandas(table):
        return {str(name): table[name].tolist() for name in table.columns}
    return None


def _is_polars(table: Any) -> bool:
    return hasattr(table, "iter_columns")


def _is_pandas(table: Any) -> bool:
    return hasattr(table, "columns") and hasattr(table, "to_dict")


def _is_arrow(table: Any) -> bool:
    return hasattr(table, "to_pydict") and hasattr(table, "schema")


def _pairs(table: Any) -> Iterator[tuple[str, Values]] | None:
    if _is_polars(table):
        return ((column.name, _from_polars(column)) for column in table.iter_columns())
    if _is_arrow(table):
        return zip(table.schema.names, map(_from_arrow, table.columns), strict=True)
    if _is_pandas(table):
        return ((str(name), _from_pandas(column)) for name, column in table.items())
    return None


def _from_polars(column: Any) -> Values:
    if column.dtype.is_integer() or column.dtype.is_float():
        return _array(column.to_numpy())
    return list(column.to_list())


def _from_pandas(column: Any) -> Values:
    kind = column.dtype.kind
    if isinstance(column.dtype, np.dtype):
        return _array(column.to_numpy()) if kind in _NUMERIC else list(column.tolist())
    return column.to_numpy(dtype=np.float64, na_value=np.nan) if kind in "iuf" else list(column.tolist())


def _from_arrow(column: Any) -> Values:
    import pyarrow as pa

    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return _array(
            column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
        )
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return _texts(column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column)
    return list(column.to_pylist())


def _texts(column: Any) -> list[str | None]:
    """Creates each distinct text once, for speed."""
    coded = column.dictionary_encode()
    texts = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    codes = coded.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False)
    values: list[str | None] = texts[codes].tolist()
    return values


def _array(values: npt.NDArray[Any]) -> Values:
    """An array that the core reads."""
    return np.ascontiguousarray(values, dtype=np.bool_ if values.dtype.kind == "b" else np.float64)
