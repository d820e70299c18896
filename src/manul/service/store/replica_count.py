"""How many replicas may be making decisions: what one replica knows of the others, from counts that are a while old.

Each replica counts its own decisions of a rollout once for every replica, since it does not know those of the others. For this
to be enough, no replica may use a count that is too low:

- A count that was read longer ago than `COUNT_SECONDS` is not used; until the next one, the learner gets no traffic here.
- A replica that arrives waits for `SETTLE_SECONDS`: by then all others count it. Then it reads all decisions in flight.
- One that has left, or does not answer, is counted for `SETTLE_SECONDS` more: by then it does not use its last count any more.
  Then its decisions are read from the store, because nobody else counts them.

All times are those of one clock on one machine; the clocks of different machines need not agree.
"""

from __future__ import annotations

import threading

from manul.service.store import Membership

COUNT_SECONDS = 2.0  # counts are read every second, so one may be late
SETTLE_SECONDS = 3.0  # longer than a count is used


class ReplicaCount:
    """What a replica knows of the number of replicas; times are in seconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count, self._read_at, self._generation = 0, -float("inf"), 0
        self._settled_at: float | None = None
        self._was_here = False
        self._left: list[tuple[float, int]] = []  # until when to count as many as before

    def read(self, count: int, time: float) -> None:
        """Note a count that includes this replica; `time` is from before it was read."""
        with self._lock:
            if self._count == 0:
                # Nobody can use too low a count because of a process that starts alone.
                self._settled_at = time + SETTLE_SECONDS if count > 1 or self._was_here else None
            elif count < self._count:
                self._left.append((time + SETTLE_SECONDS, self._count))
            self._count, self._read_at, self._was_here = count, time, True

    def lose(self) -> None:
        """Note that the others do not count this replica any more."""
        with self._lock:
            self._count, self._left = 0, []

    def membership(self, time: float) -> Membership:
        """The number of replicas to count with, and the generation."""
        with self._lock:
            if (
                self._count == 0
                or time - self._read_at > COUNT_SECONDS
                or (self._settled_at is not None and time < self._settled_at)
            ):
                current = 0
            else:
                current = max([self._count, *(count for until, count in self._left if until > time)])
            self._begin_generations(time)
            return Membership(current, self._generation)

    def _begin_generations(self, time: float) -> None:
        if self._count and self._settled_at is not None and time >= self._settled_at:
            self._settled_at, self._generation = None, self._generation + 1
        left = [(until, count) for until, count in self._left if until > time]
        if len(left) < len(self._left):
            self._left, self._generation = left, self._generation + 1
