"""The store in one SQLite file: write-ahead log, synced on every commit, one process at a time."""

from __future__ import annotations

import fcntl
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from manul.errors import FileError
from manul.service.store import Counts, Event, LoopRow, StoreFailure, Transaction
from manul.service.store.blocks import Decided
from manul.service.store.reading import Reading
from manul.service.store.recent import Recent
from manul.service.store.sqlite_transaction import SqliteTransaction, counted, found_events

VERSION = 1
WAL_PAGES = 32_768
CHECKPOINT_SECONDS = 1.0
# The longest wait for another program that has locked the file.
BUSY_SECONDS = 2.0

SCHEMA = """
CREATE TABLE IF NOT EXISTS loops (
  number INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, settings BLOB NOT NULL, created REAL NOT NULL,
  paused INTEGER NOT NULL DEFAULT 0, apprentice INTEGER NOT NULL DEFAULT 0, ended INTEGER NOT NULL DEFAULT 0,
  archived BLOB);
CREATE TABLE IF NOT EXISTS blocks (
  loop INTEGER NOT NULL, first INTEGER NOT NULL, last INTEGER NOT NULL, count INTEGER NOT NULL, time REAL NOT NULL,
  body BLOB NOT NULL, PRIMARY KEY (loop, first));
CREATE TABLE IF NOT EXISTS ids (
  loop INTEGER NOT NULL, id TEXT NOT NULL, decision INTEGER NOT NULL, PRIMARY KEY (loop, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS events (
  loop INTEGER NOT NULL, number INTEGER NOT NULL, decision INTEGER NOT NULL, kind TEXT NOT NULL, loss REAL NOT NULL,
  time REAL NOT NULL, key TEXT, PRIMARY KEY (loop, number)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS events_of ON events (loop, decision);
CREATE TABLE IF NOT EXISTS models (
  loop INTEGER NOT NULL, event INTEGER NOT NULL, body BLOB NOT NULL, PRIMARY KEY (loop, event));
CREATE TABLE IF NOT EXISTS snapshots (
  loop INTEGER NOT NULL, event INTEGER NOT NULL, body BLOB NOT NULL, learned INTEGER NOT NULL,
  refused INTEGER NOT NULL, history BLOB NOT NULL, PRIMARY KEY (loop, event));
"""


class SqliteStore(Reading):
    """A store in a file, and in its two companions `-wal` and `-shm` while it is open."""

    replicas = None

    def __init__(self, path: str | Path) -> None:
        self._path = Path(path)
        self._lock = self._locked()
        self._recent = Recent()
        self._threads = threading.local()
        self._readers: list[sqlite3.Connection] = []
        self._reserving = threading.Lock()
        try:
            self._writer = self._connected()
            self._writer.executescript(SCHEMA)
            self._check_version()
        except sqlite3.DatabaseError as error:
            self._lock.close()
            raise FileError(f"{self._path} must be a store of manul; got {error}. Choose another file.") from error
        self._counts = {row.number: counted(self._read, row.number) for row in self.loops()}
        self._checkpoints = Checkpoints(self._connected)
        self._checkpoints.start()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Everything inside is durable after the block or, where an error comes out of it, undone."""
        current = SqliteTransaction(self._writer, self._recent, self._counts)
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            yield current
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
            counts = self._counts[loop]
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
        return self._counts[loop]

    def first_decision(self, loop: int) -> Decided | None:
        """The oldest decision, whose context says what contexts look like."""
        blocks = self.blocks(loop, 0, 1)
        return blocks[0].decisions()[0] if blocks else None

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        """All durable events of some decisions, in order; decisions without one are left out."""
        return found_events(self._read, loop, numbers)

    def check(self) -> None:
        """Raises StoreFailure where the store cannot be used."""
        self._read("SELECT 1 FROM loops LIMIT 1")

    def close(self) -> None:
        """Let go of everything; nothing is used afterwards."""
        self._checkpoints.stop()
        for reader in self._readers:
            reader.close()
        self._writer.close()
        self._lock.close()

    def _locked(self) -> IO[str]:
        try:
            file = self._path.with_name(self._path.name + ".lock").open("w")
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FileError(
                f"{self._path} must not be in use; another process serves it. Stop that one, or choose another file."
            ) from None
        except OSError as error:
            raise FileError(f"{self._path} must be writable; got {error.strerror}. Choose another folder.") from error
        return file

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=BUSY_SECONDS)
        connection.text_factory = lambda text: text.decode(errors="replace")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {WAL_PAGES}")
        return connection

    def _check_version(self) -> None:
        version = self._writer.execute("PRAGMA user_version").fetchone()[0]
        if version not in (0, VERSION):
            raise FileError(
                f"{self._path} must have version {VERSION}; got {version}. A newer manul reads it: pip install -U manul."
            )
        self._writer.execute(f"PRAGMA user_version = {VERSION}")

    def _read(self, query: str, *values: object) -> list[Any]:
        try:
            reader: sqlite3.Connection | None = getattr(self._threads, "reader", None)
            if reader is None:
                reader = self._threads.reader = self._connected()
                self._readers.append(reader)
            return reader.execute(query, values).fetchall()
        except sqlite3.DatabaseError as error:
            raise StoreFailure(str(error)) from error


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
        """End, and let go of the file."""
        self._stopping.set()
        self.join()
        self._connection.close()
