"""One reader and one writer per format of a log, chosen by the suffix of the file."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol, cast

import numpy as np
import numpy.typing as npt

from manul.errors import FileError, ParameterError
from manul.logs.formats.file_errors import Problems
from manul.logs.formats.log_schema import Metadata, Range
from manul.logs.formats.row_checks import valid_rows
from manul.utils.suggestions import remedy

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = {".parquet": "parquet", ".csv": "csv", ".jsonl": "jsonl", ".vw": "vw", ".json": "vw_json"}


class Piece(NamedTuple):
    """Some rows of a file, and what numbers they have in it."""

    table: pa.Table
    rows: npt.NDArray[np.int64]


class Writer(Protocol):
    """A file being written."""

    def write(self, table: pa.Table) -> None:
        """Add some rows."""

    def close(self) -> None:
        """Everything is in the file afterwards."""


class Format(Protocol):
    """A module of this package."""

    def read(self, problems: Problems, size: int) -> Iterator[Piece]:
        """The rows of a file in pieces of at most a size, all with one schema."""

    def Writer(self, path: Path, schema: pa.Schema) -> Writer:  # noqa: N802 - a class of the module
        """Start a file."""


def format_of(path: Path) -> Format:
    """The module that reads and writes a file.

    >>> format_of(Path("run.csv.gz")).__name__
    'manul.logs.formats.csv'
    >>> format_of(Path("run.parkett"))
    Traceback (most recent call last):
    manul.errors.ParameterError: run.parkett must end with .parquet, .csv, .jsonl, .vw, .json, or one of these and .gz;
    got '.parkett'. Did you mean .parquet?
    """
    name = path.name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    if suffix not in SUFFIXES:
        advice = remedy(suffix, SUFFIXES, "Rename it to say what it is.")
        raise ParameterError(
            f"{path} must end with {', '.join(SUFFIXES)}, or one of these and .gz; got {suffix!r}. {advice}", "path"
        )
    return cast(Format, import_module(f"{__name__}.{SUFFIXES[suffix]}"))


class FileSource:
    """A file that its suffix says how to read."""

    def __init__(self, path: Path) -> None:
        self.path, self._format = path, format_of(path)

    def read(self, problems: Problems, size: int) -> Iterator[Piece]:
        """The rows in pieces."""
        return self._format.read(problems, size)


def good_rows(
    pieces: Iterator[Piece], problems: Problems, action_range: Range | None, loss_range: Range | None
) -> Iterator[tuple[pa.Table, int]]:
    """The valid rows of each piece and the number of skipped rows; a log without valid rows is an error."""
    problems.skipped, count, before = 0, 0, 0
    for piece in pieces:
        metadata = Metadata.from_arrow(piece.table.schema.metadata, problems.path).with_ranges(action_range, loss_range)
        table = valid_rows(piece.table, piece.rows, metadata, problems)
        count += len(table)
        if len(table):
            yield table.replace_schema_metadata(metadata.to_arrow()), problems.skipped - before
            before = problems.skipped
    if not count:
        skipped = f" All {problems.skipped} rows are invalid." if problems.skipped else ""
        raise FileError(f"{problems.path} must have at least one valid row, got none.{skipped}")
