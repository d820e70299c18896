"""Values of Arrow columns as Python's own.

Arrow has no type for times of which each has its own offset from UTC, nor for fields that are an object in one context and a
number in another: such a column is a struct of a time in UTC and an offset in seconds, or a struct of a JSON text.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from manul.contexts import dates

if TYPE_CHECKING:
    import pyarrow as pa

JSON = "$json"
TIME_AND_OFFSET = ["time", "offset"]


def values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """The values of a column; missing ones are None.

    >>> import pyarrow as pa
    >>> values(pa.array([{"$date": "2024-02-29"}, None])), values(pa.array([{"$json": '{"a": [1]}'}]))
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
