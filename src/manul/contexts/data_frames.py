"""The columns of tables: data frames of pandas, whatever Arrow's PyCapsule interface gives, and mappings of columns.

Arrow has no type for times of which each has its own offset from UTC, nor for fields that are an object in one context and a
number in another: such a column is a struct of a time in UTC and an offset in seconds, or a struct of a JSON text.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Iterable, Mapping, Set
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manul.contexts import dates
from manul.contexts.records import distinct_names
from manul.errors import InputError
from manul.utils.foreign import (
    can,
    exports_column,
    exports_table,
    is_arrow_column,
    is_arrow_table,
    is_pandas_frame,
)

if TYPE_CHECKING:
    import pyarrow as pa

JSON = "$json"
TIME_AND_OFFSET = ["time", "offset"]
Values = list[Any] | npt.NDArray[Any]
_NUMERIC = "biuf"  # kinds of NumPy's types: truth values, integers, unsigned integers and floats


def columns(table: Any) -> dict[str, Values] | None:
    """The columns of a table by name, numbers as arrays with NaN for missing ones; None if it is no table.

    >>> import pyarrow
    >>> columns(pyarrow.table({"city": ["Oslo", None], "age": [31, None]}))
    {'city': ['Oslo', None], 'age': array([31., nan])}
    >>> columns({"city": ["Oslo", None], "age": np.array([31, 7])})
    {'city': ['Oslo', None], 'age': array([31.,  7.])}
    """
    table = arrow_table(table)
    if is_arrow_table(table):
        return _by_name(table.schema.names, map(from_arrow, table.columns))
    if is_pandas_frame(table):
        return _by_name(table.columns.tolist(), (_from_pandas(column) for _, column in table.items()))
    if isinstance(table, Mapping):
        return _by_name([*table], _from_mapping(table))
    return None


def lists(table: Any) -> dict[str, list[Any]] | None:
    """The columns of a table as lists of Python's own values; None if it is no table.

    >>> import polars
    >>> lists(polars.DataFrame({"city": ["Oslo", None], "age": [31, None]}))
    {'city': ['Oslo', None], 'age': [31, None]}
    """
    table = arrow_table(table)
    if is_arrow_table(table):
        return _by_name(table.schema.names, map(arrow_values, table.columns))
    if is_pandas_frame(table):
        return _by_name(table.columns.tolist(), (column.tolist() for _, column in table.items()))
    if isinstance(table, Mapping):
        values = {name: column if isinstance(column, list) else _any_list(column) for name, column in table.items()}
        return _by_name([*values], _from_mapping(values))
    return None


def typed_columns(table: Any) -> dict[str, Any]:
    """The columns of a table with their types: Arrow arrays, arrays of numbers and flags, or lists of values of any type.

    >>> typed_columns({"age": np.array([31, 7]), "tags": [["new"], None]})
    {'age': array([31.,  7.]), 'tags': [['new'], None]}
    """
    table = arrow_table(table)
    if is_arrow_table(table):
        return _by_name(table.schema.names, table.columns)
    if is_pandas_frame(table):
        return _by_name(table.columns.tolist(), (_typed(name, column) for name, column in table.items()))
    return _by_name([*table], _of_one_length([_typed(name, column) for name, column in table.items()]))


def _typed(name: str, column: Any) -> Any:
    column = _arrow_column(column)
    if not can(column, "dtype") or isinstance(column, np.ndarray):
        return column if is_arrow_column(column) else _from_any(name, column)
    import pyarrow as pa

    if isinstance(column.dtype, np.dtype) and column.dtype.kind == "O":
        return column.tolist()
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, TypeError) as error:
        raise InputError(f"column {name!r} cannot be read: {error}.", "contexts") from None


def row_count(table: Any) -> int:
    """The number of rows of a table.

    >>> row_count({"city": ["Oslo", None]})
    2
    """
    return len(next(iter(table.values()))) if isinstance(table, Mapping) else len(table)


def from_rows(rows: Iterable[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The columns of rows with named fields; an absent field is None.

    >>> from_rows([{"age": 31}, {"city": "Rome"}])
    {'age': [31, None], 'city': [None, 'Rome']}
    """
    records = list(rows)
    names = dict.fromkeys(name for record in records for name in record)
    return {name: [record.get(name) for record in records] for name in names}


def is_table(table: Any) -> bool:
    """Return whether a value is a data frame or an Arrow table.

    >>> is_table([[1.0]])
    False
    """
    return exports_table(table) or is_pandas_frame(table)


def arrow_table(table: Any) -> Any:
    """A table that Arrow's PyCapsule interface gives, as a table of Arrow; any other value as it is.

    >>> import polars
    >>> arrow_table(polars.DataFrame({"age": [31]})).schema.names, arrow_table([[31]])
    (['age'], [[31]])
    """
    if is_arrow_table(table) or not exports_table(table):
        return table
    import pyarrow as pa

    return pa.table(table)


def _arrow_column(column: Any) -> Any:
    """The same of a column."""
    if is_arrow_column(column) or not exports_column(column):
        return column
    import pyarrow as pa

    return pa.chunked_array(column) if can(column, "__arrow_c_stream__") else pa.array(column)


def _by_name(names: list[Any], values: Iterable[Any]) -> dict[str, Any]:
    return dict(zip(distinct_names(names, "contexts"), values, strict=True))


def _from_mapping(table: Mapping[str, Any]) -> list[Values]:
    return _of_one_length([_from_any(name, column) for name, column in table.items()])


def _of_one_length(values: list[Any]) -> list[Any]:
    lengths = sorted({len(column) for column in values})
    if len(lengths) != 1:
        problem = f"got lengths {', '.join(map(str, lengths))}" if lengths else "got no columns"
        raise InputError(f"contexts must be columns of one length, {problem}.", "contexts")
    return values


def _from_any(name: str, column: Any) -> Values:
    """A column of any kind; those of pandas, its arrays included, have a `dtype` that is none of NumPy's."""
    column = column if is_table(column) else _arrow_column(column)
    if isinstance(column, list):
        return column
    if isinstance(column, np.ndarray) and column.ndim == 1:
        return _array(column) if column.dtype.kind in _NUMERIC else _any_list(column)
    no_column = isinstance(column, str | bytes | Mapping | Set | np.ndarray) or is_table(column)
    if no_column or not can(column, "__len__"):
        raise InputError(
            f"contexts must map names to columns of values, got {_short(column)} in {name!r}. For one context, use a "
            "method without _many.",
            "contexts",
        )
    if is_arrow_column(column):
        return from_arrow(column)
    return _from_pandas(column) if can(column, "tolist") else list(column)


def _any_list(column: Any) -> Any:
    """Times of NumPy stay as they are, because those in nanoseconds would become numbers."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "mM":
        return list(column)
    column = _arrow_column(column)
    return column.to_pylist() if is_arrow_column(column) else column.tolist() if can(column, "tolist") else column


def _from_pandas(column: Any) -> Values:
    kind = column.dtype.kind
    if isinstance(column.dtype, np.dtype):
        return _array(column.to_numpy()) if kind in _NUMERIC else list(column.tolist())
    return column.to_numpy(dtype=np.float64, na_value=np.nan) if kind in "iuf" else list(column.tolist())


def from_arrow(column: Any) -> Values:
    """The values of an Arrow column: numbers with NaN for missing ones and flags as arrays, others as a list."""
    import pyarrow as pa

    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return _array(
            column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False)
        )
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type) or pa.types.is_string_view(column.type):
        return _texts(column)
    if pa.types.is_boolean(column.type) and not column.null_count:
        whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        return _array(whole.to_numpy(zero_copy_only=False))
    return arrow_values(column)


def _texts(column: Any) -> list[str | None]:
    """The texts of a column; equal ones are one object."""
    import pyarrow as pa

    coded = (column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column).dictionary_encode()
    known = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    codes = coded.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)
    values: list[str | None] = known[codes].tolist()
    return values


def _array(values: npt.NDArray[Any]) -> Values:
    return np.ascontiguousarray(values, dtype=np.bool_ if values.dtype.kind == "b" else np.float64)


def _short(value: object) -> str:
    return " ".join(repr(value).split())[:60]


def arrow_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column; missing ones are None.

    >>> import pyarrow as pa
    >>> arrow_values(pa.array([{"$date": "2024-02-29"}, None])), arrow_values(pa.array([{"$json": '{"a": [1]}'}]))
    ([datetime.date(2024, 2, 29), None], [{'a': [1]}])
    """
    decode, listed = _decoder(column.type), column.to_pylist()
    return listed if decode is None else [None if value is None else decode(value) for value in listed]


def has_offsets(given: pa.DataType) -> bool:
    """Whether a column has times with an offset each."""
    import pyarrow as pa

    return [part.name for part in given] == TIME_AND_OFFSET and pa.types.is_timestamp(given[0].type)


def from_json(value: Any, name: str = "value") -> Any:
    """A value of JSON, with its dates and times as values of Python.

    >>> from_json({"seen": [{"$date": "2024-02-29"}]})
    {'seen': [datetime.date(2024, 2, 29)]}
    """
    if isinstance(value, list):
        return [from_json(item, name) for item in value]
    value = dates.from_json(value, name)
    return {key: from_json(item, key) for key, item in value.items()} if isinstance(value, dict) else value


def _decoder(given: pa.DataType) -> Callable[[Any], Any] | None:
    """What makes values of what `to_pylist` returns; None if nothing is to be done."""
    import pyarrow as pa

    if pa.types.is_dictionary(given):
        return _decoder(given.value_type)
    if pa.types.is_list(given) or pa.types.is_large_list(given) or pa.types.is_fixed_size_list(given):
        item = _decoder(given.value_type)
        return None if item is None else lambda stored: [None if each is None else item(each) for each in stored]
    if not pa.types.is_struct(given):
        return None
    names = [part.name for part in given]
    if names == [JSON]:
        return lambda stored: None if stored[JSON] is None else from_json(json.loads(stored[JSON]))
    if names in ([dates.DATE], [dates.CLOCK]):
        return lambda stored: None if stored[names[0]] is None else dates.from_json(stored, "value")
    if has_offsets(given):
        return _with_offset
    members = {part.name: decode for part in given if (decode := _decoder(part.type)) is not None}
    if not members:
        return None
    return lambda stored: (
        stored | {name: decode(stored[name]) for name, decode in members.items() if stored[name] is not None}
    )


def _with_offset(stored: dict[str, Any]) -> datetime.datetime | None:
    if stored["time"] is None:
        return None
    zone = datetime.timezone(datetime.timedelta(seconds=stored["offset"] or 0))
    time: datetime.datetime = stored["time"]
    return time.astimezone(zone)
