"""One reader and one writer per format of a log, chosen by the suffix of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from manul.errors import FileError, ParameterError
from manul.logs.formats.file_errors import Problems
from manul.logs.formats.log_schema import Metadata, Range
from manul.logs.formats.row_checks import valid_rows
from manul.utils.registry import Registry
from manul.utils.suggestions import remedy

if TYPE_CHECKING:
    import pyarrow as pa


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


@dataclass(frozen=True)
class Format:
    """How files of one suffix are read, in pieces of at most a size that all have one schema, and written."""

    read: Callable[[Problems, int], Iterator[Piece]]
    writer: Callable[[Path, pa.Schema], Writer]


FORMATS = Registry[Format]("suffix", __name__, usual=".parquet")


def register_format(
    suffix: str, *, read: Callable[[Problems, int], Iterator[Piece]], writer: Callable[[Path, pa.Schema], Writer]
) -> None:
    """Registers a format of logs, so that `Log.read`, `Log.write` and `manul convert` know files with the suffix.

    `read(problems, size)` yields the rows of the file `problems.path` in pieces: `arrow_tables.SchemaAdapter` makes one of
    any Arrow table. `writer(path, schema)` starts a file, which takes tables by `write(table)` and ends with `close()`.

    >>> import manul
    >>> commas = FORMATS[".csv"]
    >>> manul.register_format(".comma", read=commas.read, writer=commas.writer)
    >>> format_of(Path("run.comma")) == format_of(Path("run.csv.gz"))
    True
    >>> FORMATS.remove(".comma")
    """
    FORMATS.add(suffix, Format(read, writer), module=read.__module__)


def format_of(path: Path) -> Format:
    """How a file is read and written, by its suffix.

    >>> format_of(Path("run.parkett"))
    Traceback (most recent call last):
    manul.errors.ParameterError: run.parkett must end with .csv, .json, .jsonl, .parquet, .vw, or one of these and .gz;
    got '.parkett'. Did you mean .parquet?
    """
    name = path.name.lower().removesuffix(".gz")
    suffix = Path(name).suffix
    known = FORMATS.find(suffix)
    if known is None:
        suffixes = FORMATS.names()
        advice = remedy(suffix, suffixes, "Rename it to say what it is.")
        raise ParameterError(
            f"{path} must end with {', '.join(suffixes)}, or one of these and .gz; got {suffix!r}. {advice}", "path"
        )
    return known


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
