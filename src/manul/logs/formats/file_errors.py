"""What is wrong with a file, in one sentence that names the file, the row and the column.

Rows count from 1; in text files they are the lines, so that an editor or a spreadsheet shows the same number.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from manul.errors import FileError

REMEDY = "Mend the row, or leave such rows out with skip_bad=True (--skip-bad)."


class BadRow(Exception):  # noqa: N818 - never reaches a user
    """What a parser found in one row: the column, the rule it breaks, and what was got."""

    def __init__(self, column: str, rule: str, got: object) -> None:
        self.column, self.rule, self.got = column, rule, got


@dataclass
class Problems:
    """Refuses the first bad row of a file, or counts the rows to leave out.

    >>> problems = Problems(Path("run.csv"), skip_bad=True)
    >>> problems.report(7, "density", "above 0", 0.0)
    >>> problems.skipped
    1
    """

    path: Path
    skip_bad: bool = False
    skipped: int = 0

    def report(self, row: int, column: str, rule: str, got: object, remedy: str = REMEDY) -> None:
        """Count a row as skipped, or refuse it."""
        if not self.skip_bad:
            raise FileError(
                f"{column} in {self.path}, row {row}, must be {rule}; got {describe_value(got)}. {remedy}", column
            ) from None
        self.skipped += 1

    def reject_file(self, what: str, error: Exception) -> NoReturn:
        """Refuse the whole file."""
        raise FileError(
            f"{self.path} must be a whole {what}; got one that is cut off, damaged or of another kind ({describe_value(error)}). "
            "Copy or write it again."
        ) from error


def describe_value(value: object) -> str:
    """A value as an error shows it.

    >>> describe_value(None), describe_value("a,b"), describe_value(float("nan"))
    ('nothing', "'a,b'", 'nan')
    """
    if value is None:
        return "nothing"
    text = " ".join(str(value).split()) if isinstance(value, Exception) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
