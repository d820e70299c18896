"""Atomic writes: a file is replaced completely or not at all."""

from __future__ import annotations

import csv
import errno
import io
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from manul.errors import FileError


def write_whole(path: str | Path, content: bytes | str) -> None:
    """Write a file atomically: the previous content stays until the new one is complete."""
    with atomic_path(path) as partial:
        partial.write_bytes(content if isinstance(content, bytes) else content.encode())


def write_csv(path: str | Path, names: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table as CSV, atomically; numbers keep full precision."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([names, *rows])
    write_whole(path, text.getvalue())


def table_beside(path: str | Path, first_name: str) -> Path:
    """Where to write the table of a file: the same name with .csv, unless somebody else's table has that name.

    `first_name` is the name of the first column of our tables.
    """
    table = Path(path).with_suffix(".csv")
    with suppress(OSError), table.open(encoding="utf-8", errors="replace") as lines:
        if not lines.readline(1000).startswith(first_name + ","):
            return table.with_name(Path(path).name + ".csv")
    return table


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """Yield a path to write to, which replaces the file on success and is deleted on an error."""
    target = Path(path)
    partial = partial_path(target)
    try:
        yield partial
        put_in_place(partial, target)
    except OSError as error:
        raise write_error(target, error) from error
    finally:
        with suppress(OSError):
            partial.unlink(missing_ok=True)


def partial_path(path: Path) -> Path:
    """The path of a file while it is being written."""
    return path.with_name(path.name + ".partial")


def put_in_place(partial: Path, path: Path) -> None:
    """Rename a complete file to its name; a crash leaves the old file or the new one, never a part."""
    sync(partial)
    partial.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to disk; Windows flushes only files, and only those open for writing."""
    windows = os.name == "nt"
    if windows and path.is_dir():
        return
    descriptor = os.open(path, os.O_RDWR if windows else os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def writable_folder(folder: str | Path) -> Path:
    """Return a folder after creating it if necessary and checking that it is writable."""
    out = Path(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not os.access(out, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise FileError(f"Cannot write to folder {out}: {error.strerror}.") from error
    return out


def write_error(path: Path, error: OSError) -> FileError:
    """The error for a file that cannot be written."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    advice = "Free some space or choose another folder." if full else "Choose another folder."
    return FileError(f"Cannot write {path}: {error.strerror}. {advice}")
