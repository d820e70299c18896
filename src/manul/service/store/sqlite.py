"""The store in one SQLite file: write-ahead log, synced on every commit, one process at a time."""

from __future__ import annotations

import fcntl
import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import IO, Any, TypeVar

import msgspec

from manul.errors import FileError
from manul.service.store import OUTCOMES, Counts, Event, LoopRow, Snapshot, StoreFailure, Transaction
from manul.service.store.blocks import Block, Decided, decoded, encoded
from manul.service.store.recent import Recent

_Value = TypeVar("_Value")
VERSION = 1
AT_ONCE = 500
WAL_PAGES = 32_768
CHECKPOINT_SECONDS = 1.0
BLOCK = "SELECT body FROM blocks WHERE loop = ? AND first <= ? ORDER BY first DESC LIMIT 1"

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
EVENT = "number, decision, kind, loss, time, key"


class SqliteStore:
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

    def reserve(self, loop: int, count: int) -> int:
        """The first of some consecutive decision numbers that nobody else gets."""
        with self._reserving:
            counts = self._counts[loop]
            first = counts.numbers + 1
            counts.numbers += count
            return first

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
        rows = self._read("SELECT body FROM blocks WHERE loop = ? ORDER BY first LIMIT 1", loop)
        return decoded(rows[0][0]).decisions()[0] if rows else None

    def events(self, loop: int, after: int, limit: int) -> list[tuple[Event, Decided | None]]:
        """The next events in order, each with its decision."""
        found = self._read(
            f"SELECT {EVENT} FROM events WHERE loop = ? AND number > ? ORDER BY number LIMIT ?", loop, after, limit
        )
        events = [Event(*row) for row in found]
        return list(zip(events, self._decisions(loop, [event.decision for event in events]), strict=True))

    def blocks(self, loop: int, after: int, limit: int) -> list[Block]:
        """The next blocks of decisions, the oldest first; `after` is the last number of the block before."""
        query = "SELECT body FROM blocks WHERE loop = ? AND first > ? ORDER BY first LIMIT ?"
        return [decoded(body) for (body,) in self._read(query, loop, after, limit)]

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        """All durable events of some decisions, in order; decisions without one are left out."""
        return _events_of(self._read, loop, numbers)

    def model(self, loop: int, event: int) -> bytes:
        """An imported model."""
        return bytes(self._read("SELECT body FROM models WHERE loop = ? AND event = ?", loop, event)[0][0])

    def snapshot(self, loop: int) -> Snapshot | None:
        """The newest snapshot."""
        newest = (
            "SELECT event, body, learned, refused, history FROM snapshots WHERE loop = ? ORDER BY event DESC LIMIT 1"
        )
        rows = self._read(newest, loop)
        return Snapshot(*rows[0]) if rows else None

    def snapshots(self, loop: int) -> list[int]:
        """The events of all snapshots, newest first."""
        return [row[0] for row in self._read("SELECT event FROM snapshots WHERE loop = ? ORDER BY event DESC", loop)]

    def check(self) -> None:
        """Raises StoreFailure where the store cannot be used."""
        try:
            self._read("SELECT count(*) FROM loops")
        except sqlite3.DatabaseError as error:
            raise StoreFailure(str(error)) from error

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
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False, timeout=30)
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
        reader: sqlite3.Connection | None = getattr(self._threads, "reader", None)
        if reader is None:
            reader = self._threads.reader = self._connected()
            self._readers.append(reader)
        return reader.execute(query, values).fetchall()

    def _decisions(self, loop: int, numbers: Sequence[int]) -> list[Decided | None]:
        return self._recent.decisions(loop, numbers, lambda number: _block(self._read(BLOCK, loop, number)))


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


class SqliteTransaction:
    """One transaction; counts and remembered blocks are taken over once it is durable."""

    def __init__(self, connection: sqlite3.Connection, recent: Recent, counts: dict[int, Counts]) -> None:
        self._connection, self._recent, self._counts = connection, recent, counts
        self._blocks: list[tuple[int, Block]] = []
        self._events: dict[int, list[Event]] = {}
        self._loops: list[int] = []

    def kept(self) -> None:
        """The transaction is durable."""
        for loop in self._loops:
            self._counts[loop] = Counts()
        for loop, block in self._blocks:
            self._recent.add(loop, block)
            self._counts[loop].decisions += block.count
            self._counts[loop].latest = max(self._counts[loop].latest, block.time)
        for loop, events in self._events.items():
            for event in events:
                _count(self._counts[loop], event)

    def add_loop(self, name: str, settings: bytes, created: float, *, apprentice: bool) -> int | None:
        """The number of a new loop; None where the name is taken."""
        added = self._connection.execute(
            "INSERT INTO loops (name, settings, created, apprentice) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
            (name, settings, created, apprentice),
        )
        if added.rowcount == 0 or added.lastrowid is None:
            return None
        self._loops.append(added.lastrowid)
        return added.lastrowid

    def change_loop(self, loop: int, *, paused: bool | None = None, apprentice: bool | None = None) -> None:
        """Keep a new state of a loop."""
        change = "UPDATE loops SET paused = coalesce(?, paused), apprentice = coalesce(?, apprentice) WHERE number = ?"
        self._connection.execute(change, (paused, apprentice, loop))

    def claim(self, loop: int, ids: Mapping[str, int]) -> dict[str, int]:
        """Give ids to decision numbers; returns those that other decisions have already, with their numbers."""
        taken = dict(zip(ids, self.numbers(loop, list(ids)), strict=True))
        found = {given: number for given, number in taken.items() if number is not None}
        fresh = [(loop, given, number) for given, number in ids.items() if given not in found]
        self._connection.executemany("INSERT INTO ids VALUES (?, ?, ?)", fresh)
        return found

    def add_block(self, loop: int, block: Block) -> None:
        """Keep decisions."""
        row = (loop, block.first, block.last, block.count, block.time, encoded(block))
        self._connection.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?)", row)
        self._blocks.append((loop, block))

    def numbers(self, loop: int, ids: Sequence[str]) -> list[int | None]:
        """The decision numbers behind given ids."""
        known: dict[str, int] = {}
        for some in _some(ids):
            marks = ", ".join("?" * len(some))
            query = f"SELECT id, decision FROM ids WHERE loop = ? AND id IN ({marks})"
            known.update(self._connection.execute(query, (loop, *some)).fetchall())
        return [known.get(each) for each in ids]

    def decisions(self, loop: int, numbers: Sequence[int]) -> list[Decided | None]:
        """Stored decisions."""
        return self._recent.decisions(
            loop, numbers, lambda number: _block(self._connection.execute(BLOCK, (loop, number)).fetchall())
        )

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        """All events of some decisions, in order; decisions without one are left out."""
        return _events_of(self._read, loop, numbers)

    def add_events(self, loop: int, events: Iterable[Event]) -> list[Event]:
        """Keep events under the next numbers of the loop; returns them with these."""
        before = self._events.setdefault(loop, [])
        first = self._counts[loop].events + len(before) + 1
        numbered = [event._replace(number=first + place) for place, event in enumerate(events)]
        self._connection.executemany(
            "INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", [(loop, *event) for event in numbered]
        )
        before += numbered
        return numbered

    def ended(self, loop: int, before: float, limit: int) -> list[int]:
        """Decisions made before a time that have not been asked for by this before, the oldest first."""
        after = self._connection.execute("SELECT ended FROM loops WHERE number = ?", (loop,)).fetchone()[0]
        query = "SELECT body FROM blocks WHERE loop = ? AND first > ? AND time < ? ORDER BY first"
        numbers: list[int] = []
        for (body,) in self._connection.execute(query, (loop, after, before)):
            numbers += decoded(body).all_numbers()
            if len(numbers) >= limit:
                break
        if numbers:
            self._connection.execute("UPDATE loops SET ended = ? WHERE number = ?", (numbers[-1], loop))
        return numbers

    def add_model(self, loop: int, event: int, model: bytes) -> None:
        """Keep an imported model under its event."""
        self._connection.execute("INSERT INTO models VALUES (?, ?, ?)", (loop, event, model))

    def add_snapshot(self, loop: int, snapshot: Snapshot, *, keep: int) -> None:
        """Keep a snapshot, and of the older ones the newest, `keep` in all."""
        self._connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?)", (loop, *snapshot))
        kept = "SELECT event FROM snapshots WHERE loop = ? ORDER BY event DESC LIMIT ?"
        self._connection.execute(f"DELETE FROM snapshots WHERE loop = ? AND event NOT IN ({kept})", (loop, loop, keep))

    def forget(self, loop: int, through: int, before: float) -> None:  # noqa: ARG002 - numbers are in the order of time
        """Remove decisions made before a time and up to a number, their ids and their events; counts go on."""
        held = counted(self._read, loop)
        for removal in (
            "DELETE FROM blocks WHERE loop = ? AND last <= ?",
            "DELETE FROM ids WHERE loop = ? AND decision <= ?",
            "DELETE FROM events WHERE loop = ? AND decision BETWEEN 1 AND ?",
        ):
            self._connection.execute(removal, (loop, through))
        self._connection.execute("UPDATE loops SET archived = NULL WHERE number = ?", (loop,))
        left = counted(self._read, loop)
        gone = Counts(
            decisions=held.decisions - left.decisions,
            outcomes=held.outcomes - left.outcomes,
            loss_sum=held.loss_sum - left.loss_sum,
            late=held.late - left.late,
            defaulted=held.defaulted - left.defaulted,
            events=held.events,
            numbers=held.numbers,
            latest=held.latest,
        )
        self._connection.execute("UPDATE loops SET archived = ? WHERE number = ?", (msgspec.json.encode(gone), loop))
        self._recent.drop(loop)

    def _read(self, query: str, *values: object) -> list[Any]:
        return self._connection.execute(query, values).fetchall()


def counted(read: Callable[..., list[Any]], loop: int) -> Counts:
    """What a loop holds and what was archived of it."""
    kinds = read("SELECT kind, count(*), sum(loss) FROM events WHERE loop = ? GROUP BY kind", loop)
    found = {kind: (count, total) for kind, count, total in kinds}
    blocks = "SELECT coalesce(sum(count), 0), coalesce(max(last), 0), coalesce(max(time), 0) FROM blocks WHERE loop = ?"
    decisions, numbers, latest = read(blocks, loop)[0]
    events = read("SELECT coalesce(max(number), 0) FROM events WHERE loop = ?", loop)[0][0]
    settled = [found[kind] for kind in OUTCOMES if kind in found]
    archived = read("SELECT archived FROM loops WHERE number = ?", loop)[0][0]
    before = Counts() if archived is None else msgspec.json.decode(archived, type=Counts)
    return Counts(
        decisions=before.decisions + decisions,
        outcomes=before.outcomes + sum(count for count, _ in settled),
        loss_sum=before.loss_sum + sum(total for _, total in settled),
        late=before.late + found.get("late", (0, 0))[0],
        defaulted=before.defaulted + found.get("default", (0, 0))[0],
        events=max(before.events, events),
        numbers=max(before.numbers, numbers),
        latest=max(before.latest, latest),
    )


def _count(counts: Counts, event: Event) -> None:
    counts.events = event.number
    if event.kind in OUTCOMES:
        counts.outcomes += 1
        counts.loss_sum += event.loss
    counts.late += event.kind == "late"
    counts.defaulted += event.kind == "default"


def _block(rows: list[Any]) -> Block | None:
    return decoded(rows[0][0]) if rows else None


def _events_of(read: Callable[..., list[Any]], loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
    found: dict[int, list[Event]] = {}
    for some in _some(numbers):
        marks = ", ".join("?" * len(some))
        query = f"SELECT {EVENT} FROM events WHERE loop = ? AND decision IN ({marks}) ORDER BY decision, number"
        for row in read(query, loop, *some):
            found.setdefault(row[1], []).append(Event(*row))
    return found


def _some(values: Sequence[_Value]) -> Iterator[list[_Value]]:
    remaining = iter(values)
    while some := list(islice(remaining, AT_ONCE)):
        yield some
