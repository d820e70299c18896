"""Files that are there in whole or not at all."""

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
    """Write a file beside its place and put it there at the end; what was there stays until then.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_whole(Path(folder, "note.txt"), "whole")
    ...     [path.name for path in Path(folder).iterdir()]
    ['note.txt']
    """
    with atomic_path(path) as partial:
        partial.write_bytes(content if isinstance(content, bytes) else content.encode())


def write_csv(path: str | Path, names: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table with every digit.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_csv(Path(folder, "t.csv"), ["agent", "loss"], [["Auto", 0.5]])
    ...     Path(folder, "t.csv").read_text().splitlines()
    ['agent,loss', 'Auto,0.5']
    """
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([names, *rows])
    write_whole(path, text.getvalue())


@contextmanager
def atomic_path(path: str | Path) -> Iterator[Path]:
    """A path to write to, which takes the place of the file at the end; on an error nothing is left of it."""
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
    """Where a file is written until it is whole.

    >>> partial_path(Path("run.csv")).name
    'run.csv.partial'
    """
    return path.with_name(path.name + ".partial")


def put_in_place(partial: Path, path: Path) -> None:
    """Rename a whole file to its name; after a crash of the machine there is the old file or the new one, never a part."""
    sync(partial)
    partial.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Have a file, or the names in a folder, on disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def writable_folder(folder: str | Path) -> Path:
    """A folder to write into, made where there is none.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     writable_folder(Path(folder, "new")).is_dir()
    True
    """
    out = Path(folder)
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not os.access(out, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise FileError(f"{out} must be a folder to write into; got {error.strerror}. Choose another.") from error
    return out


def write_error(path: Path, error: OSError) -> FileError:
    """The error of a file that cannot be written.

    >>> write_error(Path("run.csv"), OSError(28, "No space left on device"))
    FileError('run.csv must be writable; got No space left on device. Free some space or choose another folder.')
    """
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    advice = "Free some space or choose another folder." if full else "Choose another folder."
    return FileError(f"{path} must be writable; got {error.strerror}. {advice}")
