"""The store in one SQLite file, for one process: write-ahead log, synced on every commit."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from manul.errors import FileError
from manul.service.store import Counts, Damaged, Event, LoopGone, LoopRow, StoreFailure, Transaction
from manul.service.store.reading import Reading, Recent, is_counts
from manul.service.store.sqlite_file import FileLock, check_file, identity_at
from manul.service.store.sqlite_schema import migrate
from manul.service.store.sqlite_transaction import SqliteTransaction, events_of, is_bad_read, is_damage
from manul.service.store.store_registry import register_store

log = logging.getLogger("manul.service")
# Pages (128 MiB) beyond which the writer itself has to checkpoint; see `Checkpoints`.
WAL_PAGES = 32_768
CHECKPOINT_SECONDS = 1.0
# Pieces of snapshots (4 MiB) after which a checkpoint begins earlier, or the log would grow by a whole model until the next one.
CHECKPOINT_PIECES = 8
# The longest wait for another program that holds a lock on the file.
BUSY_SECONDS = 2.0
LOST = "the file of the store was deleted or replaced; put it back, or restart the service"


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
        self.damaged: set[int] = set()
        self.lost: str | None = None
        try:
            version = check_file(self._path)
            self._writer = self._connect()
            migrate(self._writer, version)
            self._counts = self._read_counts()
        except (sqlite3.DatabaseError, StoreFailure, Damaged) as error:
            self._close_all()
            raise FileError(f"{self._path} cannot be opened as a store of manul: {error}") from error
        except BaseException:
            self._close_all()
            raise
        # With the write-ahead log, because what is only there would be lost with it.
        log_file = self._path.with_name(self._path.name + "-wal")
        self._files = {self._path: self._lock.identity, log_file: identity_at(log_file)}
        self._checkpoints = Checkpoints(self._connect, self._find_file)
        self._checkpoints.start()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        current = SqliteTransaction(self._writer, self._recent, self._counts)
        try:
            self._writer.execute("BEGIN IMMEDIATE")
            yield current
            current.finish()
            self._find_file()
            if self.lost is not None:
                raise StoreFailure(self.lost)
            self._commit()
        except sqlite3.DatabaseError as error:
            self._undo()
            raise self._failure(error, current.loop) from error
        except BaseException:
            self._undo()
            raise
        current.on_commit()
        self._checkpoints.note(current.pieces)

    def transaction_beside(self) -> None:
        """None: a file has one writer at a time."""

    def _find_file(self) -> None:
        """Note whether the files that are written to are still those that a restart would find."""
        gone = next((path for path, identity in self._files.items() if identity_at(path) != identity), None)
        if gone is not None and self.lost is None:
            log.error("%s was deleted or replaced; nothing is written any more", gone)
        self.lost = None if gone is None else LOST

    def _commit(self) -> None:
        """Commit; unlike the statement, `commit` gives up the interpreter's lock once and not three times, but says nothing if
        SQLite has rolled the transaction back already."""
        if not self._writer.in_transaction:
            raise StoreFailure("SQLite rolled the transaction back")
        self._writer.commit()

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

    def keep_numbers(self, loop: int, *, ahead: bool, left: bool = True) -> list[range]:  # noqa: ARG002
        """Numbers are always in the order of decisions."""
        return []

    def counts(self, loop: int) -> Counts:
        if loop not in self._counts:
            raise Damaged if loop in self.damaged else LoopGone
        return self._counts[loop]

    def loops(self) -> list[LoopRow]:
        """All loops; if some cannot be read, those have no settings, and their names are taken from the index."""
        try:
            return super().loops()
        except Damaged:
            names = self._read("SELECT number, name FROM loops INDEXED BY sqlite_autoindex_loops_1 ORDER BY name")
        return [self._loop_or_name(*row) for row in sorted(names)]

    def _loop_or_name(self, number: int, name: str) -> LoopRow:
        try:
            return self._loops("WHERE number = ?", number)[0]
        except (Damaged, IndexError):
            self.damaged.add(number)
            return LoopRow(number=number, name=name, settings=b"", created=0.0, paused=True, apprentice=False)

    def _read_counts(self) -> dict[int, Counts]:
        """The totals of all loops, without those that cannot be read."""
        try:
            rows = self._read("SELECT * FROM counts")
        except Damaged:
            rows = [
                row
                for loop in super().loops()
                for row in self._read_or_skip("SELECT * FROM counts WHERE loop = ?", loop.number)
            ]
        self.damaged |= {loop for loop, *counts in rows if not is_counts(counts)}
        return {loop: Counts(*counts) for loop, *counts in rows if is_counts(counts)}

    def _read_or_skip(self, query: str, loop: int) -> list[Any]:
        try:
            return self._read(query, loop)
        except Damaged:
            return []

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        return events_of(self._read, loop, numbers)

    def free_bytes(self) -> int:
        return shutil.disk_usage(self._path.parent).free

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
            raise self._failure(error, next(iter(values), None)) from error

    def _failure(self, error: sqlite3.DatabaseError, loop: Any) -> StoreFailure | Damaged:
        """What an error means: that data of the loop are damaged, or that the whole store cannot be used."""
        if not is_damage(error):
            return StoreFailure(str(error))
        # A read that the disk refused may succeed later, unlike one of a damaged page.
        if isinstance(loop, int) and loop not in self.damaged and not is_bad_read(error):
            log.error("the store is damaged where it keeps loop number %d: %s", loop, error)
            self.damaged.add(loop)
        return Damaged()


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
    """Checkpoints the write-ahead log in a thread of its own, so that the writer does not have to; `find_file` is called every
    second, also if nothing is written."""

    def __init__(self, connect: Callable[[], sqlite3.Connection], find_file: Callable[[], None]) -> None:
        super().__init__(name="manul-checkpoints", daemon=True)
        self._due, self._early, self._connection = threading.Event(), threading.Event(), connect()
        self._pieces, self._stopping, self._find_file = 0, False, find_file

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
            self._find_file()
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
