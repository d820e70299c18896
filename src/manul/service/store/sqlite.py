"""The store in one SQLite file: write-ahead log, synced on every commit, one process at a time."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from manul.errors import FileError
from manul.service.store import Counts, Event, LoopGone, LoopRow, StoreFailure, Transaction
from manul.service.store.opening import register_store
from manul.service.store.reading import Reading
from manul.service.store.recent import Recent
from manul.service.store.sqlite_file import FileLock, check_file
from manul.service.store.sqlite_schema import migrate
from manul.service.store.sqlite_transaction import SqliteTransaction, found_events

WAL_PAGES = 32_768
CHECKPOINT_SECONDS = 1.0
# The longest wait for another program that has locked the file.
BUSY_SECONDS = 2.0


class SqliteStore(Reading):
    """A store in a file, and in its two companions `-wal` and `-shm` while it is open."""

    replicas = None

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = FileLock(self._path)
        self._recent = Recent()
        self._readers = Readers(self._connected)
        self._open: list[sqlite3.Connection] = []
        self._reserving = threading.Lock()
        try:
            version = check_file(self._path)
            self._writer = self._connected()
            migrate(self._writer, version)
            self._counts = {loop: Counts(*counts) for loop, *counts in self._read("SELECT * FROM counts")}
        except (sqlite3.DatabaseError, StoreFailure) as error:
            self._let_go()
            raise FileError(f"{self._path} must be a store of manul; got {error}. Choose another file.") from error
        except BaseException:
            self._let_go()
            raise
        self._checkpoints = Checkpoints(self._connected)
        self._checkpoints.start()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Everything inside is durable after the block or, where an error comes out of it, undone."""
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
        current.kept()
        self._checkpoints.due.set()

    def _undo(self) -> None:
        if self._writer.in_transaction:
            try:
                self._writer.execute("ROLLBACK")
            except sqlite3.DatabaseError as error:
                raise StoreFailure(str(error)) from error

    def reserve(self, loop: int, count: int) -> int | None:
        """The first of some consecutive decision numbers that nobody else gets."""
        with self._reserving:
            counts = self.counts(loop)
            first = counts.numbers + 1
            counts.numbers += count
            return first

    def refill(self, loop: int, count: int) -> None:
        """Numbers are always at hand."""

    def loops(self) -> list[LoopRow]:
        """All loops in the order they were made."""
        rows = self._read("SELECT number, name, settings, created, paused, apprentice FROM loops ORDER BY number")
        return [
            LoopRow(
                number=row[0],
                name=row[1],
                settings=row[2],
                created=row[3],
                paused=bool(row[4]),
                apprentice=bool(row[5]),
            )
            for row in rows
        ]

    def counts(self, loop: int) -> Counts:
        """How much a loop holds."""
        if loop not in self._counts:
            raise LoopGone
        return self._counts[loop]

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        """All durable events of some decisions, in order; decisions without one are left out."""
        return found_events(self._read, loop, numbers)

    def check(self) -> None:
        """Raises StoreFailure where the store cannot be used."""
        self._read("SELECT 1 FROM loops LIMIT 1")

    def close(self) -> None:
        """Let go of everything; nothing is used afterwards."""
        self._checkpoints.stop()
        self._readers.stop()
        self._let_go()

    def _let_go(self) -> None:
        """The lock last: closing its descriptor would drop the locks of connections that are open."""
        for connection in self._open:
            connection.close()
        self._lock.close()

    def _connected(self) -> sqlite3.Connection:
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


class Readers:
    """A connection for each thread that reads. Closing one that is in use crashes the process: reads are ended first."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect, self._connections = connect, threading.local()
        self._changed = threading.Condition()
        self._reading: dict[int, sqlite3.Connection | None] = {}
        self._stopped = False

    @contextmanager
    def reader(self) -> Iterator[sqlite3.Connection]:
        """The connection of this thread, which stays open until the block ends."""
        thread = threading.get_ident()
        connection: sqlite3.Connection | None = getattr(self._connections, "own", None)
        with self._changed:
            if self._stopped:
                raise StoreFailure("the store is closed")
            self._reading[thread] = connection
        try:
            if connection is None:
                connection = self._reading[thread] = self._connections.own = self._connect()
            yield connection
        finally:
            with self._changed:
                del self._reading[thread]
                self._changed.notify_all()

    def stop(self) -> None:
        """Refuse further reads, interrupt those that run, and wait until they have ended."""
        with self._changed:
            self._stopped = True
            while self._reading:
                for connection in list(self._reading.values()):
                    if connection is not None:
                        connection.interrupt()
                self._changed.wait(0.1)


class Checkpoints(threading.Thread):
    """Moves pages from the write-ahead log into the file, beside the writer instead of in its way."""

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(name="manul-checkpoints", daemon=True)
        self.due, self._stopping, self._connection = threading.Event(), threading.Event(), connect()

    def run(self) -> None:
        """Until stopped."""
        while not self._stopping.wait(CHECKPOINT_SECONDS):
            if self.due.is_set():
                self.due.clear()
                # Where it fails, the writer will meet the same failure and report it.
                with suppress(sqlite3.DatabaseError):
                    self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def stop(self) -> None:
        """End; the connection is for others to close."""
        self._stopping.set()
        self.join()


register_store("sqlite", lambda place: SqliteStore(place.removeprefix("sqlite://")))
