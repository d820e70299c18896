"""The store in one SQLite file, for one process: write-ahead log, synced on every commit."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from manul.errors import FileError
from manul.service.store import Counts, Event, LoopGone, StoreFailure, Transaction
from manul.service.store.reading import Reading, Recent
from manul.service.store.sqlite_file import FileLock, check_file
from manul.service.store.sqlite_schema import migrate
from manul.service.store.sqlite_transaction import SqliteTransaction, events_of
from manul.service.store.store_registry import register_store

# Pages (128 MiB) beyond which the writer itself has to checkpoint; see `Checkpoints`.
WAL_PAGES = 32_768
CHECKPOINT_SECONDS = 1.0
# Pieces of snapshots (4 MiB) after which a checkpoint begins earlier, or the log would grow by a whole model until the next one.
CHECKPOINT_PIECES = 8
# The longest wait for another program that holds a lock on the file.
BUSY_SECONDS = 2.0


class SqliteStore(Reading):
    """A store in a file, with the companion files `-wal` and `-shm` while it is open."""

    replicas = None

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = FileLock(self._path)
        self._recent = Recent()
        self._readers = Readers(self._connect)
        self._open: list[sqlite3.Connection] = []
        self._reserving = threading.Lock()
        try:
            version = check_file(self._path)
            self._writer = self._connect()
            migrate(self._writer, version)
            self._counts = {loop: Counts(*counts) for loop, *counts in self._read("SELECT * FROM counts")}
        except (sqlite3.DatabaseError, StoreFailure) as error:
            self._close_all()
            raise FileError(f"{self._path} cannot be opened as a store of manul: {error}") from error
        except BaseException:
            self._close_all()
            raise
        self._checkpoints = Checkpoints(self._connect)
        self._checkpoints.start()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        current = SqliteTransaction(self._writer, self._recent, self._counts)
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            yield current
            current.finish()
            self._writer.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            self._undo()
            raise StoreFailure(str(error)) from error
        except BaseException:
            self._undo()
            raise
        current.on_commit()
        self._checkpoints.note(current.pieces)

    def transaction_beside(self) -> None:
        """None: a file has one writer at a time."""

    def _undo(self) -> None:
        if self._writer.in_transaction:
            try:
                self._writer.execute("ROLLBACK")
            except sqlite3.DatabaseError as error:
                raise StoreFailure(str(error)) from error

    def reserve(self, loop: int, count: int) -> int | None:
        with self._reserving:
            counts = self.counts(loop)
            first = counts.numbers + 1
            counts.numbers += count
            return first

    def refill(self, loop: int, count: int) -> None:
        """Numbers are always at hand."""

    def keep_numbers(self, loop: int, *, ahead: bool) -> list[range]:  # noqa: ARG002
        """Numbers are always in the order of decisions."""
        return []

    def counts(self, loop: int) -> Counts:
        if loop not in self._counts:
            raise LoopGone
        return self._counts[loop]

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        return events_of(self._read, loop, numbers)

    def check(self) -> None:
        self._read("SELECT 1 FROM loops LIMIT 1")

    def close(self) -> None:
        self._checkpoints.stop()
        self._readers.stop()
        self._close_all()

    def _close_all(self) -> None:
        """Close the lock last: closing its descriptor would drop the locks of open connections."""
        for connection in self._open:
            connection.close()
        self._lock.close()

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)
        self._open.append(connection)
        connection.text_factory = lambda text: text.decode(errors="replace")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        return connection

    def _read(self, query: str, *values: object) -> list[Any]:
        try:
            with self._readers.reader() as reader:
                return reader.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise StoreFailure(str(error)) from error


class _Own(threading.local):
    connection: sqlite3.Connection | None = None


class Readers:
    """One connection per reading thread. Closing a connection in use would crash the process, so reads are interrupted first."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect, self._own = connect, _Own()
        self._changed = threading.Condition()
        self._reading: dict[int, sqlite3.Connection | None] = {}
        self._stopped = False

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """The connection of this thread, which is not closed inside the block."""
        thread = threading.get_ident()
        connection = self._own.connection
        with self._changed:
            if self._stopped:
                raise StoreFailure("the store is closed")
            self._reading[thread] = connection
        try:
            if connection is None:
                connection = self._reading[thread] = self._own.connection = self._connect()
            yield connection
        finally:
            with self._changed:
                del self._reading[thread]
                self._changed.notify_all()

    def stop(self) -> None:
        """Refuse further reads, interrupt running ones, and wait for them to end."""
        with self._changed:
            self._stopped = True
            while self._reading:
                for connection in list(self._reading.values()):
                    if connection is not None:
                        connection.interrupt()
                self._changed.wait(0.1)


class Checkpoints(threading.Thread):
    """Checkpoints the write-ahead log in a thread of its own, so that the writer does not have to."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(name="manul-checkpoints", daemon=True)
        self._due, self._early, self._connection = threading.Event(), threading.Event(), connect()
        self._pieces, self._stopping = 0, False

    def note(self, pieces: int) -> None:
        """Something was written, and so many pieces of snapshots."""
        self._due.set()
        self._pieces += pieces
        if self._pieces >= CHECKPOINT_PIECES:
            self._pieces = 0
            self._early.set()

    def run(self) -> None:
        while not self._stopping:
            self._early.wait(CHECKPOINT_SECONDS)
            self._early.clear()
            if self._due.is_set() and not self._stopping:
                self._due.clear()
                # If this fails, the writer will meet the same failure and report it.
                with suppress(sqlite3.DatabaseError):
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def stop(self) -> None:
        self._stopping = True
        self._early.set()
        self.join()


register_store("sqlite", lambda place: SqliteStore(place.removeprefix("sqlite://")))
