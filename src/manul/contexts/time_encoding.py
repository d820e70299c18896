"""Encoding of columns with dates as numbers: days since 1970, month, weekday and, if there are times, the hour.

Month, weekday and hour are those of the value's own time zone. A missing date has the means, and is flagged in a column
`name=?`.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.contexts.dates import DATE, days, from_json
from manul.contexts.records import is_missing
from manul.errors import InputError

ISO = "iso"  # the layout of dates such as 2024-02-29 and 2024-02-29 12:30, with or without a time zone
_DAYS = "%Y/%m/%d|%d.%m.%Y|%m/%d/%Y|%d/%m/%Y|%d-%m-%Y|%m-%d-%Y|%d.%m.%y|%m/%d/%y|%d/%m/%y|%d-%b-%Y|%d-%b-%y"
_DAYS_WITH_SPACES = "%d %b %Y|%d %B %Y|%b %d, %Y|%B %d, %Y"
LAYOUTS = tuple(
    f"{day}{clock}" for day in f"{_DAYS}|{_DAYS_WITH_SPACES}".split("|") for clock in ("", " %H:%M", " %H:%M:%S")
)
PARTS = ("days", "month", "weekday", "hour")  # the last one only if there are times
_PROBE = 20  # texts with which most layouts are ruled out
Matrix = npt.NDArray[np.float64]
Values = Sequence[Any] | npt.NDArray[Any]


@dataclass(frozen=True)
class Time:
    """A column of dates, as values or as text in a layout; `means` are those of its parts, `gaps` says if some are missing.

    >>> dates = Time.fit("sold", ["2024-02-29", None], ISO)
    >>> dates.names, dates.encode(["2024-03-01"]).tolist()
    (['sold.days', 'sold.month', 'sold.weekday', 'sold=?'], [[19783.0, 3.0, 4.0, 0.0]])
    """

    name: str
    layout: str
    means: tuple[float, ...]
    gaps: bool

    @staticmethod
    def fit(name: str, values: Values, layout: str) -> Time:
        times = [_parse(name, value, layout) for value in values]
        known = [time for time in times if time is not None]
        rows = np.array([parts(time) for time in known]).reshape(-1, len(PARTS))[
            :, : count_parts(clock=has_clock(known))
        ]
        means = rows.mean(axis=0) if len(rows) else np.zeros(rows.shape[1])
        return Time(name, layout, tuple(means.tolist()), len(known) < len(times))

    @staticmethod
    def from_description(settings: Mapping[str, Any]) -> Time:
        """Build the encoding from the settings in a file."""
        time = Time(**{**settings, "means": tuple(settings["means"])})
        numbers = all(isinstance(mean, int | float) and math.isfinite(mean) for mean in time.means)
        texts = isinstance(time.name, str) and isinstance(time.layout, str) and isinstance(time.gaps, bool)
        if not (numbers and texts and len(time.means) in (count_parts(clock=False), count_parts(clock=True))):
            raise InputError(f"The description of a column is invalid: {settings!r:.60}.", "columns")
        return time

    @property
    def names(self) -> list[str]:
        names = [f"{self.name}.{part}" for part in PARTS[: len(self.means)]]
        return [*names, f"{self.name}=?"] if self.gaps else names

    def encode(self, values: Values) -> Matrix:
        times = [_parse(self.name, value, self.layout) for value in values]
        rows = [self.means if time is None else parts(time)[: len(self.means)] for time in times]
        matrix = np.array(rows, dtype=np.float64).reshape(-1, len(self.means))
        flags = np.array([time is None for time in times], dtype=np.float64)
        return np.column_stack([matrix, flags]) if self.gaps else matrix


def is_time(values: Iterable[Any]) -> bool:
    """Return whether the first value of a column that is not missing is a date.

    >>> is_time([None, datetime.date(2024, 2, 29)]), is_time([3.0])
    (True, False)
    """
    if isinstance(values, np.ndarray) and values.dtype.kind != "O":
        return bool(values.dtype.kind == "M")
    first = next((value for value in values if not is_missing(value)), None)
    return isinstance(first, datetime.date | np.datetime64) or (isinstance(first, dict) and first.keys() == {DATE})


def date_layout(texts: Sequence[str]) -> str | None:
    """The layout of all texts if they are dates; None if they are not, or if day and month cannot be told apart.

    >>> date_layout(["2024-02-29", "2024-03-01 12:30"]), date_layout(["29/02/2024"]), date_layout(["03/02/2024"])
    ('iso', '%d/%m/%Y', None)
    """
    fitting = date_layouts(texts)
    return fitting[0] if len(fitting) == 1 else None


def date_layouts(texts: Sequence[str]) -> list[str]:
    """All layouts that fit the texts.

    >>> date_layouts(["03/02/2024"])
    ['%m/%d/%Y', '%d/%m/%Y']
    """
    distinct = list(dict.fromkeys(texts))
    likely = [layout for layout in (ISO, *LAYOUTS) if all(_fits(text, layout) for text in distinct[:_PROBE])]
    fitting = [layout for layout in likely if distinct and all(_fits(text, layout) for text in distinct[_PROBE:])]
    return list({layout.replace("%B", "%b"): layout for layout in fitting}.values())  # May is both


def _fits(text: str, layout: str) -> bool:
    if layout == ISO and not (len(text) >= len("2024-02-29") and text[4:5] == "-" and text[7:8] == "-"):
        return False  # 20240229 is more likely a number
    try:
        _read(text, layout)
    except ValueError:
        return False
    return True


def _read(text: str, layout: str) -> datetime.datetime:
    return datetime.datetime.fromisoformat(text) if layout == ISO else datetime.datetime.strptime(text, layout)


def _parse(name: str, value: Any, layout: str) -> datetime.date | None:
    if is_missing(value):
        return None
    if isinstance(value, np.datetime64):
        value = value.astype("datetime64[us]").item()
    value = from_json(value, name)
    if isinstance(value, datetime.date):
        return value
    try:
        return _read(value.strip(), layout)
    except (AttributeError, ValueError):
        like = "2024-02-29" if layout == ISO else f"in the format {layout}"
        raise InputError(
            f"field {name!r} must be a date, {like}, as in the table, got {value!r:.60}.", "context"
        ) from None


def has_clock(times: Iterable[datetime.date]) -> bool:
    """Whether one of the dates has a time of day besides midnight."""
    return any(isinstance(time, datetime.datetime) and time.time() != datetime.time() for time in times)


def count_parts(*, clock: bool) -> int:
    return len(PARTS) if clock else len(PARTS) - 1


def parts(time: datetime.date) -> tuple[float, float, float, float]:
    """The days since 1970 of a date, its month, weekday and hour."""
    if not isinstance(time, datetime.datetime):
        time = datetime.datetime(time.year, time.month, time.day, tzinfo=datetime.UTC)
    return days(time), float(time.month), float(time.weekday()), time.hour + time.minute / 60 + time.second / 3600
