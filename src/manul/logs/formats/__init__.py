"""The registry of log formats: a reader and a writer for each suffix of files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from manul.errors import ParameterError
from manul.logs.formats.readers import Piece, Problems
from manul.utils.registry import Registry
from manul.utils.validation import check_choice

if TYPE_CHECKING:
    import pyarrow as pa


class Writer(Protocol):
    def write(self, table: pa.Table) -> None:
        """Write a batch of rows."""

    def close(self) -> None:
        """Finish the file."""


@dataclass(frozen=True)
class Format:
    """The reader and the writer of a suffix; the reader yields pieces of limited size with a common schema."""

    read: Callable[[Problems, int], Iterator[Piece]]
    writer: Callable[[Path, pa.Schema], Writer]


FORMATS = Registry[Format]("suffix", __name__, suggestion=".parquet")


def register_format(
    suffix: str, *, read: Callable[[Problems, int], Iterator[Piece]], writer: Callable[[Path, pa.Schema], Writer]
) -> None:
    """Register a log format under a `suffix`, for `Log.read`, `Log.write` and `manul convert`.

    `read(problems, size)` yields the rows of the file `problems.path` in pieces of at most `size` rows;
    `arrow_tables.SchemaAdapter` converts any Arrow table to a piece. `writer(path, schema)` returns an object with
    `write(table)` and `close()`.

    >>> import manul
    >>> commas = FORMATS[".csv"]
    >>> manul.register.format(".comma", read=commas.read, writer=commas.writer)
    >>> format_of(Path("run.comma")) == format_of(Path("run.csv.gz"))
    True
    >>> FORMATS.remove(".comma")
    """
    FORMATS.add(suffix, Format(read, writer), module=read.__module__)


def format_names() -> list[str]:
    """The names of all formats, which are their suffixes without the dot.

    >>> "vw" in format_names()
    True
    """
    return [suffix.removeprefix(".") for suffix in FORMATS.names()]


def format_of(path: Path, name: str | None = None, *, writing: bool = False) -> Format:
    """The format of a name, such as "vw", or without one, that of the suffix of a file.

    >>> format_of(Path("run.parkett"))
    Traceback (most recent call last):
    manul.errors.ParameterError: run.parkett has the unknown suffix '.parkett'. Did you mean .parquet?
    >>> format_of(Path("run.dat"), "vw") == format_of(Path("run.vw"))
    True
    """
    if name is not None:
        check_choice("format", name, format_names())
        return FORMATS[f".{name}"]
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    log_format = FORMATS.find(suffix)
    if log_format is None:
        raise _unknown_suffix(path, suffix, writing=writing)
    return log_format


def _unknown_suffix(path: Path, suffix: str, *, writing: bool) -> ParameterError:
    if suffix in (".xls", ".xlsx"):
        return ParameterError(f"{path} is an Excel file. Save it as CSV, and use that file.", "path")
    problem = f"{path} {f'has the unknown suffix {suffix!r}' if suffix else 'has no suffix'}."
    close = get_close_matches(suffix, FORMATS.names(), n=1)
    if close:
        return ParameterError(f"{problem} Did you mean {close[0]}?", "path")
    known = f"{problem} Log files end with {', '.join(FORMATS.names())}, each optionally followed by .gz."
    if writing:
        return ParameterError(known, "path")
    return ParameterError(
        f"{known} To read another file in one of these formats, use format='vw' or another name.", "path"
    )


class FileSource:
    """A file that is read in the format of a name or, without one, of its suffix."""

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.path, self._format = path, format_of(path, name)

    def read(self, problems: Problems, size: int) -> Iterator[Piece]:
        return self._format.read(problems, size)
