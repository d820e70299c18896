"""Text files line by line, gzipped if the name ends with .gz."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from manul.errors import FileError, missing_file
from manul.logs.formats.readers import Problems


def is_gzipped(path: Path) -> bool:
    """Return whether the name ends with .gz, apart from the .partial of a file being written.

    >>> is_gzipped(Path("run.csv.gz")), is_gzipped(Path("run.csv"))
    (True, False)
    """
    return path.name.removesuffix(".partial").lower().endswith(".gz")


def open_bytes(path: Path) -> IO[bytes]:
    """Open a file for reading bytes, decompressed if it is gzipped.

    >>> open_bytes(Path("missing.csv"))
    Traceback (most recent call last):
    manul.errors.FileError: missing.csv: no such file.
    """
    if not path.is_file():
        raise missing_file(path)
    try:
        return cast(IO[bytes], gzip.open(path, "rb")) if is_gzipped(path) else path.open("rb")
    except OSError as error:
        raise FileError(f"Cannot read {path}: {error.strerror}.") from error


def lines(problems: Problems) -> Iterator[tuple[int, str]]:
    """The lines with their numbers; a line that is not UTF-8 is a bad row."""
    with open_bytes(problems.path) as file:
        try:
            for number, line in enumerate(file, 1):
                try:
                    yield number, line.removeprefix(b"\xef\xbb\xbf" if number == 1 else b"").decode()
                except UnicodeDecodeError:
                    problems.report(number, "line", "UTF-8 text", line)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            problems.reject_file("gzip file", error)


class Output:
    """A file being written, gzipped by its name; equal content gives equal bytes."""

    def __init__(self, path: Path) -> None:
        self._file: IO[bytes] = path.open("wb")
        self.bytes: IO[bytes] = self._file
        if is_gzipped(path):
            compressed = gzip.GzipFile(filename="", mode="wb", fileobj=self._file, compresslevel=6, mtime=0)
            self.bytes = cast(IO[bytes], compressed)

    def write(self, text: str) -> None:
        self.bytes.write(text.encode())

    def close(self) -> None:
        self.bytes.close()  # a GzipFile leaves the underlying file open
        self._file.close()
