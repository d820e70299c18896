"""One transaction on SQLite, and the queries that it shares with the store."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from msgspec.structs import astuple

from manul.service.store import Counts, DownloadPiece, Event, Lookup, LoopGone, Snapshot, numbered
from manul.service.store.blocks import Block, DecisionRow, encode, ranges
from manul.service.store.reading import (
    DOWNLOADS,
    EVENT,
    HISTORY,
    Recent,
    block_with,
    event_of,
    rows_to_purge,
    surplus_downloads,
    tally,
)

log = logging.getLogger("manul.service")
_Value = TypeVar("_Value")
# What SQLite finds on damaged pages, such as duplicates of keys, and reads of one page that the disk refuses.
DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_CONSTRAINT, sqlite3.SQLITE_TOOBIG})
BAD_READS = frozenset({sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_CORRUPTFS})
# Values per query; SQLite limits the number of parameters.
PARAMETERS = 500
COUNT = """
UPDATE counts SET decisions = decisions + ?, outcomes = outcomes + ?, loss_sum = loss_sum + ?, late = late + ?,
  defaulted = defaulted + ?, events = events + ?, numbers = max(numbers, ?), latest = max(latest, ?) WHERE loop = ?
"""
# Events of one statement, which takes half the time of one each; more sizes would be more statements to prepare.
EVENTS_PER_STATEMENT = (64, 16, 4, 1)
_EVENT = f"({', '.join('?' * (1 + len(Event._fields)))})"
INSERT_EVENTS = {size: f"INSERT INTO events VALUES {', '.join([_EVENT] * size)}" for size in EVENTS_PER_STATEMENT}
# Pieces of a loop that belong to no snapshot, except those of the one that is being added.
REMOVAL = """
DELETE FROM pieces WHERE rowid IN (SELECT rowid FROM pieces
  WHERE loop = ? AND event <> ? AND event NOT IN (SELECT event FROM snapshots WHERE loop = ?) LIMIT ?)
"""


class SqliteTransaction:
    """One transaction; totals and cached blocks are updated once it is durable."""

    def __init__(self, connection: sqlite3.Connection, recent: Recent, counts: dict[int, Counts]) -> None:
        self._connection, self._recent, self._counts = connection, recent, counts
        self._blocks: list[tuple[int, Block]] = []
        self._events: dict[int, list[Event]] = {}
        self._added: dict[int, Counts] = {}
        self._forgotten: set[int] = set()
        self._created: set[int] = set()
        self._gone: set[int] = set()
        self.loop: int | None = None  # the last one that was read or written
        self.pieces = 0

    def finish(self) -> None:
        rows = [(*astuple(added), loop) for loop, added in self._added.items() if loop not in self._gone]
        self._connection.executemany(COUNT, rows)

    def on_commit(self) -> None:
        for loop in self._created:
            self._counts[loop] = Counts()
        for loop in self._gone:
            self._counts.pop(loop, None)
        for loop, added in self._added.items():
            if loop not in self._gone:
                _add(self._counts[loop], added)
        for loop in self._forgotten | self._gone:
            self._recent.drop(loop)
        for loop, block in self._blocks:
            if loop not in self._gone:
                self._recent.add(loop, block, written=True)
        for loop, events in self._events.items():
            self._recent.note(loop, events)

    def add_loop(self, name: str, settings: bytes, created: float, *, apprentice: bool) -> int | None:
        if self._read("SELECT 1 FROM loops WHERE name = ?", name):
            return None
        number = self._connection.execute("INSERT INTO counts DEFAULT VALUES").lastrowid
        assert number is not None
        insertion = "INSERT INTO loops (number, name, settings, created, apprentice) VALUES (?, ?, ?, ?, ?)"
        self._connection.execute(insertion, (number, name, settings, created, apprentice))
        self._created.add(number)
        return number

    def change_loop(
        self, loop: int, *, paused: bool | None = None, apprentice: bool | None = None, stopped: int | None = None
    ) -> None:
        self._check(loop)
        change = (
            "UPDATE loops SET paused = coalesce(?, paused), apprentice = coalesce(?, apprentice), "
            "stopped = max(stopped, ?) WHERE number = ?"
        )
        self._connection.execute(change, (paused, apprentice, stopped or 0, loop))

    def claim(self, loop: int, ids: Mapping[str, int]) -> dict[str, int]:
        self._check(loop)
        known = zip(ids, self.numbers(loop, list(ids)), strict=True)
        taken = {id_: number for id_, number in known if number is not None}
        fresh = [(loop, id_, number) for id_, number in ids.items() if id_ not in taken]
        self._connection.executemany("INSERT INTO ids VALUES (?, ?, ?)", fresh)
        return taken

    def add_block(self, loop: int, block: Block, *, waits: bool = True) -> None:
        added = self._adding(loop)
        body = encode(block)
        if added.decisions == 0 and (loop not in self._counts or self._counts[loop].decisions == 0):
            self._connection.execute("INSERT INTO firsts VALUES (?, ?) ON CONFLICT DO NOTHING", (loop, body))
        row = (loop, block.first, block.last, block.count, block.time, body)
        # Unlike `execute`, it does not give up the interpreter's lock once more to ask for the row's number.
        self._connection.executemany("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?)", [row])
        if waits:
            self._connection.execute("INSERT INTO waiting VALUES (?, ?, ?)", (loop, block.time, block.first))
        self._blocks.append((loop, block))
        added.decisions += block.count
        added.numbers, added.latest = max(added.numbers, block.last), max(added.latest, block.time)

    def numbers(self, loop: int, ids: Sequence[str]) -> list[int | None]:
        self.loop, known = loop, dict[str, int]()
        for batch in _batches(ids):
            marks = ", ".join("?" * len(batch))
            query = f"SELECT id, decision FROM ids WHERE loop = ? AND id IN ({marks})"
            known.update(self._connection.execute(query, (loop, *batch)).fetchall())
        return [known.get(each) for each in ids]

    def decisions(self, loop: int, numbers: Sequence[int]) -> list[DecisionRow | None]:
        self._check(loop)
        return self._recent.decisions(loop, numbers, lambda number: block_with(self._read, loop, number))

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        self._check(loop)
        if loop in self._forgotten:
            return events_of(self._read, loop, numbers)
        known, unknown = self._recent.events_of(loop, numbers)
        if loop in self._events:  # which are not durable, so that only this transaction knows them
            wanted = {*numbers} - {*unknown}
            for event in self._events[loop]:
                if event.decision in wanted:
                    known.setdefault(event.decision, []).append(event)
        return known | events_of(self._read, loop, unknown)

    def limits_after(self, loop: int, event: int) -> list[int]:
        query = "SELECT number FROM events WHERE loop = ? AND number > ? AND number <= ? AND kind = 'limits'"
        last = self._counts[loop].events if loop in self._counts else 0
        return [number for (number,) in self._read(query, loop, event, last)]

    def prefetch(self, lookups: Sequence[Lookup]) -> None:
        """Nothing: a read from the file needs no round trip."""

    def add_events(self, loop: int, events: Iterable[Event]) -> list[Event]:
        added = self._adding(loop)
        first = added.events + 1 + (self._counts[loop].events if loop in self._counts else 0)
        stored = numbered(events, first)
        left = list(stored)
        for size in EVENTS_PER_STATEMENT:
            while len(left) >= size:
                row = [value for event in left[:size] for value in (loop, *event)]
                self._connection.execute(INSERT_EVENTS[size], row)
                del left[:size]
        _add(added, tally(stored))
        self._events.setdefault(loop, []).extend(stored)
        return stored

    def take_expired(self, loop: int, before: float, limit: int) -> list[DecisionRow]:
        self._check(loop)
        query = "SELECT loop, time, first FROM waiting WHERE loop = ? AND time < ? ORDER BY time, first LIMIT ?"
        decisions: list[DecisionRow] = []
        expired = []
        for row in self._read(query, loop, before, limit):
            # Not through the cache, from which decisions that are old would drive out the recent ones.
            block = block_with(self._read, loop, row[2])
            decisions += [] if block is None else block.decisions()
            expired.append(row)
            if len(decisions) >= limit:
                break
        self._connection.executemany("DELETE FROM waiting WHERE loop = ? AND time = ? AND first = ?", expired)
        return decisions

    def add_model(self, loop: int, event: int, model: bytes) -> None:
        self._check(loop)
        self._connection.execute("INSERT INTO models VALUES (?, ?, ?)", (loop, event, model))

    def add_piece(self, loop: int, event: int, place: int, piece: bytes) -> None:
        self._check(loop)
        # One for one, so that the file does not grow, and no transaction removes many.
        self._connection.execute(REMOVAL, (loop, event, loop, 1))
        self._connection.execute("INSERT OR REPLACE INTO pieces VALUES (?, ?, ?, ?)", (loop, event, place, piece))
        self.pieces += 1

    def add_snapshot(self, loop: int, snapshot: Snapshot, *, keep: int, pieces: int = 0) -> None:
        self._check(loop)
        row = (loop, *snapshot, pieces)
        self._connection.execute("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        kept = "SELECT event FROM snapshots WHERE loop = ? ORDER BY event DESC LIMIT ?"
        self._connection.execute(f"DELETE FROM snapshots WHERE loop = ? AND event NOT IN ({kept})", (loop, loop, keep))
        self._connection.execute(REMOVAL, (loop, snapshot.event, loop, 2))

    def add_download(self, loop: int, piece: DownloadPiece) -> None:
        self._check(loop)
        self._connection.execute("INSERT OR IGNORE INTO downloads VALUES (?, ?, ?, ?, ?, ?)", (loop, *piece))

    def trim_downloads(self, loop: int, *, keep: int, most_bytes: int) -> None:
        self._check(loop)
        surplus = surplus_downloads(self._read(DOWNLOADS, loop), keep, most_bytes)
        removal = "DELETE FROM downloads WHERE loop = ? AND signature = ?"
        self._connection.executemany(removal, [(loop, signature) for signature in surplus])

    def forget(self, loop: int, blocks: Sequence[Block]) -> None:
        self._check(loop)
        ids = [(loop, each) for block in blocks for each in block.ids or [] if each is not None]
        self._connection.executemany("DELETE FROM ids WHERE loop = ? AND id = ?", ids)
        expired = [(loop, block.time, block.first) for block in blocks]
        self._connection.executemany("DELETE FROM waiting WHERE loop = ? AND time = ? AND first = ?", expired)
        for table in ("events INDEXED BY events_of WHERE loop = ? AND decision", "blocks WHERE loop = ? AND first"):
            numbers = [(loop, first, last) for first, last in ranges(blocks)]
            self._connection.executemany(f"DELETE FROM {table} BETWEEN ? AND ?", numbers)
        self._forgotten.add(loop)

    def delete_loop(self, loop: int) -> None:
        # A loop without totals is one of which these are damaged.
        self.loop = loop
        if loop in self._gone or not self._connection.execute("DELETE FROM loops WHERE number = ?", (loop,)).rowcount:
            raise LoopGone
        self._connection.execute("DELETE FROM counts WHERE loop = ?", (loop,))
        self._connection.execute("INSERT INTO deleted VALUES (?)", (loop,))
        self._gone.add(loop)

    def purge(self, limit: int) -> bool:
        rows = self._read("SELECT loop FROM deleted ORDER BY loop LIMIT 1")
        if not rows:
            return False
        (loop,) = rows[0]
        for table, key in (HISTORY | {"waiting": "time, first", "firsts": "loop"}).items():
            batch = f"SELECT {key} FROM {table} WHERE loop = ? ORDER BY {key} LIMIT ?"
            removal = f"DELETE FROM {table} WHERE loop = ? AND ({key}) IN ({batch})"
            most = rows_to_purge(table, limit)
            try:
                removed = self._connection.execute(removal, (loop, loop, most)).rowcount
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                removed = 0
                log.error("rows of a deleted loop are damaged and stay in the file: %s of loop %d", table, loop)
            if removed == most:
                return True
            limit -= removed
        self._connection.execute("DELETE FROM deleted WHERE loop = ?", (loop,))
        return bool(self._read("SELECT 1 FROM deleted LIMIT 1"))

    def _check(self, loop: int) -> None:
        self.loop = loop
        if loop in self._gone or not (loop in self._counts or loop in self._created):
            raise LoopGone

    def _adding(self, loop: int) -> Counts:
        """What this transaction adds to a loop's totals."""
        self._check(loop)
        return self._added.setdefault(loop, Counts())

    def _read(self, query: str, *values: object) -> list[Any]:
        return self._connection.execute(query, values).fetchall()


def is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether an error is about some pages, and not about the whole file."""
    return _code(error) & 0xFF in DAMAGE or is_bad_read(error)


def is_bad_read(error: sqlite3.DatabaseError) -> bool:
    """Whether the disk did not return a page."""
    return _code(error) in BAD_READS


def _code(error: sqlite3.DatabaseError) -> int:
    """The code of an error; those of the module itself have none."""
    return int(vars(error).get("sqlite_errorcode", sqlite3.SQLITE_ERROR))


def _add(counts: Counts, added: Counts) -> None:
    counts.decisions += added.decisions
    counts.outcomes += added.outcomes
    counts.loss_sum += added.loss_sum
    counts.late += added.late
    counts.defaulted += added.defaulted
    counts.events += added.events
    counts.latest = max(counts.latest, added.latest)
    # Another thread reserves numbers, so they are mostly ahead already and must not be set back.
    if added.numbers > counts.numbers:
        counts.numbers = added.numbers


def events_of(read: Callable[..., list[Any]], loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
    """All events of some decisions, in order; decisions without events are omitted."""
    events: dict[int, list[Event]] = {}
    for batch in _batches(numbers):
        marks = ", ".join("?" * len(batch))
        # Without a hint, SQLite uses the primary key for a single decision and reads all events of the loop.
        query = (
            f"SELECT {EVENT} FROM events INDEXED BY events_of WHERE loop = ? AND decision IN ({marks}) "
            "ORDER BY decision, number"
        )
        for row in read(query, loop, *batch):
            events.setdefault(row[1], []).append(event_of(loop, row))
    return events


def _batches(values: Sequence[_Value]) -> Iterator[list[_Value]]:
    remaining = iter(values)
    while batch := list(islice(remaining, PARAMETERS)):
        yield batch
