"""The queries that both stores share. A damaged row is logged and skipped."""

from __future__ import annotations

import io
import logging
import math
import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Sequence
from typing import Any, get_args

from manul.service.store import OUTCOMES, Counts, Damaged, Event, Kind, LoopRow, Snapshot
from manul.service.store.blocks import Block, DamagedBlock, DecisionRow, decode

log = logging.getLogger("manul.service")
CACHE_BYTES = 8 * 2**20
EVENT_BYTES = 300  # of a decision's event in memory
Find = Callable[[int], Block | None]
EVENT = "number, decision, kind, loss, time, key, parts"
# The tables with the data of loops, and the columns that order the rows of one loop.
HISTORY = {"events": "number", "ids": "id", "blocks": "first", "models": "event", "snapshots": "event"} | {
    "pieces": "event, place",
    "downloads": "signature, place",
}
# Rows of other tables that may be removed instead of one, because a transaction that removes many bytes takes long.
ROWS_PER_PIECE = 250
PIECES = ("pieces", "downloads")
KINDS = frozenset(get_args(Kind))
# Downloads, the newest first, with the bytes that they take.
DOWNLOADS = """
SELECT signature, sum(length(body)) FROM downloads WHERE loop = ? GROUP BY signature ORDER BY max(time) DESC, signature
"""


class _Cached:
    """A block, and the events of its decisions if all of them are known: those that came since this process wrote the block."""

    def __init__(self, block: Block, *, written: bool) -> None:
        self.block, self.first, self.last = block, block.first, block.last
        self.events = dict[int, list[Event]]() if written else None
        self.size = block.size + (EVENT_BYTES * block.count if written else 0)


class Recent:
    """A cache of recently written or read blocks: most losses arrive soon after their decisions. The oldest are evicted first."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit, self._bytes = limit, 0
        self._blocks: dict[tuple[int, int], _Cached] = {}
        self._firsts: dict[int, list[int]] = {}
        self._lock = threading.Lock()

    def add(self, loop: int, block: Block, *, written: bool = False) -> None:
        """Add a block; if it is just `written`, and no other process writes, its decisions have no events yet."""
        with self._lock:
            key = (loop, block.first)
            if key in self._blocks:
                return
            cached = self._blocks[key] = _Cached(block, written=written)
            insort(self._firsts.setdefault(loop, []), block.first)
            self._bytes += cached.size
            while self._bytes > self._limit and len(self._blocks) > 1:
                self._forget(next(iter(self._blocks)))

    def drop(self, loop: int) -> None:
        with self._lock:
            for first in list(self._firsts.get(loop, [])):
                self._forget((loop, first))
            self._firsts.pop(loop, None)

    def missing(self, loop: int, numbers: Sequence[int]) -> list[int]:
        """The numbers of decisions that are not in cached blocks."""
        with self._lock:
            return [number for number in numbers if self._find(loop, number) is None]

    def decisions(self, loop: int, numbers: Sequence[int], find: Find) -> list[DecisionRow | None]:
        """Decisions from cached blocks, or from those that `find` reads; it is fast if the numbers are in order."""
        decisions: list[DecisionRow | None] = []
        while (place := len(decisions)) < len(numbers):
            with self._lock:
                cached = self._find(loop, numbers[place])
            block = find(numbers[place]) if cached is None else cached.block
            if block is None:
                decisions.append(None)
                continue
            if cached is None:
                self.add(loop, block)
            end = place + 1
            first, last = block.first, block.last
            while end < len(numbers) and first <= numbers[end] <= last:
                end += 1
            decisions += block.select(numbers[place:end])
        return decisions

    def note(self, loop: int, events: Iterable[Event]) -> None:
        """Note events that are durable."""
        with self._lock:
            cached = None
            for event in events:
                number = event.decision
                if cached is None or not cached.first <= number <= cached.last:
                    cached = self._find(loop, number)
                if cached is not None and cached.events is not None:
                    cached.events.setdefault(number, []).append(event)

    def events_of(self, loop: int, numbers: Iterable[int]) -> tuple[dict[int, list[Event]], list[int]]:
        """The events of decisions, and the numbers of those whose events are not known here."""
        events, unknown = dict[int, list[Event]](), list[int]()
        with self._lock:
            cached = None
            for number in numbers:
                if cached is None or not cached.first <= number <= cached.last:
                    cached = self._find(loop, number)
                if cached is None or cached.events is None:
                    unknown.append(number)
                elif number in cached.events:
                    events[number] = list(cached.events[number])
        return events, unknown

    def _find(self, loop: int, number: int) -> _Cached | None:
        """The block with a number."""
        firsts = self._firsts.get(loop, [])
        place = bisect_right(firsts, number) - 1
        cached = self._blocks[loop, firsts[place]] if place >= 0 else None
        return cached if cached is not None and number <= cached.last else None

    def _forget(self, key: tuple[int, int]) -> None:
        loop, first = key
        self._bytes -= self._blocks.pop(key).size
        firsts = self._firsts[loop]
        del firsts[bisect_left(firsts, first)]


class Reading:
    """The shared queries; `_read` runs one, with a ? for each of its values."""

    _recent: Recent

    def _read(self, query: str, *values: object) -> list[Any]:
        raise NotImplementedError

    def loops(self) -> list[LoopRow]:
        return self._loops()

    def _loops(self, which: str = "", *values: object) -> list[LoopRow]:
        rows = self._read(f"SELECT {', '.join(LoopRow.__struct_fields__)} FROM loops {which} ORDER BY number", *values)
        named = [dict(zip(LoopRow.__struct_fields__, row, strict=True)) for row in rows]
        return [LoopRow(**row | {name: bool(row[name]) for name in ("paused", "apprentice")}) for row in named]

    def first_decision(self, loop: int) -> DecisionRow | None:
        """The first stored decision, whose context determines the shape of contexts."""
        try:
            rows = self._read("SELECT 0, body FROM firsts WHERE loop = ?", loop)
        except Damaged:
            rows = []
        first = block_of(loop, *rows[0]) if rows else None
        blocks = [first] if first is not None else self.blocks(loop, 0, 1)
        return blocks[0].decisions()[0] if blocks else None

    def events(self, loop: int, after: int, limit: int) -> list[tuple[Event, DecisionRow | None]]:
        query = f"SELECT {EVENT} FROM events WHERE loop = ? AND number > ? ORDER BY number LIMIT ?"
        events = [event_of(loop, row) for row in self._read(query, loop, after, limit)]
        return list(zip(events, self._decisions(loop, [event.decision for event in events]), strict=True))

    def blocks(self, loop: int, after: int, limit: int) -> list[Block]:
        query = "SELECT first, body FROM blocks WHERE loop = ? AND first > ? ORDER BY first LIMIT ?"
        while rows := self._read(query, loop, after, limit):
            blocks = [block for first, body in rows if (block := block_of(loop, first, body)) is not None]
            if blocks:
                return blocks
            after = rows[-1][0]
        return []

    def block_with(self, loop: int, number: int) -> Block | None:
        return block_with(self._read, loop, number)

    def model(self, loop: int, event: int) -> bytes:
        """What was added under an event; empty if it is missing."""
        rows = self._read("SELECT body FROM models WHERE loop = ? AND event = ?", loop, event)
        return bytes(rows[0][0]) if rows and isinstance(rows[0][0], bytes) else b""

    def snapshot(self, loop: int, before: int | None = None) -> Snapshot | None:
        query = (
            "SELECT event, body, learned, refused, history, rollout, pieces FROM snapshots WHERE loop = ? AND event = ?"
        )
        for event in self.snapshots(loop):
            if before is None or event < before:
                try:
                    rows = self._read(query, loop, event)
                    found = self._whole(loop, rows[0]) if rows else None
                except Damaged:
                    rows, found = [()], None
                if found is not None:
                    return found
                if rows:
                    log.warning("snapshot %s of loop %d is damaged; using an older one", event, loop)
        return None

    def _whole(self, loop: int, found: tuple[Any, ...]) -> Snapshot | None:
        """A snapshot with its model; None if it is damaged."""
        if not _is_snapshot(found):
            return None
        *row, pieces = found
        model = self._join(loop, row[0], pieces) if pieces else row[1]
        return None if model is None else Snapshot(*row)._replace(model=model)

    def _join(self, loop: int, event: int, count: int) -> bytes | None:
        """A model from its pieces; None if one is missing."""
        whole = io.BytesIO()
        for place in range(count):
            rows = self._read("SELECT body FROM pieces WHERE loop = ? AND event = ? AND place = ?", loop, event, place)
            if not (rows and isinstance(rows[0][0], bytes)):
                return None
            whole.write(rows[0][0])
        return whole.getvalue()

    def downloads(self, loop: int) -> list[str]:
        query = (
            "SELECT signature FROM downloads WHERE loop = ? GROUP BY signature HAVING count(*) = max(pieces) "
            "ORDER BY max(time) DESC, signature"
        )
        return [row[0] for row in self._read(query, loop)]

    def download(self, loop: int, signature: str) -> bytes | None:
        rows = self._read(
            "SELECT count(*), max(pieces) FROM downloads WHERE loop = ? AND signature = ?", loop, signature
        )
        count, pieces = rows[0]
        if not count or count != pieces:  # it was not written to its end
            return None
        whole = io.BytesIO()
        for place in range(pieces):
            query = "SELECT body FROM downloads WHERE loop = ? AND signature = ? AND place = ?"
            rows = self._read(query, loop, signature, place)
            if not (rows and isinstance(rows[0][0], bytes)):
                return None
            whole.write(rows[0][0])
        return whole.getvalue()

    def snapshots(self, loop: int) -> list[int]:
        return [row[0] for row in self._read("SELECT event FROM snapshots WHERE loop = ? ORDER BY event DESC", loop)]

    def _decisions(self, loop: int, numbers: list[int]) -> list[DecisionRow | None]:
        return self._recent.decisions(loop, numbers, lambda number: block_with(self._read, loop, number))


def rows_to_purge(table: str, limit: int) -> int:
    """How many rows of a table one transaction may remove if `limit` is for rows of the usual size."""
    return max(1, limit // ROWS_PER_PIECE) if table in PIECES else limit


def surplus_downloads(newest_first: Iterable[tuple[str, int]], keep: int, most_bytes: int) -> list[str]:
    """The signatures of downloads beyond a number or a size; the newest one is always kept."""
    surplus, total = list[str](), 0
    for place, (signature, size) in enumerate(newest_first):
        total += int(size)
        if place and (place >= keep or total > most_bytes):
            surplus.append(signature)
    return surplus


def tally(events: Sequence[Event]) -> Counts:
    """What events add to the totals of their loop."""
    settled, kinds = [event.loss for event in events if event.kind in OUTCOMES], [event.kind for event in events]
    return Counts(0, len(settled), sum(settled), kinds.count("late"), kinds.count("default"), len(events))


def block_with(read: Any, loop: int, number: int) -> Block | None:
    """The block that would contain a number; None if there is none or it is damaged."""
    query = "SELECT first, body FROM blocks WHERE loop = ? AND first <= ? ORDER BY first DESC LIMIT 1"
    rows = read(query, loop, number)
    return block_of(loop, *rows[0]) if rows else None


def block_of(loop: int, first: int, body: bytes) -> Block | None:
    """The block of a row; None if it is damaged."""
    try:
        return decode(body)
    except DamagedBlock as damage:
        log.warning("decisions from number %d of loop %d cannot be read (%s); they are skipped", first, loop, damage)
        return None


def event_of(loop: int, row: tuple[Any, ...]) -> Event:
    """The event of a row; a damaged one keeps only its number."""
    number, decision, kind, loss, time, *texts = row
    key, parts = (text.decode(errors="replace") if isinstance(text, bytes) else text for text in texts)
    event = Event(number, decision, kind, loss, time, key, parts)
    if _is_event(event):
        return event
    log.warning("event %s of loop %d is damaged and will not be learned", number, loop)
    return Event(number, 0, "damaged", 0.0, 0.0)


def _is_event(event: Event) -> bool:
    return (
        isinstance(event.decision, int)
        and event.kind in KINDS
        and isinstance(event.loss, float)
        and math.isfinite(event.loss)
        and isinstance(event.time, float)
        and isinstance(event.key, str | None)
        and isinstance(event.parts, str | None)
    )


def _is_snapshot(row: tuple[Any, ...]) -> bool:
    kinds = (int, bytes, int, int, bytes, bytes, int)
    return len(row) == len(kinds) and all(map(isinstance, row, kinds))


def is_counts(values: Sequence[Any]) -> bool:
    return all(isinstance(value, int | float) for value in values)
