"""How a loop fared over time, as running sums: a fold over its events, kept with every snapshot of the model."""

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
from manul.service.store.blocks import Decided
from manul.types import Floats, Within

Span = Literal["minutes", "day", "all"]
BUCKETS = 120
BINS = 32
RECENT = 128
TOGETHER = 256
SUMS = ("outcomes", "loss", "square", "late", "defaulted")
PARTS = ("played", "weight", "weight_square", "weighted_loss")
Fact = tuple[Event, Decided | None]


class _Kept(msgspec.Struct, array_like=True):
    seconds: float
    start: float
    used: int
    sums: bytes
    parts: bytes


class Buckets:
    """Sums over stretches of time. At the end of the last stretch the first ones are let go, or, where it `grows`, two
    become one and each is twice as long.

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
        """Counts events of ascending times, exactly as if they came one by one."""
        while len(times):
            self._reach(float(times[0]))
            some = max(1, int(np.searchsorted(times, self.start + BUCKETS * self.seconds)))
            places = ((times[:some] - self.start) / self.seconds).astype(np.int64).clip(0, BUCKETS - 1)
            np.add.at(self.sums, places, sums[:some])
            np.add.at(self.parts.reshape(BUCKETS * BINS, len(PARTS)), places * BINS + bins[:some], parts[:some])
            self.used = max(self.used, int(places.max()) + 1)
            times, sums, bins, parts = times[some:], sums[some:], bins[some:], parts[some:]

    def kept(self) -> _Kept:
        """As it is stored."""
        sums, parts = (table[: self.used].tobytes() for table in (self.sums, self.parts))
        return _Kept(self.seconds, self.start, self.used, sums, parts)

    def _reach(self, time: float) -> None:
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
            kept = table[steps:].copy()
            table[:] = 0.0
            table[: len(kept)] = kept
        self.start += steps * self.seconds
        self.used = max(0, self.used - steps)


class History:
    """The past of one loop at three lengths, and the latest contexts it learned in."""

    def __init__(self, actions: Within) -> None:
        self._low, self._high = actions
        self.spans: dict[Span, Buckets] = {
            "minutes": Buckets(10.0, grows=False),
            "day": Buckets(720.0, grows=False),
            "all": Buckets(1.0, grows=True),
        }
        self.contexts: deque[Any] = deque(maxlen=RECENT)
        self._told: list[Fact] = []
        self._lock = threading.Lock()

    def add(self, facts: Sequence[Fact]) -> None:
        """Takes in the next events, in order; they are counted many at a time."""
        with self._lock:
            self._told += facts
            if len(self._told) >= TOGETHER:
                self._count()

    @contextmanager
    def settled(self) -> Iterator[History]:
        """Itself with every event counted, and nobody else at it."""
        with self._lock:
            self._count()
            yield self

    def meet(self, facts: Sequence[Fact]) -> None:
        """Remembers the contexts of events."""
        self.contexts.extend(decided.context for event, decided in facts if decided and event.kind in OUTCOMES)

    def _count(self) -> None:
        facts, self._told = self._told, []
        told = [(event, decided) for event, decided in facts if decided is not None and event.kind != "part"]
        if not told:
            return
        rows = np.array([_row(event, decided) for event, decided in told])
        bins = ((rows[:, 1] - self._low) / (self._high - self._low) * BINS).astype(np.int64).clip(0, BINS - 1)
        for buckets in self.spans.values():
            buckets.add(rows[:, 0], rows[:, 2:7], bins, rows[:, 7:])
        self.meet(facts)

    def to_bytes(self) -> bytes:
        """All sums, in a few kilobytes; the contexts are in the store."""
        with self.settled():
            kept = [each.kept() for each in self.spans.values()]
        return zlib.compress(msgspec.msgpack.encode(kept), 1)

    def restore(self, kept: bytes) -> None:
        """Go on from sums that were kept."""
        if not kept:
            return
        found = msgspec.msgpack.decode(zlib.decompress(kept), type=list[_Kept])
        for buckets, each in zip(self.spans.values(), found, strict=True):
            buckets.seconds, buckets.start, buckets.used = each.seconds, each.start, each.used
            for table, body in ((buckets.sums, each.sums), (buckets.parts, each.parts)):
                table[: each.used] = np.frombuffer(body).reshape(each.used, *table.shape[1:])


def _row(event: Event, decided: Decided) -> tuple[float, ...]:
    """Time and action, then `SUMS`, then `PARTS`; an action of unknown density says nothing about constant ones."""
    settles = float(event.kind in OUTCOMES)
    weight = settles / decided.density if decided.density else 0.0
    loss = settles * event.loss
    late, defaulted = float(event.kind == "late"), float(event.kind == "default")
    sums = (settles, loss, loss * loss, late, defaulted)
    return (event.time, decided.action, *sums, settles, weight, weight * weight, weight * loss)
