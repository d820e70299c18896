"""The feed of a loop: its events on their way from the writer to the model."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future

from manul.service.store import Fact

# Events queued in memory for the learner; beyond these it reads them from the store.
MAX_QUEUED = 20_000


class Feed:
    """A queue of events, and those who wait until the model contains one.

    While it is `behind`, the learner reads events from the store, and none are queued. The learner also notes here until when
    the loop rests after a `failure`, the event and the time of the last snapshot (`saved`), and when to retry one that failed.
    """

    def __init__(self) -> None:
        self.behind = True
        self.rests_until = self.save_after = 0.0
        self.failure: str | None = None
        self.saved: tuple[int, float] | None = None
        self._queue: deque[Fact] = deque()
        self._newest = 0
        self._waiters: list[tuple[int, Future[None]]] = []
        self._lock = threading.Lock()

    def add(self, facts: Sequence[Fact]) -> None:
        with self._lock:
            self._newest = max(self._newest, facts[-1][0].number)
            if not self.behind and len(self._queue) + len(facts) > MAX_QUEUED:
                self.behind = True
                self._queue.clear()
            if not self.behind:
                self._queue.extend(facts)

    def take(self, limit: int, after: int) -> list[Fact]:
        """The next events with numbers above `after`."""
        with self._lock:
            facts = [self._queue.popleft() for _ in range(min(limit, len(self._queue)))]
        return [fact for fact in facts if fact[0].number > after]

    def fall_behind(self) -> None:
        """Drop the queue; the next events are read from the store."""
        with self._lock:
            self.behind = True
            self._queue.clear()

    def keep_up(self, model: int, events: int) -> None:
        """Queue events from now on if the model contains all that the store has; one may have come since they were counted."""
        with self._lock:
            self.behind = self.behind and model < max(events, self._newest)

    def wait_for(self, event: int) -> Future[None]:
        """A future that completes once `advance` has come to an event."""
        future: Future[None] = Future()
        with self._lock:
            self._waiters.append((event, future))
        return future

    def advance(self, model: int | None) -> None:
        """Complete the futures of events that the model contains; all of them if the loop does not learn any more (None)."""
        with self._lock:
            ready = [each for each in self._waiters if model is None or each[0] <= model]
            self._waiters = [each for each in self._waiters if each not in ready]
        for _, future in ready:
            if future.set_running_or_notify_cancel():
                future.set_result(None)
