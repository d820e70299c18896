"""The one thread that learns: events in the store's order, and snapshots of what came of them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable

from manul.service.engine.loop import Fact, Loop
from manul.service.engine.replica import Following
from manul.service.engine.writer import Writer
from manul.service.errors import Problem
from manul.service.store import Event, Store, StoreFailure

log = logging.getLogger("manul.service")
# Events of one loop before the next loop gets its turn, and snapshots kept of each loop: one that turns out damaged
# leaves an older one to start from.
AT_ONCE, KEPT = 512, 2
# Seconds: between two looks at what other replicas did, after a store could not be read or a loop failed, at most
# between snapshots that others follow, at most until a snapshot that failed is tried again, and for the last snapshots
# when the service stops; a loop that gets none by then replays its events at the next start.
POLL, REST, FOLLOWED, RETRY, FAREWELL = 0.05, 1.0, 2.0, 10.0, 5.0


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
        self._woken, self._stopped = threading.Event(), threading.Event()
        self._failed: dict[str, tuple[float, str]] = {}
        self._kept: dict[int, tuple[int, float]] = {}
        self._retry_at: dict[int, float] = {}

    @property
    def _stopping(self) -> bool:
        return self._stopped.is_set()

    def wake(self) -> None:
        """There is something to learn."""
        self._woken.set()

    def stop(self) -> None:
        """Finish what is at hand, and keep a snapshot of every loop."""
        self._stopped.set()
        self.wake()
        self.join()

    def run(self) -> None:
        """Until stopped."""
        while not self._stopping:
            try:
                self._round()
            except StoreFailure as failure:
                log.warning("the store cannot be read (%s); trying again", failure)
                self._rest()
            except Exception:
                log.exception("the learner failed; trying again")
                self._rest()
        try:
            self._finish()
        except StoreFailure as failure:
            log.warning("the store cannot be read (%s); the last snapshots are not kept", failure)

    def _rest(self) -> None:
        self._stopped.wait(REST)

    def _round(self) -> None:
        self._woken.clear()
        if self._stopping:
            return
        if self._following is not None:
            self._following.refresh()
        busy = [self._guarded_turn(loop) for loop in self._loops()]
        if not any(busy):
            self._woken.wait(self._patience())
        # Replicas read their events from the store, many at a time is cheaper.
        time.sleep(0 if self._following is None else POLL / 10)

    def _patience(self) -> float:
        if self._following is not None:
            return POLL
        return min(self._seconds, REST) if self._failed else self._seconds

    def _finish(self) -> None:
        deadline = time.monotonic() + FAREWELL
        if self._following is not None:
            self._following.refresh()
        for loop in self._loops():
            while not loop.paused and time.monotonic() < deadline and self._guarded_turn(loop):
                pass
            if self.leads() and time.monotonic() < deadline:
                self._keep(loop)

    def _guarded_turn(self, loop: Loop) -> bool:
        """A turn of one loop; if it fails, the others go on, and this one reads its events again from the store."""
        if time.monotonic() < self._failed.get(loop.name, (0.0, ""))[0]:
            return False
        try:
            busy = self._turn(loop)
        except StoreFailure:
            loop.fall_behind()
            raise
        except Exception as error:
            log.exception("a loop cannot learn; trying again", extra={"loop": loop.name})
            self._failed[loop.name] = (time.monotonic() + REST, f"{type(error).__name__}: {error}")
            loop.fall_behind()
            return False
        self._failed.pop(loop.name, None)
        return busy

    def forget(self, loop: Loop) -> None:
        """The loop has been deleted."""
        self._failed.pop(loop.name, None)
        self._kept.pop(loop.number, None)
        self._retry_at.pop(loop.number, None)

    @property
    def failing(self) -> list[str]:
        """The names of loops that cannot learn at the moment."""
        return sorted(self._failed)

    def leads(self) -> bool:
        """Whether this is the one replica that learns."""
        return self._following is None or self._following.leads()

    def catch_up(self, loop: Loop) -> None:
        """Learn all that is in the store, in the thread of the caller."""
        while loop.behind and not loop.paused and self._guarded_turn(loop):
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
            facts = self._read(loop)
            if loop.first is None and any(decided is not None for _, decided in facts):
                loop.meet_first(self._store)
            return facts
        return loop.dequeue(AT_ONCE)

    def _read(self, loop: Loop) -> list[Fact]:
        """The next events of the store; if some that it has counted are gone, the loop goes on after them."""
        counted = self._store.counts(loop.number).events
        facts = self._store.events(loop.number, loop.model, AT_ONCE)
        if not facts and counted > loop.model:
            log.error("events are missing in the store", extra={"loop": loop.name, "after": loop.model, "to": counted})
            return [(Event(counted, 0, "damaged", 0.0, 0.0), None)]
        return facts

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
