"""The thread that learns: it applies events in the store's order and saves snapshots."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from manul.service.engine.following import Following
from manul.service.engine.group_commit import SpanMaker, Writer, no_span
from manul.service.engine.loop import Loop
from manul.service.errors import Problem
from manul.service.store import Event, Fact, Store, StoreFailure

log = logging.getLogger("manul.service")
# Events of one loop before the next loop gets its turn.
EVENTS_PER_TURN = 512
# Snapshots kept of each loop: if the newest is damaged, the loop starts from an older one.
SNAPSHOTS_KEPT = 2
# Seconds between two reads of what other replicas did.
POLL_SECONDS = 0.05
# Seconds in which events gather: to learn many together costs less than one by one.
GATHER_SECONDS = 0.003
# Seconds to wait after the store could not be read or a loop failed.
FAILURE_SECONDS = 1.0
# The longest time between snapshots if other replicas follow them.
REPLICA_SNAPSHOT_SECONDS = 2.0
# The longest time until a failed snapshot is retried.
RETRY_SECONDS = 10.0
# Time for the last snapshots when the service stops; a loop that gets none replays its events at the next start.
STOP_SECONDS = 5.0


class Learner(threading.Thread):
    """Learns the events of all loops that are not paused, in turns."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        loops: Callable[[], Iterable[Loop]],
        *,
        seconds: float,
        events: int,
        following: Following | None = None,
    ) -> None:
        super().__init__(name="manul-learner", daemon=True)
        self._store, self._writer, self._loops = store, writer, loops
        self._seconds, self._events, self._following = seconds, events, following
        if following is not None:
            self._seconds = min(seconds, REPLICA_SNAPSHOT_SECONDS)
        self._woken, self._stopped = threading.Event(), threading.Event()
        self._has_more = False
        self.span: SpanMaker = no_span

    def wake(self) -> None:
        self._woken.set()

    def stop(self) -> None:
        """Learn what is queued, save a snapshot of every loop, and stop."""
        self._stopped.set()
        self.wake()
        self.join()

    def run(self) -> None:
        while not self._stopped.is_set():
            try:
                self._round()
            except StoreFailure as failure:
                log.warning("the store cannot be read (%s); retrying", failure)
                self._stopped.wait(FAILURE_SECONDS)
            except Exception:
                log.exception("cannot follow the other replicas; no loop learns here until this succeeds; retrying")
                self._stopped.wait(FAILURE_SECONDS)
        try:
            self._finish()
        except StoreFailure as failure:
            log.warning("the store cannot be read (%s); the last snapshots were not saved", failure)

    def _round(self) -> None:
        self._woken.clear()
        if self._stopped.is_set():
            return
        if self._following is not None:
            self._following.refresh()
        self._has_more = False
        busy = [self._guarded_turn(loop) for loop in self._loops()]
        if self._following is not None:
            # Events are read from the store, where large batches are cheaper.
            self._stopped.wait(0 if self._has_more else POLL_SECONDS)
            return
        if not any(busy):
            self._woken.wait(min(self._seconds, FAILURE_SECONDS) if self.failing else self._seconds)
        self._stopped.wait(0 if self._has_more else GATHER_SECONDS)

    def _finish(self) -> None:
        deadline = time.monotonic() + STOP_SECONDS
        if self._following is not None:
            self._following.refresh()
        for loop in self._loops():
            while not loop.paused and time.monotonic() < deadline and self._guarded_turn(loop):
                pass
            if self.learns(loop) and time.monotonic() < deadline:
                self._save_snapshot(loop)

    def _guarded_turn(self, loop: Loop) -> bool:
        """Give a loop its turn. If it fails, the others continue, and this one reads its events again from the store."""
        if time.monotonic() < loop.feed.rests_until:
            return False
        try:
            busy = self._turn(loop)
        except StoreFailure:
            loop.feed.fall_behind()
            raise
        except Exception:
            log.exception("loop failed to learn; retrying", extra={"loop": loop.name})
            loop.feed.rests_until = time.monotonic() + FAILURE_SECONDS
            loop.feed.fall_behind()
            return False
        loop.feed.rests_until = 0.0
        return busy

    @property
    def failing(self) -> list[str]:
        return sorted(loop.name for loop in self._loops() if loop.feed.rests_until)

    def leads(self) -> bool:
        return self._following is None or self._following.leads()

    def learns(self, loop: Loop) -> bool:
        """Whether this replica learns a loop; no other does."""
        return self._following is None or self._following.learns(loop.number)

    def catch_up(self, loop: Loop) -> None:
        """Learn everything in the store, in the caller's thread."""
        while loop.feed.behind and not loop.paused and self._guarded_turn(loop):
            pass

    def _turn(self, loop: Loop) -> bool:
        """Learn the next events of a loop; returns whether there may be more."""
        if loop.paused or not self.learns(loop):
            return False
        if loop.feed.saved is None:
            loop.feed.saved = loop.model.event, time.monotonic()
        facts, moves = self._next(loop), _moves(loop)
        self._has_more = self._has_more or len(facts) == EVENTS_PER_TURN
        with (self.span if facts else no_span)("learn", loop=loop.name, events=len(facts)):
            loop.learn(facts, lambda event: self._store.model(loop.number, event))
        if loop.feed.behind:
            loop.feed.keep_up(loop.model.event, self._store.counts(loop.number).events)
        urgent = _moves(loop) != moves or any(event.kind in ("import", "rollout") for event, _ in facts)
        if self._following is not None and urgent:
            self._save_snapshot(loop)
        self._save_if_due(loop)
        return bool(facts) or loop.feed.behind

    def _next(self, loop: Loop) -> list[Fact]:
        """The next events: from the queue or, if other replicas may have added some, from the store."""
        if loop.feed.behind or (self._following is not None and self._following.has_new_events(loop)):
            facts = self._read(loop)
            if loop.model.first is None and any(decision is not None for _, decision in facts):
                loop.read_first()
            return facts
        return loop.feed.take(EVENTS_PER_TURN, loop.model.event)

    def _read(self, loop: Loop) -> list[Fact]:
        """The next events in the store; if events are missing, the loop continues after them."""
        facts = self._store.events(loop.number, loop.model.event, EVENTS_PER_TURN)
        if facts:
            return facts
        after, counted = loop.model.event, self._store.counts(loop.number).events
        facts = self._store.events(loop.number, after, EVENTS_PER_TURN)
        if not facts and counted > after:
            log.error("events are missing from the store", extra={"loop": loop.name, "after": after, "to": counted})
            return [(Event(counted, 0, "damaged", 0.0, 0.0), None)]
        return facts

    def _save_if_due(self, loop: Loop) -> None:
        event, at = loop.feed.saved or (0, 0.0)
        new, now = loop.model.event - event, time.monotonic()
        if now >= loop.feed.save_after and (new >= self._events or (new and now - at >= self._seconds)):
            self._save_snapshot(loop)

    def _save_snapshot(self, loop: Loop) -> None:
        if loop.model.event in self._store.snapshots(loop.number)[:1] or not loop.model.event:
            return
        snapshot = loop.model.snapshot()
        try:
            self._writer.call(lambda transaction: transaction.add_snapshot(loop.number, snapshot, keep=SNAPSHOTS_KEPT))
            loop.feed.saved = snapshot.event, time.monotonic()
            log.info("saved a snapshot", extra={"loop": loop.name, "event": snapshot.event})
        except Problem:
            loop.feed.save_after = time.monotonic() + min(RETRY_SECONDS, self._seconds)
            log.warning("could not save a snapshot; it will be retried", extra={"loop": loop.name})


def _moves(loop: Loop) -> int:
    """The number of moves of a loop's rollout, which the other replicas should see at once."""
    return 0 if loop.model.rollout is None else len(loop.model.rollout.moves)
