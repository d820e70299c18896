"""The file of a store in SQLite: checks it without changing it, and locks it against other processes."""

from __future__ import annotations

import fcntl
import logging
import os
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import ClassVar
from urllib.parse import quote

from manul.errors import FileError
from manul.service.store.sqlite_schema import VERSION, version_of

log = logging.getLogger("manul.service")
MAGIC = b"SQLite format 3\0"


class FileLock:
    """Held from before a file is first read until its last connection is closed.

    The lock is on the file itself, not on its name, so that links lead to the same lock. Closing any descriptor of a file
    drops SQLite's own locks in the same process, so a file that this process has open already is not opened again.
    """

    _held: ClassVar[set[tuple[int, int]]] = set()
    _holding: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self, path: Path) -> None:
        try:
            with self._holding:
                if identity_at(path) in self._held:
                    raise _in_use(path)
                self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                self.identity = _identity(os.fstat(self._descriptor))
                self._lock(path)
                self._held.add(self.identity)
        except OSError as error:
            raise FileError(f"cannot open {path} for writing: {error.strerror}") from error

    def _lock(self, path: Path) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._descriptor)
            raise _in_use(path) if isinstance(error, BlockingIOError) else error from None

    def close(self) -> None:
        with self._holding:
            self._held.discard(self.identity)
            os.close(self._descriptor)


def check_file(path: Path) -> int:
    """The version of a store, 0 of a new file; refuses another program's file without changing it."""
    if path.stat().st_nlink > 1:
        log.warning("%s has hard links; always use the same name, because the write-ahead log is named after it", path)
    with path.open("rb") as file:
        start = file.read(len(MAGIC))
    # SQLite regards a file of a few bytes as empty, whatever they are.
    if start and start != MAGIC:
        raise FileError(f"{path} is not a store of manul. Choose another file.")
    version = _version(path.resolve()) if start else 0
    if version is None:
        raise FileError(f"{path} is a database of another program. Choose another file.")
    if version > VERSION:
        raise FileError(f"{path} has version {version}, newer than {VERSION}. Upgrade manul: pip install -U manul.")
    return version


def _version(path: Path) -> int | None:
    # Without a write-ahead log, `immutable` avoids creating companion files.
    mode = "mode=ro" if path.with_name(path.name + "-wal").exists() else "immutable=1"
    with closing(sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True)) as connection:
        return version_of(connection)


def identity_at(path: Path) -> tuple[int, int] | None:
    """Which file a path leads to; None if there is none."""
    try:
        return _identity(path.stat())
    except OSError:
        return None


def _identity(status: os.stat_result) -> tuple[int, int]:
    return status.st_dev, status.st_ino


def _in_use(path: Path) -> FileError:
    return FileError(f"{path} is in use by another process. Stop that one, or choose another file.")
