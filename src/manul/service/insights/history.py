"""The history of a loop as running sums over its events, stored with every snapshot of the model."""

from __future__ import annotations

import math
import threading
import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import msgspec
import numpy as np

from manul.actions.kinds.knob import CELLS, Knob
from manul.errors import ManulError
from manul.service.store import OUTCOMES, Event, Fact
from manul.utils.validation import Floats

Span = Literal["minutes", "day", "all"]
# Time intervals of each span, and parts of the range of actions.
BUCKETS, BINS = 120, CELLS
# Contexts that are remembered, and actions of several knobs.
RECENT, RECENT_ACTIONS = 128, 1000
# Decisions of the caller on which the model was judged that are remembered.
JUDGED = 4000
# Events that are counted in one pass.
BATCH = 256
SUMS = ("outcomes", "loss", "square", "late", "defaulted")
# Columns of `played` in snapshots. Only the first is used, but replicas of earlier versions expect so many.
SAVED_COLUMNS = 4


class _SavedBuckets(msgspec.Struct, array_like=True):
    seconds: float
    start: float
    used: int
    sums: bytes
    played: bytes


class _SavedHistory(msgspec.Struct, omit_defaults=True):
    spans: list[_SavedBuckets]
    judged: bytes
    actions: bytes = b""


class Buckets:
    """Sums over time intervals, and outcomes by cell of each knob (`played`). When all intervals are used, the first ones are
    dropped or, if it `grows`, pairs are merged and each interval is twice as long."""

    def __init__(self, seconds: float, *, grows: bool, knobs: int = 1) -> None:
        self.seconds, self.grows, self.start, self.used = seconds, grows, 0.0, 0
        self.sums = np.zeros((BUCKETS, len(SUMS)))
        self.played = np.zeros((BUCKETS, knobs, BINS))

    def add(self, times: Floats, sums: Floats, bins: Any) -> None:
        """Add events in any order; those before the intervals are left out. The result does not depend on how they are
        batched."""
        while len(times):
            self._extend_to(float(times[0]))
            too_old = self._missing(times) > BUCKETS - self.used
            if too_old[0]:
                count = _leading(too_old)
            else:
                inside = (times >= self.start) & (times < self.start + BUCKETS * self.seconds)
                count = max(1, _leading(inside))
                self._add(times[:count], sums[:count], bins[:count])
            times, sums, bins = times[count:], sums[count:], bins[count:]

    def _add(self, times: Floats, sums: Floats, bins: Any) -> None:
        places = ((times - self.start) / self.seconds).astype(np.int64).clip(0, BUCKETS - 1)
        np.add.at(self.sums, places, sums)
        np.add.at(self.played, (places[:, np.newaxis], np.arange(self.played.shape[1]), bins), sums[:, :1])
        self.used = max(self.used, int(places.max()) + 1)

    def saved(self) -> _SavedBuckets:
        columns = np.zeros((*self.played[: self.used].shape, SAVED_COLUMNS))
        columns[..., 0] = self.played[: self.used]
        return _SavedBuckets(self.seconds, self.start, self.used, self.sums[: self.used].tobytes(), columns.tobytes())

    def restore(self, saved: _SavedBuckets) -> None:
        self.seconds, self.start, self.used = saved.seconds, saved.start, saved.used
        self.sums[: saved.used] = np.frombuffer(saved.sums).reshape(saved.used, len(SUMS))
        columns = np.frombuffer(saved.played).reshape(saved.used, *self.played.shape[1:], SAVED_COLUMNS)
        self.played[: saved.used] = columns[..., 0]

    def _extend_to(self, time: float) -> None:
        if not self.used:
            self.start = time // self.seconds * self.seconds
        while time >= self.start + BUCKETS * self.seconds:
            if self.grows:
                self._fold()
            else:
                self._roll(int((time - self.start) / self.seconds) - BUCKETS + 1)
        while self.grows and self._missing(time) > BUCKETS - self.used:
            self._fold()
        missing = int(self._missing(time))
        if 0 < missing <= BUCKETS - self.used:
            self._prepend(missing)

    def _missing(self, times: Any) -> Any:
        """How many intervals before the first one would be needed."""
        return np.ceil((self.start - times) / self.seconds)

    def _prepend(self, steps: int) -> None:
        for table in (self.sums, self.played):
            table[steps:] = table[: BUCKETS - steps].copy()
            table[:steps] = 0.0
        self.start -= steps * self.seconds
        self.used += steps

    def _fold(self) -> None:
        for table in (self.sums, self.played):
            table[: BUCKETS // 2] = table[0::2] + table[1::2]
            table[BUCKETS // 2 :] = 0.0
        self.seconds *= 2
        self.used = (self.used + 1) // 2

    def _roll(self, steps: int) -> None:
        for table in (self.sums, self.played):
            rest = table[steps:].copy()
            table[:] = 0.0
            table[: len(rest)] = rest
        self.start += steps * self.seconds
        self.used = max(0, self.used - steps)


class History:
    """The history of one loop over three spans, its latest contexts with an outcome and, of several knobs, actions.

    Events count at the time of their decision: with a wait, outcomes come in the order of decisions, so that no interval has
    only those that were known early.
    """

    def __init__(self, knobs: Sequence[tuple[str, Knob]]) -> None:
        self._knobs = knobs
        self.spans: dict[Span, Buckets] = {
            "minutes": Buckets(10.0, grows=False, knobs=len(knobs)),
            "day": Buckets(720.0, grows=False, knobs=len(knobs)),
            "all": Buckets(1.0, grows=True, knobs=len(knobs)),
        }
        self.contexts: deque[Any] = deque(maxlen=RECENT)
        self._actions: deque[tuple[float, ...]] = deque(maxlen=RECENT_ACTIONS)
        self._judged: deque[tuple[float, float, float]] = deque(maxlen=JUDGED)
        self._pending: list[Fact] = []
        self._lock = threading.Lock()

    def add(self, facts: Sequence[Fact]) -> None:
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
        self.contexts.extend(decision.context for event, decision in facts if decision and event.kind in OUTCOMES)

    def _count(self) -> None:
        facts, self._pending = self._pending, []
        counted = [
            (event, decision)
            for event, decision in facts
            if decision is not None and event.kind not in ("part", "overdue", "limits") and math.isfinite(decision.time)
        ]
        counted = [fact for fact in counted if isinstance(fact[1].action, float) or self._has(fact[1].action)]
        if not counted:
            return
        several = isinstance(counted[0][1].action, dict)
        times = np.array([decision.time for _, decision in counted])
        sums = np.array([_sums(event) for event, _ in counted])
        columns = []
        for name, knob in self._knobs:
            values = [decision.action[name] if several else decision.action for _, decision in counted]
            columns.append(knob.positions(values, "action"))
        bins = [knob.cells(places) for (_, knob), places in zip(self._knobs, columns, strict=True)]
        for buckets in self.spans.values():
            buckets.add(times, sums, np.stack(bins, axis=1))
        if several:
            self._actions.extend(
                (*places, event.loss)
                for (event, _), places in zip(counted, np.stack(columns, axis=1).tolist(), strict=True)
                if event.kind in OUTCOMES
            )
        self.add_contexts(facts)

    def _has(self, action: Any) -> bool:
        """Whether the knobs can be set to an action; damaged ones are not counted."""
        try:
            for name, knob in self._knobs:
                knob.position(action.get(name) if isinstance(action, dict) else action, name)
        except ManulError:
            return False
        return True

    @property
    def deviation(self) -> float:
        """The standard deviation of all losses; 0 if there are none."""
        with self.snapshot():
            outcomes, loss, square, *_ = self.spans["all"].sums.sum(axis=0).tolist()
        mean = loss / max(outcomes, 1.0)
        return math.sqrt(max(square / max(outcomes, 1.0) - mean * mean, 0.0))

    @property
    def actions(self) -> Floats:
        """The positions and the loss of the latest actions of several knobs, one row each."""
        return np.array(self._actions).reshape(-1, len(self._knobs) + 1)

    def to_bytes(self) -> bytes:
        """Encode all sums in a few kilobytes; contexts are read from the store again."""
        with self.snapshot():
            spans = [each.saved() for each in self.spans.values()]
            judged, actions = (np.array(rows).tobytes() for rows in (self._judged, self._actions))
        return zlib.compress(msgspec.msgpack.encode(_SavedHistory(spans, judged, actions)), 1)

    def restore(self, body: bytes) -> None:
        if not body:
            return
        # Snapshots of earlier versions have the spans only.
        saved = msgspec.msgpack.decode(zlib.decompress(body), type=_SavedHistory | list[_SavedBuckets])
        saved = saved if isinstance(saved, _SavedHistory) else _SavedHistory(saved, b"")
        self._judged = deque(_rows(saved.judged, 3), maxlen=JUDGED)
        self._actions = deque(_rows(saved.actions, len(self._knobs) + 1), maxlen=RECENT_ACTIONS)
        for buckets, each in zip(self.spans.values(), saved.spans, strict=True):
            buckets.restore(each)


def _leading(holds: Any) -> int:
    return len(holds) if holds.all() else int(holds.argmin())


def _rows(body: bytes, width: int) -> list[Any]:
    return [tuple(row) for row in np.frombuffer(body).reshape(-1, width).tolist()]


def _sums(event: Event) -> tuple[float, ...]:
    outcome = float(event.kind in OUTCOMES)
    loss = outcome * event.loss
    return outcome, loss, loss * loss, float(event.kind == "late"), float(event.kind == "default")
