"""One transaction on PostgreSQL. Statements without a result are sent together (libpq's pipeline mode)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import psycopg

from manul.service.store import DownloadPiece, Event, Lookup, LoopGone, Snapshot, numbered
from manul.service.store.blocks import Block, DecisionRow, encode, ranges
from manul.service.store.reading import (
    DOWNLOADS,
    EVENT,
    HISTORY,
    Recent,
    block_of,
    block_with,
    event_of,
    rows_to_purge,
    surplus_downloads,
    tally,
)
from manul.service.store.watchdog import Connection, Watchdog

SLOTS = 16
TALLY = f"""
INSERT INTO tallies VALUES (%s, pg_backend_pid() %% {SLOTS}, %s, %s) ON CONFLICT (loop, slot) DO UPDATE SET
  decisions = tallies.decisions + excluded.decisions, latest = greatest(tallies.latest, excluded.latest)
"""
HEAD = """
UPDATE heads SET events = events + %s, outcomes = outcomes + %s, loss_sum = loss_sum + %s, late = late + %s,
  defaulted = defaulted + %s WHERE loop = %s
"""
LOCK = "SELECT events, forgets FROM heads WHERE loop = %s FOR UPDATE"
NUMBERS = "SELECT id, decision FROM ids WHERE loop = %s AND id = ANY(%s::bytea[])"
LIMITS_AFTER = "SELECT number FROM events WHERE loop = %s AND number > %s AND number <= %s AND kind = 'limits'"
# OFFSET 0 makes PostgreSQL look up each decision in the index. Without statistics it would read all events of the loop.
EVENTS_OF = f"""
SELECT {EVENT} FROM unnest(%s::bigint[]) AS wanted,
  LATERAL (SELECT {EVENT} FROM events WHERE loop = %s AND decision = wanted OFFSET 0) e ORDER BY decision, number
"""
# The blocks that would contain some numbers.
BLOCKS_WITH = """
SELECT DISTINCT ON (b.first) b.first, b.body FROM unnest(%s::bigint[]) AS wanted,
  LATERAL (SELECT first, body FROM blocks WHERE loop = %s AND first <= wanted ORDER BY first DESC LIMIT 1) b
"""
Result = psycopg.Cursor[Any]
EVENTS = """
INSERT INTO events SELECT %s, * FROM
  unnest(%s::bigint[], %s::bigint[], %s::text[], %s::double precision[], %s::double precision[], %s::bytea[], %s::bytea[])
"""
# The number of a loop, NULL if it was deleted, which tables refuse; it cannot be deleted until the transaction ends.
PRESENT = "(SELECT number FROM loops WHERE number = %s FOR KEY SHARE)"
CLAIM = f"""
INSERT INTO ids SELECT {PRESENT}, * FROM unnest(%s::bytea[], %s::bigint[]) ON CONFLICT DO NOTHING RETURNING id
"""


class PostgresTransaction:
    """One transaction; the cache of recent blocks is updated once it is durable."""

    def __init__(
        self,
        connection: Connection,
        watchdog: Watchdog,
        recent: Recent,
        has_first: set[int],
        forgets: dict[int, int],
    ) -> None:
        self._connection, self._watchdog = connection, watchdog
        self._recent, self._has_first, self._forgets = recent, has_first, forgets
        self._blocks: list[tuple[int, Block]] = []
        self._heads: dict[int, int] = {}
        self._first_heads: dict[int, int] = {}  # when they were locked
        # By loop: numbers of ids and events of decisions that were prefetched, and events that `finish` writes.
        self._known_ids: dict[int, dict[str, int]] = {}
        self._known_events: dict[int, dict[int, list[Event]]] = {}
        self._added: dict[int, list[Event]] = {}
        self._gone: list[int] = []

    def finish(self) -> None:
        """Write events and totals, ordered by loop so that replicas do not deadlock."""
        self._write_events()
        totals: dict[int, tuple[int, float]] = {}
        for loop, block in self._blocks:
            count, latest = totals.get(loop, (0, 0.0))
            totals[loop] = (count + block.count, max(latest, block.time))
        for loop, (count, latest) in sorted(totals.items()):
            self._execute(TALLY, loop, count, latest)

    def on_commit(self) -> None:
        for loop, block in self._blocks:
            self._recent.add(loop, block)
            self._has_first.add(loop)
        for loop in self._gone:
            self._recent.drop(loop)

    @property
    def loops(self) -> set[int]:
        """The loops that it has read or written so far."""
        return {loop for loop, _ in self._blocks} | set(self._heads)

    def add_loop(self, name: str, settings: bytes, created: float, *, apprentice: bool) -> int | None:
        added = self._read(
            "INSERT INTO loops (name, settings, created, apprentice) VALUES (%s, %s, %s, %s) ON CONFLICT DO NOTHING "
            "RETURNING number",
            name,
            settings,
            created,
            apprentice,
        )
        if not added:
            return None
        number = int(added[0][0])
        for table in ("heads", "numbering"):
            self._execute(f"INSERT INTO {table} (loop) VALUES (%s)", number)
        return number

    def change_loop(
        self, loop: int, *, paused: bool | None = None, apprentice: bool | None = None, stopped: int | None = None
    ) -> None:
        change = (
            "UPDATE loops SET paused = coalesce(%s, paused), apprentice = coalesce(%s, apprentice), "
            "stopped = greatest(stopped, %s) WHERE number = %s RETURNING number"
        )
        if not self._read(change, paused, apprentice, stopped or 0, loop):
            raise LoopGone

    def claim(self, loop: int, ids: Mapping[str, int]) -> dict[str, int]:
        ordered = sorted(ids)
        names, numbers = [each.encode() for each in ordered], [ids[each] for each in ordered]
        claimed = {row[0] for row in self._read(CLAIM, loop, names, numbers)} if ids else set()
        others = [each for each in ordered if each.encode() not in claimed]
        known = zip(others, self.numbers(loop, others), strict=True)
        return {id_: number for id_, number in known if number is not None}

    def add_block(self, loop: int, block: Block, *, waits: bool = True) -> None:
        body = encode(block)
        if loop not in self._has_first:
            self._execute("INSERT INTO firsts VALUES (%s, %s) ON CONFLICT DO NOTHING", loop, body)
        insertion = f"INSERT INTO blocks (loop, first, last, time, ended, body) VALUES ({PRESENT}, %s, %s, %s, %s, %s)"
        self._execute(insertion, loop, block.first, block.last, block.time, not waits, body)
        self._blocks.append((loop, block))

    def numbers(self, loop: int, ids: Sequence[str]) -> list[int | None]:
        known = self._known_ids.get(loop, {})
        unknown = [each.encode() for each in ids if each not in known]
        read = dict(self._read(NUMBERS, loop, unknown)) if unknown else {}
        return [known[each] if each in known else read.get(each.encode()) for each in ids]

    def decisions(self, loop: int, numbers: Sequence[int]) -> list[DecisionRow | None]:
        if not numbers:
            return []
        self._lock(loop)
        return self._recent.decisions(loop, numbers, lambda number: block_with(self._read, loop, number))

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        """All events of some decisions, in order; no replica can add events until this transaction ends."""
        if not numbers:
            return {}
        self._lock(loop)
        known = self._known_events.get(loop, {})
        if all(number in known for number in numbers):
            return {number: list(known[number]) for number in numbers if known[number]}
        self._write_events()
        return events_of(self._read, loop, numbers)

    def limits_after(self, loop: int, event: int) -> list[int]:
        self._lock(loop)
        return [number for (number,) in self._read(LIMITS_AFTER, loop, event, self._first_heads[loop])]

    def prefetch(self, lookups: Sequence[Lookup]) -> None:
        """Read what `numbers`, `decisions` and `events_of` will be asked for, and lock the loops, in order of their numbers."""
        ids: dict[int, list[str]] = {}
        numbers: dict[int, list[int]] = {}
        for loop, names, own in sorted(lookups, key=lambda lookup: lookup.loop):
            ids.setdefault(loop, []).extend(names)
            numbers.setdefault(loop, []).extend(own)
        # All queries are sent before the first result is awaited.
        queries = {loop: self._run(NUMBERS, (loop, [each.encode() for each in ids[loop]])) for loop in ids if ids[loop]}
        for loop, query in queries.items():
            self._known_ids[loop] = {id_.decode(): number for id_, number in query.fetchall()}
            numbers[loop] += self._known_ids[loop].values()
        begun = [(loop, self._begin_reading(loop, numbers[loop])) for loop in numbers if numbers[loop]]
        for loop, (head, blocks, events) in begun:
            self._note_head(loop, head.fetchall())
            if blocks is not None:
                add_blocks(self._recent, loop, blocks.fetchall())
            read = _by_decision(loop, events.fetchall())
            self._known_events[loop] = {number: read.get(number, []) for number in numbers[loop]}

    def _begin_reading(self, loop: int, numbers: list[int]) -> tuple[Result, Result | None, Result]:
        """Begin to lock a loop and to read decisions that are not cached, and events; the lock comes before the reads."""
        head, missing = self._run(LOCK, (loop,)), self._recent.missing(loop, numbers)
        blocks = self._run(BLOCKS_WITH, (array(missing), loop)) if missing else None
        return head, blocks, self._run(EVENTS_OF, (array(set(numbers)), loop))

    def add_events(self, loop: int, events: Iterable[Event]) -> list[Event]:
        first = self._lock(loop) + 1
        stored = numbered(events, first)
        self._heads[loop] += len(stored)
        self._added.setdefault(loop, []).extend(stored)
        known = self._known_events.get(loop, {})
        for event in stored:
            if event.decision in known:
                known[event.decision].append(event)
        return stored

    def _write_events(self) -> None:
        written, self._added = self._added, {}
        for loop, events in sorted(written.items()):
            columns: list[Any] = [array(event[place] for event in events) for place in range(5)]
            texts = [[event.key for event in events], [event.parts for event in events]]
            columns += [_encoded(each) if any(text is not None for text in each) else None for each in texts]
            self._execute(EVENTS, loop, *columns)
            added = tally(events)
            totals = (added.outcomes, added.loss_sum, added.late, added.defaulted)
            self._execute(HEAD, added.events, *totals, loop)

    def take_expired(self, loop: int, before: float, limit: int) -> list[DecisionRow]:
        query = (
            "SELECT first, body FROM blocks WHERE loop = %s AND NOT ended AND time < %s ORDER BY time, first LIMIT %s"
        )
        if not self._read(query.replace("first, body", "1"), loop, before, 1):
            return []
        self._lock(loop)
        decisions: list[DecisionRow] = []
        firsts: list[int] = []
        for first, body in self._read(query, loop, before, limit):
            firsts.append(first)
            block = block_of(loop, first, body)
            decisions += [] if block is None else block.decisions()
            if len(decisions) >= limit:
                break
        self._execute("UPDATE blocks SET ended = true WHERE loop = %s AND first = ANY(%s)", loop, firsts)
        return decisions

    def add_model(self, loop: int, event: int, model: bytes) -> None:
        self._execute(f"INSERT INTO models VALUES ({PRESENT}, %s, %s)", loop, event, model)

    def add_piece(self, loop: int, event: int, place: int, piece: bytes) -> None:
        # A result is read, so that not all pieces wait in memory until the server takes them.
        self._read("INSERT INTO pieces VALUES (%s, %s, %s, %b) RETURNING place", loop, event, place, piece)

    def add_snapshot(self, loop: int, snapshot: Snapshot, *, keep: int, pieces: int = 0) -> None:
        insertion = f"INSERT INTO snapshots VALUES ({PRESENT}, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING"
        self._execute(insertion, loop, *snapshot, pieces)
        kept = "SELECT event FROM snapshots WHERE loop = %s ORDER BY event DESC LIMIT %s"
        self._execute(f"DELETE FROM snapshots WHERE loop = %s AND event NOT IN ({kept})", loop, loop, keep)
        kept = "SELECT event FROM snapshots WHERE loop = %s"
        self._execute(f"DELETE FROM pieces WHERE loop = %s AND event NOT IN ({kept})", loop, loop)

    def add_download(self, loop: int, piece: DownloadPiece) -> None:
        insertion = (
            f"INSERT INTO downloads VALUES ({PRESENT}, %s, %s, %s, %s, %b) ON CONFLICT DO NOTHING RETURNING place"
        )
        self._read(insertion, loop, *piece)

    def trim_downloads(self, loop: int, *, keep: int, most_bytes: int) -> None:
        for signature in surplus_downloads(self._read(DOWNLOADS, loop), keep, most_bytes):
            self._execute("DELETE FROM downloads WHERE loop = %s AND signature = %s", loop, signature)

    def forget(self, loop: int, blocks: Sequence[Block]) -> None:
        self._lock(loop)
        self._write_events()
        self._known_ids.pop(loop, None)
        self._known_events.pop(loop, None)
        for first, last in ranges(blocks):
            for table, key in (("ids", "decision"), ("events", "decision"), ("blocks", "first")):
                self._execute(f"DELETE FROM {table} WHERE loop = %s AND {key} BETWEEN %s AND %s", loop, first, last)
        self._execute("UPDATE heads SET forgets = forgets + 1 WHERE loop = %s", loop)
        self._recent.drop(loop)

    def delete_loop(self, loop: int) -> None:
        self._lock(loop)
        self._write_events()
        self._execute("DELETE FROM loops WHERE number = %s", loop)
        for table in ("heads", "numbering", "tallies", "firsts"):
            self._execute(f"DELETE FROM {table} WHERE loop = %s", loop)
        self._execute("INSERT INTO deleted VALUES (%s)", loop)
        self._gone.append(loop)

    def purge(self, limit: int) -> bool:
        rows = self._read("SELECT loop FROM deleted ORDER BY loop LIMIT 1 FOR UPDATE SKIP LOCKED")
        if not rows:
            return False
        (loop,) = rows[0]
        for table, key in HISTORY.items():
            some = f"SELECT ctid FROM {table} WHERE loop = %s ORDER BY {key} LIMIT %s"
            removal = f"DELETE FROM {table} WHERE ctid = ANY(ARRAY({some})) RETURNING 1"
            most = rows_to_purge(table, limit)
            removed = len(self._read(removal, loop, most))
            if removed == most:
                return True
            limit -= removed
        self._execute("DELETE FROM deleted WHERE loop = %s", loop)
        return bool(self._read("SELECT 1 FROM deleted LIMIT 1"))

    def _lock(self, loop: int) -> int:
        """Lock a loop; returns its last event. No replica adds events or forgets decisions until this transaction ends."""
        if loop not in self._heads:
            self._note_head(loop, self._read(LOCK, loop))
        if loop not in self._heads:
            raise LoopGone
        return self._heads[loop]

    def _note_head(self, loop: int, rows: list[Any]) -> None:
        """Note the last event of a locked loop; cached blocks are dropped if another replica removed some."""
        forgets = rows[0][1] if rows else None
        if forgets is None or self._forgets.setdefault(loop, forgets) != forgets:
            self._recent.drop(loop)
        if forgets is not None:
            self._heads[loop], self._forgets[loop] = int(rows[0][0]), forgets
            self._first_heads.setdefault(loop, self._heads[loop])

    def _read(self, query: str, *values: object) -> list[Any]:
        return self._run(query, values).fetchall()

    def _execute(self, query: str, *values: object) -> None:
        self._run(query, values)

    def _run(self, query: str, values: tuple[object, ...]) -> Result:
        self._watchdog.restart(self._connection)
        return self._connection.execute(query.replace("?", "%s").encode(), values)


def array(values: Iterable[int | float | str | None]) -> str:
    """An array as a literal, which is encoded faster than a list; words must need no quotes."""
    return f"{{{','.join(map(str, values))}}}"


def _encoded(texts: Sequence[str | None]) -> list[bytes | None]:
    return [None if text is None else text.encode() for text in texts]


def events_of(read: Callable[..., list[Any]], loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
    """All events of some decisions, in order; decisions without events are omitted."""
    return _by_decision(loop, read(EVENTS_OF, array(set(numbers)), loop))


def _by_decision(loop: int, rows: Iterable[tuple[Any, ...]]) -> dict[int, list[Event]]:
    events: dict[int, list[Event]] = {}
    for row in rows:
        events.setdefault(row[1], []).append(event_of(loop, row))
    return events


def add_blocks(recent: Recent, loop: int, rows: Iterable[tuple[int, bytes]]) -> None:
    """Add blocks that were read to the cache; damaged ones are skipped."""
    for first, body in rows:
        block = block_of(loop, first, body)
        if block is not None:
            recent.add(loop, block)
