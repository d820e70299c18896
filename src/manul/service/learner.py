"""The one thread that learns: events in the store's order, and snapshots of what came of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from manul.service.loop import Loop
from manul.service.problems import Problem
from manul.service.store import Store
from manul.service.writer import Writer

log = logging.getLogger("manul.service")
AT_ONCE = 512
KEPT = 2


class Learner(threading.Thread):
    """Learns in turns from the events of every loop that is not paused."""

    def __init__(
        self, store: Store, writer: Writer, loops: Callable[[], Iterable[Loop]], *, seconds: float, events: int
    ) -> None:
        super().__init__(name="manul-learner", daemon=True)
        self._store, self._writer, self._loops = store, writer, loops
        self._seconds, self._events = seconds, events
        self._woken, self._stopping = threading.Event(), False
        self._kept: dict[int, tuple[int, float]] = {}

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
            self._woken.clear()
            busy = [self._turn(loop) for loop in self._loops()]
            if not any(busy):
                self._woken.wait(self._seconds)
            else:
                time.sleep(0)
        for loop in self._loops():
            while not loop.paused and self._turn(loop):
                pass
            self._keep(loop)

    def catch_up(self, loop: Loop) -> None:
        """Learn all that is in the store, in the thread of the caller."""
        while loop.behind and not loop.paused and self._turn(loop):
            pass

    def _turn(self, loop: Loop) -> bool:
        """Whether there was something to learn."""
        if loop.paused:
            return False
        facts = self._store.events(loop.number, loop.model, AT_ONCE) if loop.behind else loop.dequeue(AT_ONCE)
        loop.learn(facts, lambda event: self._store.model(loop.number, event))
        if loop.behind:
            loop.caught_up(self._store.counts(loop.number).events)
        self._keep_now_and_then(loop)
        return bool(facts) or loop.behind

    def _keep_now_and_then(self, loop: Loop) -> None:
        event, at = self._kept.setdefault(loop.number, (loop.model, time.monotonic()))
        new = loop.model - event
        if new >= self._events or (new and time.monotonic() - at >= self._seconds):
            self._keep(loop)

    def _keep(self, loop: Loop) -> None:
        if loop.model in self._store.snapshots(loop.number)[:1] or not loop.model:
            return
        snapshot = loop.snapshot()
        try:
            self._writer.call(lambda transaction: transaction.add_snapshot(loop.number, snapshot, keep=KEPT))
            log.info("kept a snapshot", extra={"loop": loop.name, "event": snapshot.event})
        except Problem:
            log.warning("a snapshot could not be kept; it will be tried again", extra={"loop": loop.name})
        self._kept[loop.number] = (loop.model, time.monotonic())
