"""The one thread that learns: events in the store's order, and snapshots of what came of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from manul.service.following import Following
from manul.service.loop import Fact, Loop
from manul.service.problems import Problem
from manul.service.store import Store, StoreFailure
from manul.service.writer import Writer

log = logging.getLogger("manul.service")
AT_ONCE = 512
KEPT = 2
# Seconds: between two looks at what other replicas did, after a store could not be read, at most between snapshots that
# others follow, and at most until a snapshot that failed is tried again.
POLL, REST, FOLLOWED, RETRY = 0.05, 1.0, 2.0, 10.0


class Learner(threading.Thread):
    """Learns in turns from the events of every loop that is not paused."""

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
            self._seconds = min(seconds, FOLLOWED)
        self._woken, self._stopping = threading.Event(), False
        self._kept: dict[int, tuple[int, float]] = {}
        self._retry_at: dict[int, float] = {}

    def wake(self) -> None:
        """There is something to learn."""
        self._woken.set()

    def stop(self) -> None:
        """Finish what is at hand, and keep a snapshot of every loop."""
        self._stopping = True
        self.wake()
        self.join()

    def run(self) -> None:
        """Until stopped."""
        while not self._stopping:
            try:
                self._round()
            except StoreFailure as failure:
                log.warning("the store cannot be read (%s); it will be tried again", failure)
                time.sleep(REST)
        try:
            self._finish()
        except StoreFailure as failure:
            log.warning("the store cannot be read (%s); the last snapshots are not kept", failure)

    def _round(self) -> None:
        self._woken.clear()
        if self._stopping:
            return
        if self._following is not None:
            self._following.refresh()
        busy = [self._turn(loop) for loop in self._loops()]
        if not any(busy):
            self._woken.wait(self._seconds if self._following is None else POLL)
        # Replicas read their events from the store, many at a time is cheaper.
        time.sleep(0 if self._following is None else POLL / 10)

    def _finish(self) -> None:
        if self._following is not None:
            self._following.refresh()
        for loop in self._loops():
            while not loop.paused and self._turn(loop):
                pass
            if self.leads():
                self._keep(loop)

    def leads(self) -> bool:
        """Whether this is the one replica that learns."""
        return self._following is None or self._following.leads()

    def catch_up(self, loop: Loop) -> None:
        """Learn all that is in the store, in the thread of the caller."""
        while loop.behind and not loop.paused and self._turn(loop):
            pass

    def _turn(self, loop: Loop) -> bool:
        """Whether there was something to learn."""
        if loop.paused or not self.leads():
            return False
        self._kept.setdefault(loop.number, (loop.model, time.monotonic()))
        facts = self._next(loop)
        loop.learn(facts, lambda event: self._store.model(loop.number, event))
        if loop.behind:
            loop.caught_up(self._store.counts(loop.number).events)
        if self._following is not None and any(event.kind == "import" for event, _ in facts):
            self._keep(loop)
        self._keep_now_and_then(loop)
        return bool(facts) or loop.behind

    def _next(self, loop: Loop) -> list[Fact]:
        """Other replicas add events too, so that where there are any only the store knows what comes next."""
        if loop.behind or (self._following is not None and self._following.news(loop)):
            facts = self._store.events(loop.number, loop.model, AT_ONCE)
            if loop.first is None and any(decided is not None for _, decided in facts):
                loop.meet_first(self._store)
            return facts
        return loop.dequeue(AT_ONCE)

    def _keep_now_and_then(self, loop: Loop) -> None:
        event, at = self._kept[loop.number]
        new, now = loop.model - event, time.monotonic()
        if now >= self._retry_at.get(loop.number, 0.0) and (new >= self._events or (new and now - at >= self._seconds)):
            self._keep(loop)

    def _keep(self, loop: Loop) -> None:
        if loop.model in self._store.snapshots(loop.number)[:1] or not loop.model:
            return
        snapshot = loop.snapshot()
        try:
            self._writer.call(lambda transaction: transaction.add_snapshot(loop.number, snapshot, keep=KEPT))
            self._kept[loop.number] = (snapshot.event, time.monotonic())
            log.info("kept a snapshot", extra={"loop": loop.name, "event": snapshot.event})
        except Problem:
            self._retry_at[loop.number] = time.monotonic() + min(RETRY, self._seconds)
            log.warning("a snapshot could not be kept; it will be tried again", extra={"loop": loop.name})
