"""The time of decisions and waits: the wall clock's, but at an even pace whatever happens to the wall clock."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

# How much faster or slower than real time the clock may run to meet the wall clock again after that was set.
SLEW = 0.1


class SteadyClock:
    """Seconds since 1970 that never go back and never jump: a wall clock that was set is met again at a tenth of the pace.

    >>> wall, ticks = [1000.0], [0.0]
    >>> clock = SteadyClock(wall=lambda: wall[0], ticks=lambda: ticks[0])
    >>> wall[0], ticks[0] = 9000.0, 10.0
    >>> clock()
    1011.0
    """

    def __init__(self, *, wall: Callable[[], float] = time.time, ticks: Callable[[], float] = time.monotonic) -> None:
        self._wall, self._ticks = wall, ticks
        self._time, self._tick = wall(), ticks()
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """The time now."""
        with self._lock:
            tick = self._ticks()
            passed = tick - self._tick
            behind = self._wall() - (self._time + passed)
            self._time += passed + min(max(behind, -SLEW * passed), SLEW * passed)
            self._tick = tick
            return self._time
