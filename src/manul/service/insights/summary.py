"""What the dashboard asks for every few seconds: running sums as tables. Nothing here reads the store's log."""

from __future__ import annotations

from typing import Any

import numpy as np

from manul.service import schema
from manul.service.engine.loop import Loop
from manul.service.insights.history import BINS, PARTS, Buckets, Span
from manul.service.insights.policy_view import LATEST, density_now, features
from manul.types import Floats, Within

# A constant action is judged by what was played within a sixteenth of the range around it, as in the report.
AROUND = BINS // 8
LEAST = 10.0
ENOUGH = 25
FEWEST = 12


def summary(
    loop: Loop, status: schema.Status, examined: schema.Examined | None, time: float, span: Span
) -> schema.Summary:
    """A loop at a glance."""
    contexts = loop.latest_contexts(LATEST)
    with loop.history.settled() as settled:
        past = history(settled.spans[span], loop.settings.actions)
    return schema.Summary(
        time=time,
        status=status,
        history=past,
        traffic=loop.traffic.table(time),
        density=density_now(loop, contexts),
        features=features(contexts),
        examined=examined,
    )


def history(buckets: Buckets, actions: Within) -> schema.History:
    """Sums of a span as means and intervals.

    >>> history(Buckets(1.0, grows=True), (20, 70)).loss
    []
    """
    together = _together(buckets)
    sums, parts = (_joined(table[: buckets.used], together) for table in (buckets.sums, buckets.parts))
    outcomes, loss, square, late, defaulted = sums.T
    counted = np.maximum(outcomes, 1)
    mean = loss / counted
    spread = np.sqrt(np.maximum(square / counted - mean * mean, 0) * counted / np.maximum(counted - 1, 1))
    error = 1.96 * spread / np.sqrt(counted)
    return schema.History(
        start=buckets.start,
        seconds=buckets.seconds * together,
        outcomes=_whole(outcomes),
        loss=_where(mean, outcomes > 0),
        low=_where(mean - error, outcomes > 1),
        high=_where(mean + error, outcomes > 1),
        late=_whole(late),
        defaulted=_whole(defaulted),
        played=parts[:, :, PARTS.index("played")].astype(np.int64).tolist(),
        best_constant=best_constant(parts.sum(axis=0), actions),
    )


def _together(buckets: Buckets) -> int:
    """How many stretches become one, so that where losses are few a stretch has enough of them to say something."""
    outcomes = buckets.sums[:, 0].sum()
    wanted = int(np.ceil(ENOUGH * buckets.used / outcomes)) if outcomes else 1
    return max(1, min(wanted, buckets.used // FEWEST))


def _joined(table: Floats, together: int) -> Floats:
    joined: Floats = np.add.reduceat(table, np.arange(0, len(table), together), axis=0) if len(table) else table
    return joined


def best_constant(parts: Floats, actions: Within) -> schema.Constant | None:
    """The best of the constant actions that enough was played around; none where there is no such action."""
    _, weight, square, loss = (np.convolve(row, np.ones(AROUND), "valid") for row in parts.T)
    size = weight**2 / np.where(square > 0, square, 1.0)
    known = size >= LEAST
    if not known.any():
        return None
    losses = np.where(known, loss / np.where(known, weight, 1.0), np.inf)
    best = int(losses.argmin())
    low, high = actions
    action = low + (best + AROUND / 2) / BINS * (high - low)
    return schema.Constant(action=action, loss=float(losses[best]), effective_size=float(size[best]))


def _whole(counts: Floats) -> list[int]:
    whole: list[int] = counts.astype(np.int64).tolist()
    return whole


def _where(values: Floats, known: Any) -> list[float | None]:
    return [value if each else None for value, each in zip(values.tolist(), known.tolist(), strict=True)]
