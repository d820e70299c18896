"""One transaction on SQLite, and the queries that it shares with the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

import msgspec

from manul.service.store import OUTCOMES, Counts, Event, Snapshot
from manul.service.store.blocks import Block, Decided, encoded
from manul.service.store.reading import EVENT, block_of, block_with, event_of
from manul.service.store.recent import Recent

_Value = TypeVar("_Value")
AT_ONCE = 500


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
        return self._recent.decisions(loop, numbers, lambda number: block_with(self._read, loop, number))

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        """All events of some decisions, in order; decisions without one are left out."""
        return found_events(self._read, loop, numbers)

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
        query = "SELECT first, body FROM blocks WHERE loop = ? AND first > ? AND time < ? ORDER BY first"
        numbers: list[int] = []
        for first, body in self._connection.execute(query, (loop, after, before)):
            block = block_of(loop, first, body)
            numbers += [] if block is None else block.all_numbers()
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


def found_events(read: Callable[..., list[Any]], loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
    """All events of some decisions, in order; decisions without one are left out."""
    found: dict[int, list[Event]] = {}
    for some in _some(numbers):
        marks = ", ".join("?" * len(some))
        query = f"SELECT {EVENT} FROM events WHERE loop = ? AND decision IN ({marks}) ORDER BY decision, number"
        for row in read(query, loop, *some):
            found.setdefault(row[1], []).append(event_of(loop, row))
    return found


def _some(values: Sequence[_Value]) -> Iterator[list[_Value]]:
    remaining = iter(values)
    while some := list(islice(remaining, AT_ONCE)):
        yield some
