"""The history of a loop as running sums over its events, stored with every snapshot of the model."""

from __future__ import annotations

import threading
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec
import numpy as np

from manul.service.store import OUTCOMES, Event
from manul.service.store.blocks import DecisionRow
from manul.types import Floats, Within

Span = Literal["minutes", "day", "all"]
# Time intervals of each span, and parts of the range of actions.
BUCKETS, BINS = 120, 32
# Contexts that are remembered.
RECENT = 128
# Decisions of the caller on which the model was judged that are remembered.
JUDGED = 4000
# Events that are counted in one pass.
BATCH = 256
SUMS = ("outcomes", "loss", "square", "late", "defaulted")
PARTS = ("played", "weight", "weight_square", "weighted_loss")
Fact = tuple[Event, DecisionRow | None]


class _SavedBuckets(msgspec.Struct, array_like=True):
    seconds: float
    start: float
    used: int
    sums: bytes
    parts: bytes


class _SavedHistory(msgspec.Struct):
    spans: list[_SavedBuckets]
    judged: bytes


class Buckets:
    """Sums over time intervals. When all are used, the first ones are dropped or, if it `grows`, pairs are merged and each
    interval is twice as long.

    >>> buckets = Buckets(1.0, grows=True)
    >>> buckets.add(np.array([0.0, 119.0, 200.0]), np.ones((3, 5)), np.array([0, 0, 31]), np.ones((3, 4)))
    >>> buckets.seconds, int(buckets.sums[:, 0].sum()), buckets.used
    (2.0, 3, 101)
    """

    def __init__(self, seconds: float, *, grows: bool) -> None:
        self.seconds, self.grows, self.start, self.used = seconds, grows, 0.0, 0
        self.sums = np.zeros((BUCKETS, len(SUMS)))
        self.parts = np.zeros((BUCKETS, BINS, len(PARTS)))

    def add(self, times: Floats, sums: Floats, bins: Any, parts: Floats) -> None:
        """Add events with ascending times; the result does not depend on how they are batched."""
        while len(times):
            self._extend_to(float(times[0]))
            count = max(1, int(np.searchsorted(times, self.start + BUCKETS * self.seconds)))
            places = ((times[:count] - self.start) / self.seconds).astype(np.int64).clip(0, BUCKETS - 1)
            np.add.at(self.sums, places, sums[:count])
            np.add.at(self.parts.reshape(BUCKETS * BINS, len(PARTS)), places * BINS + bins[:count], parts[:count])
            self.used = max(self.used, int(places.max()) + 1)
            times, sums, bins, parts = times[count:], sums[count:], bins[count:], parts[count:]

    def saved(self) -> _SavedBuckets:
        """The buckets as they are stored."""
        sums, parts = (table[: self.used].tobytes() for table in (self.sums, self.parts))
        return _SavedBuckets(self.seconds, self.start, self.used, sums, parts)

    def _extend_to(self, time: float) -> None:
        if not self.used:
            self.start = time // self.seconds * self.seconds
        while time >= self.start + BUCKETS * self.seconds:
            if self.grows:
                self._fold()
            else:
                self._roll(int((time - self.start) / self.seconds) - BUCKETS + 1)

    def _fold(self) -> None:
        for table in (self.sums, self.parts):
            table[: BUCKETS // 2] = table[0::2] + table[1::2]
            table[BUCKETS // 2 :] = 0.0
        self.seconds *= 2
        self.used = (self.used + 1) // 2

    def _roll(self, steps: int) -> None:
        for table in (self.sums, self.parts):
            rest = table[steps:].copy()
            table[:] = 0.0
            table[: len(rest)] = rest
        self.start += steps * self.seconds
        self.used = max(0, self.used - steps)


class History:
    """The history of one loop over three spans, and its latest contexts with an outcome."""

    def __init__(self, actions: Within) -> None:
        self._low, self._high = actions
        self.spans: dict[Span, Buckets] = {
            "minutes": Buckets(10.0, grows=False),
            "day": Buckets(720.0, grows=False),
            "all": Buckets(1.0, grows=True),
        }
        self.contexts: deque[Any] = deque(maxlen=RECENT)
        self._judged: deque[tuple[float, float, float]] = deque(maxlen=JUDGED)
        self._pending: list[Fact] = []
        self._lock = threading.Lock()

    def add(self, facts: Sequence[Fact]) -> None:
        """Add the next events, in order."""
        with self._lock:
            self._pending += facts
            if len(self._pending) >= BATCH:
                self._count()

    @contextmanager
    def snapshot(self) -> Iterator[History]:
        """The history with all events counted; it does not change inside the block."""
        with self._lock:
            self._count()
            yield self

    def judge(self, weight: float, bound: float, loss: float) -> None:
        """Remember the importance weight of a decision of the caller for the model before it learned from it, an upper
        bound of such weights, and the loss."""
        with self._lock:
            self._judged.append((weight, bound, loss))

    def forget_judged(self) -> None:
        """Forget how the previous model was judged, because another one was imported."""
        with self._lock:
            self._judged.clear()

    @property
    def judged(self) -> Floats:
        """Weight, bound and loss of the latest decisions of the caller, one row each."""
        with self._lock:
            return np.array(self._judged).reshape(-1, 3)

    def add_contexts(self, facts: Sequence[Fact]) -> None:
        """Remember the contexts of outcomes."""
        self.contexts.extend(decision.context for event, decision in facts if decision and event.kind in OUTCOMES)

    def _count(self) -> None:
        facts, self._pending = self._pending, []
        counted = [(event, decision) for event, decision in facts if decision is not None and event.kind != "part"]
        if not counted:
            return
        rows = np.array([_row(event, decision) for event, decision in counted])
        bins = ((rows[:, 1] - self._low) / (self._high - self._low) * BINS).astype(np.int64).clip(0, BINS - 1)
        for buckets in self.spans.values():
            buckets.add(rows[:, 0], rows[:, 2:7], bins, rows[:, 7:])
        self.add_contexts(facts)

    def to_bytes(self) -> bytes:
        """Encode all sums in a few kilobytes; contexts are read from the store again."""
        with self.snapshot():
            spans = [each.saved() for each in self.spans.values()]
            judged = np.array(self._judged).tobytes()
        return zlib.compress(msgspec.msgpack.encode(_SavedHistory(spans, judged)), 1)

    def restore(self, body: bytes) -> None:
        """Continue from encoded sums."""
        if not body:
            return
        # Snapshots of earlier versions have the spans only.
        saved = msgspec.msgpack.decode(zlib.decompress(body), type=_SavedHistory | list[_SavedBuckets])
        spans, judged = (saved.spans, saved.judged) if isinstance(saved, _SavedHistory) else (saved, b"")
        columns = np.frombuffer(judged).reshape(-1, 3).T.tolist()
        self._judged = deque(zip(*columns, strict=True), maxlen=JUDGED)
        for buckets, each in zip(self.spans.values(), spans, strict=True):
            buckets.seconds, buckets.start, buckets.used = each.seconds, each.start, each.used
            for table, numbers in ((buckets.sums, each.sums), (buckets.parts, each.parts)):
                table[: each.used] = np.frombuffer(numbers).reshape(each.used, *table.shape[1:])


def _row(event: Event, decision: DecisionRow) -> tuple[float, ...]:
    """Time and action, then `SUMS`, then `PARTS`; an action of unknown density has no weight for constant actions."""
    outcome = float(event.kind in OUTCOMES)
    weight = outcome / decision.density if decision.density else 0.0
    loss = outcome * event.loss
    late, defaulted = float(event.kind == "late"), float(event.kind == "default")
    sums = (outcome, loss, loss * loss, late, defaulted)
    return (event.time, decision.action, *sums, outcome, weight, weight * weight, weight * loss)
