"""Dates and times of day in contexts: their form in JSON, which has none of its own, and their days and seconds since 1970."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from manul.errors import InputError

DATE, CLOCK = "$date", "$time"  # the keys of dates, with or without a time, and of times of day in JSON
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_CALENDAR = (-719_161, 2_932_895)  # days that are dates in every time zone
# The texts that the core reads; `fromisoformat` checks the calendar.
_MINUTE = r"([01]\d|2[0-3]):[0-5]\d"
_SECOND = rf"{_MINUTE}(:[0-5]\d(\.\d+)?)?"
_ISO = {
    DATE: re.compile(rf"\d{{4}}-\d\d-\d\d([T ]{_SECOND}(Z|[+-]{_MINUTE})?)?", re.ASCII),
    CLOCK: re.compile(_SECOND, re.ASCII),
}
_EXAMPLES = {DATE: "'2024-02-29' or '2024-02-29T12:30:00+01:00'", CLOCK: "'12:30' or '12:30:59.5'"}


def from_json(value: Any, field: str) -> Any:
    """The date, date and time, or time of day that a value of a field means, if it has the form of one in JSON.

    >>> from_json({"$date": "2024-02-29"}, "at"), from_json({"$time": "12:30"}, "at"), from_json("2024-02-29", "at")
    (datetime.date(2024, 2, 29), datetime.time(12, 30), '2024-02-29')
    """
    if not (isinstance(value, dict) and len(value) == 1):
        return value
    ((key, text),) = value.items()
    return parse(text, key, field) if key in _ISO else value


def parse(text: object, key: str, field: str) -> datetime.date | datetime.time:
    """The date or time of day that a text is."""
    try:
        if isinstance(text, str) and _ISO[key].fullmatch(text):
            kind: Any = datetime.date if len(text) == len("2024-02-29") else datetime.datetime
            return (datetime.time if key == CLOCK else kind).fromisoformat(text)
    except ValueError:
        pass
    raise bad_date(field, repr(text), key)


def bad_date(field: str, value: str, key: str = DATE) -> InputError:
    """The error for a value in JSON that has the form of a date or time and is none.

    >>> bad_date("at", "'2023-02-29'")
    InputError("field 'at' must have a $date such as '2024-02-29' or '2024-02-29T12:30:00+01:00', got '2023-02-29'.")
    """
    return InputError(f"field {field!r:.60} must have a {key} such as {_EXAMPLES[key]}, got {value:.60}.", "context")


def to_json(context: Any) -> Any:
    """A context with its dates and times in the form of JSON; those of NumPy and pandas, too.

    >>> to_json({"city": "Oslo", "at": datetime.date(2024, 2, 29)})
    {'city': 'Oslo', 'at': {'$date': '2024-02-29'}}
    """
    if isinstance(context, Mapping):
        return {name: json_value(value) for name, value in context.items()}
    return context


def json_value(value: Any) -> Any:
    """A value of a context with its dates and times in the form of JSON."""
    if isinstance(value, np.datetime64):
        value = from_numpy(value)
    if isinstance(value, datetime.date):
        return None if value != value else {DATE: value.isoformat()}  # NaT of pandas differs from itself
    if isinstance(value, datetime.time):
        return {CLOCK: value.replace(tzinfo=None).isoformat()}
    if isinstance(value, np.ndarray) and value.dtype.kind in "MO":
        value = list(value)
    return [json_value(item) for item in value] if isinstance(value, list | tuple) else to_json(value)


def from_numpy(value: np.datetime64) -> datetime.date | None:
    """A date or time of NumPy as one of Python; None for NaT."""
    item = value.item()  # a number for nanoseconds, and beyond the calendar
    item = value.astype("datetime64[us]").item() if isinstance(item, int) else item
    if isinstance(item, int):
        raise InputError(f"context must have a date from the year 1 to 9999, got {value}.", "context")
    return item


def days(value: datetime.date) -> float:
    """The days since 1970 of a date, or of a date and time, which is in UTC if it has no time zone.

    >>> days(datetime.date(1970, 1, 3)), days(datetime.datetime(1970, 1, 1, 18))
    (2.0, 0.75)
    """
    return _since_1970(value) / datetime.timedelta(days=1)


def evenly_spaced(start: float, stop: float, count: int, like: datetime.date) -> list[datetime.date]:
    """Dates between two numbers of days since 1970; they have a time of day and a time zone if `like` has.

    >>> evenly_spaced(0.0, 2.0, 3, like=datetime.date(2024, 2, 29))[1:]
    [datetime.date(1970, 1, 2), datetime.date(1970, 1, 3)]
    """
    steps = [_EPOCH + datetime.timedelta(days=step) for step in np.clip(np.linspace(start, stop, count), *_CALENDAR)]
    if not isinstance(like, datetime.datetime):
        return list(dict.fromkeys(step.date() for step in steps))
    return [step.replace(tzinfo=None) if like.tzinfo is None else step.astimezone(like.tzinfo) for step in steps]


def seconds(value: datetime.date) -> float:
    """The seconds since 1970, which a date is in a log.

    >>> seconds(datetime.date(1970, 1, 3))
    172800.0
    """
    return _since_1970(value).total_seconds()


def _since_1970(value: datetime.date) -> datetime.timedelta:
    if not isinstance(value, datetime.datetime):
        value = datetime.datetime(value.year, value.month, value.day, tzinfo=datetime.UTC)
    return (value if value.tzinfo is not None else value.replace(tzinfo=datetime.UTC)) - _EPOCH
