"""What the dashboard requests every few seconds: running sums as tables. Nothing here reads the store."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import UNSET

from manul.actions.kinds.knob import Knob
from manul.service import wire
from manul.service.engine.loop import Loop
from manul.service.insights.history import Buckets, Span
from manul.service.insights.knob_insights import marginals_now
from manul.service.insights.policy_view import LATEST, density_now, features
from manul.utils.validation import Floats

# Time intervals are merged until each has about so many outcomes, but at least so many intervals remain.
OUTCOMES_PER_INTERVAL, MIN_INTERVALS = 25, 12


def summary(loop: Loop, status: wire.Status, examined: wire.Examined | None, time: float, span: Span) -> wire.Summary:
    contexts = loop.model.latest_contexts(LATEST)
    knobs = loop.space.titled
    several = not loop.space.is_number
    with loop.history.snapshot() as current:
        buckets = current.spans[span]
        past = history(buckets, knobs[0][1], several=several)
        counted = [played(buckets, at, knob) for at, (_, knob) in enumerate(knobs)]
    constants = best_constants(examined)
    past.best_constant = constants.get(None)
    marginals = marginals_now(loop, contexts) if several else []
    summaries = [
        wire.KnobSummary(
            name=title, values=knob.middles(), played=times, density=density, best_constant=constants.get(name or None)
        )
        for (title, knob), name, times, density in zip(knobs, loop.space.names, counted, marginals, strict=several)
    ]
    return wire.Summary(
        time=time,
        status=status,
        history=past,
        traffic=loop.traffic.table(time),
        density=[] if several else density_now(loop, contexts),
        features=features(contexts),
        examined=examined,
        rollout=loop.model.rollout is not None,
        knobs=summaries if several else UNSET,
    )


def history(buckets: Buckets, knob: Knob, *, several: bool = False) -> wire.History:
    """The sums of a span as means and confidence intervals; `several` knobs have summaries of their own."""
    factor = _merge_factor(buckets)
    outcomes, loss, square, late, defaulted = _merge(buckets.sums[: buckets.used], factor).T
    counted = np.maximum(outcomes, 1)
    mean = loss / counted
    spread = np.sqrt(np.maximum(square / counted - mean * mean, 0) * counted / np.maximum(counted - 1, 1))
    error = 1.96 * spread / np.sqrt(counted)
    return wire.History(
        start=buckets.start,
        seconds=buckets.seconds * factor,
        outcomes=_whole(outcomes),
        loss=_where(mean, outcomes > 0),
        low=_where(mean - error, outcomes > 1),
        high=_where(mean + error, outcomes > 1),
        late=_whole(late),
        defaulted=_whole(defaulted),
        played=[] if several else played(buckets, 0, knob),
        best_constant=None,
    )


def played(buckets: Buckets, place: int, knob: Knob) -> list[list[int]]:
    """How often each cell of the knob in a place was played, by time."""
    counts = buckets.played[: buckets.used, place, : knob.cell_count]
    whole: list[list[int]] = _merge(counts, _merge_factor(buckets)).astype(np.int64).tolist()
    return whole


def _merge_factor(buckets: Buckets) -> int:
    """How many time intervals to merge so that each has enough outcomes."""
    outcomes = buckets.sums[:, 0].sum()
    wanted = int(np.ceil(OUTCOMES_PER_INTERVAL * buckets.used / outcomes)) if outcomes else 1
    return max(1, min(wanted, buckets.used // MIN_INTERVALS))


def _merge(table: Floats, factor: int) -> Floats:
    merged: Floats = np.add.reduceat(table, np.arange(0, len(table), factor), axis=0) if len(table) else table
    return merged


def best_constants(examined: wire.Examined | None) -> dict[str | None, wire.Constant]:
    """The constant of each knob in the latest report to which there is no objection; one knob has no name."""
    candidates = [] if examined is None else examined.report.candidates
    return {
        each.knob: wire.Constant(
            action=each.action, loss=each.loss, effective_size=each.effective_size, low=each.low, high=each.high
        )
        for each in candidates
        if each.action is not None and each.loss is not None and each.low is not None and each.high is not None
    }


def _whole(counts: Floats) -> list[int]:
    whole: list[int] = counts.astype(np.int64).tolist()
    return whole


def _where(values: Floats, known: Any) -> list[float | None]:
    return [value if each else None for value, each in zip(values.tolist(), known.tolist(), strict=True)]
