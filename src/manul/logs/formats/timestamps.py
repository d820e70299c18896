"""Parsing of times to seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime

from manul.contexts import dates
from manul.errors import InputError
from manul.logs.formats.file_errors import BadRow
from manul.logs.formats.row_tables import NUMBER_PATTERN, number


def seconds(value: object) -> float | None:
    """Parse a time; a date without a time zone is in UTC.

    >>> seconds("1970-01-02"), seconds("12.5"), seconds(None)
    (86400.0, 12.5, None)
    """
    if not isinstance(value, str) or NUMBER_PATTERN.fullmatch(value):
        return number("time", value)
    try:
        time = datetime.fromisoformat(value.strip())
    except ValueError:
        raise BadRow("time", "seconds since 1970 or a date such as 2026-01-31T12:00:00", value) from None
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()


def date_seconds(column: str, value: object) -> object:
    """Convert a date in the form of JSON to seconds since 1970; other values stay as they are.

    >>> date_seconds("at", {"$date": "1970-01-02"}), date_seconds("at", "1970-01-02")
    (86400.0, '1970-01-02')
    """
    try:
        date = dates.from_json(value, column)
    except InputError:
        raise BadRow(column, 'a date such as {"$date": "2024-02-29"}', value) from None
    return value if date is value else dates.seconds(date)
