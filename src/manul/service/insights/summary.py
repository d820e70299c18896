"""What the dashboard requests every few seconds: running sums as tables. Nothing here reads the store."""

from __future__ import annotations

from typing import Any

import numpy as np

from manul.service import schema
from manul.service.engine.loop import Loop
from manul.service.insights.history import BINS, PARTS, Buckets, Span
from manul.service.insights.policy_view import LATEST, density_now, features
from manul.types import Floats, Within

# A constant action is judged by the actions within a sixteenth of the range on either side, as in the report.
WINDOW = BINS // 8
# The effective sample size below which nothing is said about a constant action.
MIN_EFFECTIVE_SIZE = 30.0
# Time intervals are merged until each has about so many outcomes, but at least so many intervals remain.
OUTCOMES_PER_INTERVAL, MIN_INTERVALS = 25, 12


def summary(
    loop: Loop, status: schema.Status, examined: schema.Examined | None, time: float, span: Span
) -> schema.Summary:
    """The summary of a loop."""
    contexts = loop.latest_contexts(LATEST)
    with loop.history.snapshot() as current:
        past = history(current.spans[span], loop.settings.actions)
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
    """The sums of a span as means and confidence intervals.

    >>> history(Buckets(1.0, grows=True), (20, 70)).loss
    []
    """
    factor = _merge_factor(buckets)
    sums, parts = (_merge(table[: buckets.used], factor) for table in (buckets.sums, buckets.parts))
    outcomes, loss, square, late, defaulted = sums.T
    counted = np.maximum(outcomes, 1)
    mean = loss / counted
    spread = np.sqrt(np.maximum(square / counted - mean * mean, 0) * counted / np.maximum(counted - 1, 1))
    error = 1.96 * spread / np.sqrt(counted)
    return schema.History(
        start=buckets.start,
        seconds=buckets.seconds * factor,
        outcomes=_whole(outcomes),
        loss=_where(mean, outcomes > 0),
        low=_where(mean - error, outcomes > 1),
        high=_where(mean + error, outcomes > 1),
        late=_whole(late),
        defaulted=_whole(defaulted),
        played=parts[:, :, PARTS.index("played")].astype(np.int64).tolist(),
        best_constant=best_constant(buckets.parts[: buckets.used], actions),
    )


def _merge_factor(buckets: Buckets) -> int:
    """How many time intervals to merge so that each has enough outcomes."""
    outcomes = buckets.sums[:, 0].sum()
    wanted = int(np.ceil(OUTCOMES_PER_INTERVAL * buckets.used / outcomes)) if outcomes else 1
    return max(1, min(wanted, buckets.used // MIN_INTERVALS))


def _merge(table: Floats, factor: int) -> Floats:
    merged: Floats = np.add.reduceat(table, np.arange(0, len(table), factor), axis=0) if len(table) else table
    return merged


def best_constant(parts: Floats, actions: Within) -> schema.Constant | None:
    """The constant action that is best in every other time interval, judged by the remaining ones, because the lowest of
    many estimates is too low; None if too few actions are near it."""
    losses, _ = _constant_losses(parts[0::2].sum(axis=0))
    judged, sizes = _constant_losses(parts[1::2].sum(axis=0))
    best = int(losses.argmin())
    if not (np.isfinite(losses[best]) and np.isfinite(judged[best])):
        return None
    low, high = actions
    action = low + (best + WINDOW / 2) / BINS * (high - low)
    return schema.Constant(action=action, loss=float(judged[best]), effective_size=float(sizes[best]))


def _constant_losses(parts: Floats) -> tuple[Floats, Floats]:
    """The estimated loss of each constant action, infinite if too few actions are near it, and the effective sample size."""
    _, weight, square, loss = (np.convolve(row, np.ones(WINDOW), "valid") for row in parts.T)
    sizes = weight**2 / np.where(square > 0, square, 1.0)
    known = sizes >= MIN_EFFECTIVE_SIZE
    return np.where(known, loss / np.where(known, weight, 1.0), np.inf), sizes


def _whole(counts: Floats) -> list[int]:
    whole: list[int] = counts.astype(np.int64).tolist()
    return whole


def _where(values: Floats, known: Any) -> list[float | None]:
    return [value if each else None for value, each in zip(values.tolist(), known.tolist(), strict=True)]
