"""Text files line by line, plain or gzipped."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from manul.errors import FileError
from manul.logs.formats.file_errors import Problems
from manul.utils.suggestions import missing_file


def is_gzipped(path: Path) -> bool:
    """Whether the name ends with .gz; a file being written has .partial after it.

    >>> is_gzipped(Path("run.csv.gz")), is_gzipped(Path("run.csv"))
    (True, False)
    """
    return path.name.removesuffix(".partial").lower().endswith(".gz")


def open_bytes(path: Path) -> IO[bytes]:
    """The bytes of a file, unpacked where it is gzipped.

    >>> open_bytes(Path("missing.csv"))
    Traceback (most recent call last):
    manul.errors.FileError: missing.csv: no such file.
    """
    if not path.is_file():
        raise missing_file(path)
    try:
        return cast(IO[bytes], gzip.open(path, "rb")) if is_gzipped(path) else path.open("rb")
    except OSError as error:
        raise FileError(f"{path} must be readable; got {error.strerror}. Check its permissions.") from error


def lines(problems: Problems) -> Iterator[tuple[int, str]]:
    """The lines with their numbers; one that is no UTF-8 is a bad row."""
    with open_bytes(problems.path) as file:
        try:
            for number, line in enumerate(file, 1):
                try:
                    yield number, line.removeprefix(b"\xef\xbb\xbf" if number == 1 else b"").decode()
                except UnicodeDecodeError:
                    problems.report(number, "line", "text in UTF-8", line)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            problems.reject_file("gzip file", error)


class Output:
    """A file being written, gzipped where its name says so; the same content gives the same bytes."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = path.open("wb")
        self.bytes: IO[bytes] = self._file
        if is_gzipped(path):
            packed = gzip.GzipFile(filename="", mode="wb", fileobj=self._file, compresslevel=6, mtime=0)
            self.bytes = cast(IO[bytes], packed)

    def write(self, text: str) -> None:
        """Add some text."""
        self.bytes.write(text.encode())

    def close(self) -> None:
        """Everything is in the file afterwards; GzipFile leaves the file under it open."""
        self.bytes.close()
        self._file.close()
