"""Decisions per second and their latency over the last minutes, since the start of the service."""

from __future__ import annotations

import math

import numpy as np

from manul.service import wire

# Seconds of an interval, and number of intervals.
SECONDS, INTERVALS = 5.0, 60
# Latencies are counted in logarithmic steps of 25 %, from 50 microseconds up.
SHORTEST, STEP, STEPS = 5e-5, 1.25, 64
LOG_STEP = math.log(STEP)
MIDDLES = SHORTEST * STEP ** (np.arange(STEPS) + 0.5)


class Traffic:
    """Histograms of latencies, one per interval."""

    def __init__(self) -> None:
        self._counts = np.zeros((INTERVALS, STEPS), np.int64)
        self._latest = 0

    def add(self, time: float, decisions: int, seconds: float) -> None:
        """Count decisions that became durable together; `seconds` is the latency of the first."""
        interval = int(time / SECONDS)
        if interval > self._latest:
            self._advance_to(interval)
        step = int(math.log(seconds / SHORTEST) / LOG_STEP) if seconds > SHORTEST else 0
        self._counts[self._latest % INTERVALS, min(step, STEPS - 1)] += decisions

    def table(self, time: float) -> wire.Traffic:
        """The last intervals, including the current one; latencies in milliseconds."""
        self._advance_to(int(time / SECONDS))
        order = (self._latest + 1 + np.arange(INTERVALS)) % INTERVALS
        counts = self._counts[order]
        totals = counts.sum(axis=1)
        lengths = np.full(INTERVALS, SECONDS)
        lengths[-1] = min(SECONDS, max(1.0, time - self._latest * SECONDS))
        return wire.Traffic(
            start=(self._latest - INTERVALS + 1) * SECONDS,
            seconds=SECONDS,
            decisions=(totals / lengths).tolist(),
            median=_quantiles(counts, totals, 0.5),
            slowest=_quantiles(counts, totals, 0.99),
        )

    def _advance_to(self, interval: int) -> None:
        passed = min(max(0, interval - self._latest), INTERVALS)
        self._counts[(interval - np.arange(passed)) % INTERVALS] = 0
        self._latest = max(self._latest, interval)


def _quantiles(
    counts: np.ndarray[tuple[int, ...], np.dtype[np.int64]], totals: object, share: float
) -> list[float | None]:
    below = np.cumsum(counts, axis=1)
    wanted = share * np.asarray(totals)[:, np.newaxis]
    places = (below >= wanted).argmax(axis=1)
    return [
        float(1000 * MIDDLES[place]) if total else None
        for place, total in zip(places, below[:, -1].tolist(), strict=True)
    ]
