"""What the readers of all formats share: pieces of files, values of texts, and errors with the file, row and column.

Rows count from 1; in text files they are line numbers, as in an editor or a spreadsheet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from manul.actions.space import ActionSpace
from manul.contexts.dates import CLOCK
from manul.contexts.schema import ContextSchema
from manul.errors import FileError

if TYPE_CHECKING:
    import pyarrow as pa

REMEDY = "Fix the row, or skip invalid rows with skip_bad=True."
NUMBER_PATTERN = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*|\s*[+-]?(inf|infinity|nan)\s*", re.IGNORECASE)


class Piece(NamedTuple):
    """A batch of rows of a file, with their row numbers."""

    table: pa.Table
    rows: npt.NDArray[np.int64]


class BadRow(Exception):  # noqa: N818 - never reaches a user
    """An invalid value in a row: its column, the rule that it breaks, and the value."""

    def __init__(self, column: str, rule: str, got: object) -> None:
        self.column, self.rule, self.got = column, rule, got


@dataclass
class Problems:
    """Rejects a file at its first bad row, or counts the bad rows to skip.

    >>> problems = Problems(Path("run.csv"), skip_bad=True)
    >>> problems.report(7, "density", "above 0", 0.0)
    >>> problems.skipped
    1
    """

    path: Path
    skip_bad: bool = False
    skipped: int = 0
    needs_density: bool = True  # False if the densities are estimated after reading
    knobs: ActionSpace | None = None  # of the actions, if they are other than numbers and the file does not say
    replaces_knobs: bool = True  # or whatever the file says: `knobs=` does, `like=` does not
    like: ContextSchema | None = None  # of the contexts, if the file does not say their types

    def known_knobs(self, recorded: ActionSpace | None) -> ActionSpace | None:
        """The knobs of a file that records these, if any."""
        return self.knobs or recorded if self.replaces_knobs else recorded or self.knobs

    def report(self, row: int, column: str, rule: str, got: object, remedy: str = REMEDY) -> None:
        """Count a bad row as skipped, or raise an error."""
        if not self.skip_bad:
            raise FileError(
                f"{self.path}, row {row}: {column} must be {rule}, got {describe_value(got)}. {remedy}", column
            ) from None
        self.skipped += 1

    def reject_file(self, what: str, error: Exception) -> NoReturn:
        """Raise an error for a file that cannot be read."""
        raise FileError(f"{self.path} is truncated, damaged or not a {what} ({describe_value(error)}).") from error


def knobs_of_file(problems: Problems, recorded: ActionSpace | None, names: Iterable[str]) -> ActionSpace:
    """The knobs of a file with several: the given or recorded ones, which must have these names.

    >>> try:
    ...     knobs_of_file(Problems(Path("run.csv")), None, ["price", "days"])
    ... except FileError as error:
    ...     str(error).split(". ")[0]
    'run.csv sets the knobs price, days but does not say their ranges'
    """
    given, path = [*names], problems.path
    knobs = problems.known_knobs(recorded)
    if knobs is None:
        raise FileError(
            f"{path} sets the knobs {', '.join(given)} but does not say their ranges. Declare them with knobs={{...}}, or "
            "with like= and the agent that decided.",
            "knobs",
        )
    for name in knobs.names:
        if name not in given:
            column = f"action.{name}" if name else "action"
            raise FileError(f"{path} has no column {column}, only knobs {', '.join(given)}.", "action")
    for name in given:
        if name not in knobs.names:
            raise FileError(f"{path} has an unknown knob {name!r}. The knobs are {', '.join(knobs.names)}.", "action")
    return knobs


def unnamed_knob(problems: Problems, recorded: ActionSpace | None) -> ActionSpace | None:
    """The knob of a file with a column action, if it is declared and no number in a range; it has no name."""
    knobs = problems.known_knobs(recorded)
    if knobs is not None and knobs.is_named:
        raise FileError(f"{problems.path} has one value per action, not the knobs {', '.join(knobs.names)}.", "action")
    return knobs


def reject_knobs(path: Path, knobs: ActionSpace | None) -> None:
    """Reject several knobs for the formats of Vowpal Wabbit.

    >>> reject_knobs(Path("run.vw"), None)
    """
    if knobs is not None:
        names, name = ", ".join(knobs.titles), path.name.removesuffix(".partial")
        raise FileError(
            f"{name}: Vowpal Wabbit has one number per action and cannot store the knobs {names}. "
            "Use .parquet, .jsonl or .csv.",
            "knobs",
        )


def describe_value(value: object) -> str:
    """Format a value for an error message.

    >>> describe_value(None), describe_value("a,b"), describe_value(float("nan"))
    ('no value', "'a,b'", 'nan')
    """
    if value is None:
        return "no value"
    text = " ".join(str(value).split()) if isinstance(value, Exception) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def number(column: str, value: object) -> float | None:
    """Parse a number; None, a missing value, is left to the row checks.

    >>> number("loss", "0.5")
    0.5
    """
    if value is None or type(value) is float:
        return value
    if isinstance(value, int | str) and not isinstance(value, bool) and "_" not in str(value):
        try:
            return float(value)
        except (OverflowError, ValueError):
            pass
    raise BadRow(column, "a number", value)


def part_number(column: str, value: object) -> float | None:
    """Parse the value of a part, which may be true or false.

    >>> part_number("part.bought", "True"), part_number("part.units", 3)
    (1.0, 3.0)
    """
    truth = {"true": 1.0, "false": 0.0}.get(str(value).strip().lower())
    return number(column, value) if truth is None else truth


def seconds(value: object) -> float | None:
    """Parse the time of a decision to seconds since 1970; a date without a time zone is in UTC.

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


def json_rule(value: object) -> str:
    """What a value of JSON must be that has the form of a date or time and is none."""
    is_clock = isinstance(value, dict) and CLOCK in value
    return 'a time such as {"$time": "12:30"}' if is_clock else 'a date such as {"$date": "2024-02-29"}'
