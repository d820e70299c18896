"""The clock for decisions and waits: wall-clock time without jumps."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# After the wall clock was set, this clock runs at most this much faster or slower until both agree.
SLEW = 0.1


class SteadyClock:
    """Seconds since 1970 that never go back and never jump; a change of the wall clock is followed gradually."""

    def __init__(self, *, wall: Callable[[], float] = time.time, ticks: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._ticks = wall, ticks
        self._time, self._tick = wall(), ticks()
        self._lock = threading.Lock()

    def __call__(self) -> float:
        with self._lock:
            tick = self._ticks()
            passed = tick - self._tick
            behind = self._wall() - (self._time + passed)
            self._time += passed + min(max(behind, -SLEW * passed), SLEW * passed)
            self._tick = tick
            return self._time
