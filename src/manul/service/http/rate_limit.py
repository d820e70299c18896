"""A limit on requests per second: a token bucket, which allows short bursts."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from manul.service.errors import TooManyRequests

# A caller that was idle may send so many seconds' worth of requests at once.
BURST_SECONDS = 2.0


class Bucket:
    """Holds up to two seconds' worth of requests, and fills at `rate` per second.

    A request takes one. A batch takes one for each element, even if the bucket does not hold as many: it goes below zero, and
    the caller waits until the debt is filled.
    """

    def __init__(self, rate: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._at = clock, clock()
        self.rate, self._level = rate, max(1.0, BURST_SECONDS * rate)

    def take(self) -> bool:
        """Take one for a request; whether there was one."""
        self._fill()
        if self._level < 1.0:
            return False
        self._level -= 1.0
        return True

    def take_more(self, count: int) -> bool:
        """Take the rest of a batch, for which one was taken already; whether no other batch has emptied the bucket since."""
        self._fill()
        if self._level < 0.0:
            return False
        self._level -= count
        return True

    def change_rate(self, rate: float) -> None:
        """Fill at another rate from now on; a debt stays."""
        self._fill()
        self.rate = rate
        self._fill()

    @property
    def wait_seconds(self) -> int:
        return max(1, math.ceil((1.0 - self._level) / self.rate))

    def _fill(self) -> None:
        now = self._clock()
        self._level = min(max(1.0, BURST_SECONDS * self.rate), self._level + self.rate * (now - self._at))
        self._at = now


def too_many(bucket: Bucket, whose: str) -> TooManyRequests:
    seconds = bucket.wait_seconds
    return TooManyRequests(
        f"{whose} limit of {bucket.rate:g} requests per second is exceeded. Nothing was changed; "
        f"retry in {seconds} second{'s' if seconds > 1 else ''}.",
        seconds,
    )
