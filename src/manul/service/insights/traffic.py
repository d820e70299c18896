"""Decisions per second and how long they took, over the last minutes; begins anew with every start."""

from __future__ import annotations

import math

import numpy as np

from manul.service import schema

SECONDS = 5.0
STRETCHES = 60
# Durations are counted in steps of a quarter, from 50 microseconds up.
SHORTEST, STEP, STEPS = 5e-5, 1.25, 64
LOG_STEP = math.log(STEP)
MIDDLES = SHORTEST * STEP ** (np.arange(STEPS) + 0.5)


class Traffic:
    """Counts of durations, one row per stretch of seconds.

    >>> traffic = Traffic()
    >>> traffic.add(1000.0, 30, 0.002)
    >>> found = traffic.table(1002.0)
    >>> found.decisions[-1], round(found.median[-1], 1)
    (15.0, 2.0)
    """

    def __init__(self) -> None:
        self._counts = np.zeros((STRETCHES, STEPS), np.int64)
        self._latest = 0

    def add(self, time: float, decisions: int, seconds: float) -> None:
        """Some decisions were made durable together, the first of them after some seconds."""
        stretch = int(time / SECONDS)
        if stretch > self._latest:
            self._reach(stretch)
        step = int(math.log(seconds / SHORTEST) / LOG_STEP) if seconds > SHORTEST else 0
        self._counts[self._latest % STRETCHES, min(step, STEPS - 1)] += decisions

    def table(self, time: float) -> schema.Traffic:
        """The last stretches, the newest one up to now; durations in milliseconds."""
        self._reach(int(time / SECONDS))
        order = (self._latest + 1 + np.arange(STRETCHES)) % STRETCHES
        counts = self._counts[order]
        totals = counts.sum(axis=1)
        lengths = np.full(STRETCHES, SECONDS)
        lengths[-1] = min(SECONDS, max(1.0, time - self._latest * SECONDS))
        return schema.Traffic(
            start=(self._latest - STRETCHES + 1) * SECONDS,
            seconds=SECONDS,
            decisions=(totals / lengths).tolist(),
            median=_quantiles(counts, totals, 0.5),
            slowest=_quantiles(counts, totals, 0.99),
        )

    def _reach(self, stretch: int) -> None:
        passed = min(max(0, stretch - self._latest), STRETCHES)
        self._counts[(stretch - np.arange(passed)) % STRETCHES] = 0
        self._latest = max(self._latest, stretch)


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
