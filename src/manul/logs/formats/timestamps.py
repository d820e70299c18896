"""Parsing of times to seconds since 1970."""

from __future__ import annotations

from datetime import UTC, datetime

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
