"""The report of a loop: its agent's estimates, and the estimated losses of candidate policies on the latest decisions."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
import math
from collections import deque
from collections.abc import Callable, Sequence
from datetime import date, time
from typing import Any

import msgspec
import numpy as np

from manul.actions.decision import Within
from manul.actions.kinds.knob import Knob, KnobValue
from manul.agents.adaptive import AdaptiveCats
from manul.agents.auto import Auto
from manul.agents.auto_knobs import AutoKnobs
from manul.agents.base import BaseAgent
from manul.agents.mapped import Mapped
from manul.agents.player_host import seen_by
from manul.contexts.dates import days
from manul.contexts.table_encoding import flatten_fields
from manul.errors import ManulError
from manul.logs.exploration_cost import exploration_cost, greedy_rows
from manul.logs.log import Log
from manul.logs.sample import observed_range
from manul.offpolicy.diagnosis.doctor import doctor
from manul.offpolicy.estimate import Estimate, Objection
from manul.offpolicy.evaluation.empirical_likelihood import UNKNOWN_BOUND
from manul.offpolicy.evaluation.evaluate import evaluate
from manul.offpolicy.evaluation.objections import SMALL
from manul.offpolicy.evaluation.weighted_means import mean_estimate, weighted_estimate
from manul.outcomes import AnyRange
from manul.service import wire
from manul.service.engine.loop import Loop
from manul.service.engine.loop_agent import from_bytes
from manul.service.insights import log_export
from manul.service.store import Snapshot, Store

log = logging.getLogger("manul.service")
# The shortest time between two examinations of a loop.
EXAMINE_SECONDS = 15.0
# Decisions that a report is based on, constant actions that are compared, and columns that the doctor examines.
LATEST, CONSTANTS, MAX_COLUMNS = 4000, 9, 256


def report(store: Store, loop: Loop, snapshot: Snapshot) -> wire.Report:
    """The report of a loop; `snapshot` is its current model."""
    return _report(loop, snapshot, _latest(store, loop))


def examine(store: Store, loop: Loop, snapshot: Snapshot, time: float) -> wire.Examined:
    """The report of a loop with the doctor's findings on the same rows."""
    rows = _latest(store, loop)
    problems = doctor(_numeric(loop, rows), losses=_losses(loop)) if rows else None
    findings = None if problems is None else [wire.Finding(**dataclasses.asdict(each)) for each in problems]
    return wire.Examined(time=time, report=_report(loop, snapshot, rows), findings=findings)


def _report(loop: Loop, snapshot: Snapshot, rows: Sequence[log_export.Row]) -> wire.Report:
    agent = from_bytes(snapshot.model)
    return wire.Report(
        name=loop.name,
        model=snapshot.event,
        rows=len(rows),
        beliefs=_beliefs(agent),
        candidates=_candidates(rows, loop) if rows else [],
        exploration=_exploration([row for row in rows if not row[0].observed], loop),
    )


def _exploration(rows: Sequence[log_export.Row], loop: Loop) -> wire.Exploration | None:
    if not rows:
        return None
    found = exploration_cost(log_export.log_of(loop, rows, contexts=np.empty((len(rows), 0))))
    return None if found is None else msgspec.convert(found.as_dict(), wire.Exploration)


def _beliefs(agent: Any) -> dict[str, Any]:
    if isinstance(agent, Auto | AutoKnobs):
        report = dataclasses.asdict(agent.report()) if seen_by(agent).width is not None else {}
        return {name: _finite(value) for name, value in report.items() if name not in ("actions", "losses")}
    if isinstance(agent, AdaptiveCats):
        pairs = zip(agent.bandwidths, agent.estimates.tolist(), agent.risks.tolist(), strict=True)
        members = [{"bandwidth": each[0], "estimate": _finite(each[1]), "risk": _finite(each[2])} for each in pairs]
        return {"bandwidth": agent.bandwidth, "epsilon": agent.current_epsilon, "members": members}
    if isinstance(agent, Mapped):
        return _beliefs(agent.agent)
    parameters = agent.parameters if isinstance(agent, BaseAgent) else {}
    return {name: _finite(value) for name, value in (parameters | {"epsilon": agent.current_epsilon}).items()}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value if isinstance(value, str | int | bool | None) else str(value)


def _latest(store: Store, loop: Loop) -> list[log_export.Row]:
    """The latest rows whose contexts have the same shape as the last one."""
    first = max(0, store.counts(loop.number).numbers - 2 * LATEST)
    rows = deque((row for page in log_export.pages(store, loop.number, first) for row in page), LATEST)
    filled = [(row[0]._replace(context=loop.model.context(row[0].context)), *row[1:]) for row in rows]
    return [row for row in filled if _shape(row) == _shape(filled[-1])]


def _losses(loop: Loop) -> AnyRange | None:
    return "auto" if loop.settings.losses == "auto" else None


def _shape(row: log_export.Row) -> int | None:
    """The number of values in a context; None for a mapping."""
    context = row[0].context
    return None if isinstance(context, dict) else len(context)


def _numeric(loop: Loop, rows: Sequence[log_export.Row]) -> Log:
    """A log whose contexts are numbers; texts are one-hot encoded."""
    if not _named(rows):
        return log_export.log_of(loop, rows)
    contexts: list[Any] = [decision.context for decision, *_ in rows]
    flat = [dict(map(_column, flatten_fields(context).items())) for context in contexts]
    names = list(dict.fromkeys(name for row in flat for name in row))[:MAX_COLUMNS]
    return log_export.log_of(loop, rows, contexts=np.array([[row.get(name, 0.0) for name in names] for row in flat]))


def _named(rows: Sequence[log_export.Row]) -> bool:
    return isinstance(rows[0][0].context, dict)


def _column(pair: tuple[str, Any]) -> tuple[str, float]:
    name, value = pair
    if isinstance(value, date):
        value = days(value)
    return (f"{name}={value}", 1.0) if isinstance(value, str | time) else (name, float(value or 0.0))


def _candidates(rows: Sequence[log_export.Row], loop: Loop) -> list[wire.Candidate]:
    log = log_export.log_of(loop, rows, contexts=np.empty((len(rows), 0)))
    span = log.loss_range or observed_range(log)
    greedy = greedy_rows(log) & ~np.array([decision.observed for decision, *_ in rows])
    candidates = [_candidate("played", mean_estimate(log.losses, span))]
    if greedy.any() and not greedy.all():
        candidates.append(_candidate("greedy", mean_estimate(log.losses[greedy], span)))
    judged = loop.history.judged
    if loop.apprentice and len(judged):
        model = weighted_estimate(judged[:, 0], np.clip(judged[:, 2], *span), span, judged[:, 1].max())
        candidates.append(_candidate("model", model))
    if len(rows) < SMALL:
        return candidates
    if not loop.space.is_number:
        known = [row for row in rows if not loop.space.is_named or row[0].densities is not None]
        knobs = loop.space.knobs if len(known) >= SMALL else []
        return [*candidates, *(_best_value(name, knob, known, span) for name, knob in knobs)]
    return [*candidates, best_constant(log, loop.space.actions, losses=_losses(loop))]


def _best_value(name: str, knob: Knob, rows: Sequence[log_export.Row], span: Within) -> wire.Candidate:
    """The value of one knob that is best on every other row, the other knobs as they were set, judged on the remaining
    rows by the densities of this knob alone."""
    losses, decisions = np.array([row[1] for row in rows]), [row[0] for row in rows]
    densities = np.array(
        [(each.densities or {}).get(name, math.inf) if name else each.density for each in decisions], np.float64
    )
    values = [each.action[name] if name else each.action for each in decisions]
    at = knob.cells(knob.positions(values, name or "action"))
    count = knob.cell_count
    window = 1 if knob.is_option else max(1, count // 8)
    firsts = np.arange(count - window + 1)[:, np.newaxis]
    volumes = np.convolve(knob.cell_volumes(), np.ones(window), "valid")[:, np.newaxis]
    weights = ((at >= firsts) & (at < firsts + window)) / (densities * volumes)
    numbers = range(count - window + 1)
    actions = [knob.value(each if knob.is_option else (each + window / 2) / count) for each in numbers]

    def judge(number: int, half: int) -> Estimate:
        return weighted_estimate(weights[number, half::2], losses[half::2], span, UNKNOWN_BOUND)

    return _judged_on_other_half(f"constant {name}".strip(), actions, judge, knob=name or None)


def best_constant(log: Log, actions: Within, *, losses: AnyRange | None = None) -> wire.Candidate:
    """The constant action that is best on every other row of a log, judged on the remaining rows."""
    low, high = actions
    constants = [low + (place + 0.5) / CONSTANTS * (high - low) for place in range(CONSTANTS)]
    halves = [log.rows(np.arange(first, len(log), 2)) for first in range(2)]

    def judge(number: int, half: int) -> Estimate:
        try:
            return evaluate(lambda _: constants[number], halves[half], bandwidth=(high - low) / 16, losses=losses)
        except ManulError as error:
            refusal, unknown = Objection("error", "no estimate", str(error)), math.nan
            return Estimate(
                value=unknown,
                low=unknown,
                high=unknown,
                effective_size=0.0,
                largest_weight=unknown,
                mean_weight=unknown,
                rows=len(halves[half]),
                objections=(refusal,),
            )

    return _judged_on_other_half("constant", constants, judge)


def _judged_on_other_half(
    name: str, actions: Sequence[KnobValue], judge: Callable[[int, int], Estimate], knob: str | None = None
) -> wire.Candidate:
    """The action with the lowest loss on the first half of the rows, as it is judged on the second.

    `judge` takes the number of an action and of a half. An action to which there is an objection is not chosen: it may
    have been played only in the contexts that suit it. If there is one to each action, that to the action with the largest
    effective sample size is given.
    """
    estimates = [judge(number, 0) for number in range(len(actions))]
    known = [number for number, estimate in enumerate(estimates) if not estimate.objections]
    if not known:
        return _candidate(name, max(estimates, key=lambda estimate: estimate.effective_size), knob=knob)
    best = min(known, key=lambda number: estimates[number].value)
    action = actions[best]
    stated = f"{name} {action:g}" if isinstance(action, float) else f"{name} {action}"
    return _candidate(stated, judge(best, 1), action=action, knob=knob)


def _candidate(
    name: str, estimate: Estimate, *, action: wire.Option | None = None, knob: str | None = None
) -> wire.Candidate:
    """A candidate with its objections; if there are any, its numbers are not known."""
    objections = [wire.Objection(**dataclasses.asdict(each)) for each in estimate.objections]
    known = (estimate.value, estimate.low, estimate.high)
    loss, low, high = (None, None, None) if objections else known
    return wire.Candidate(
        name=name,
        loss=loss,
        low=low,
        high=high,
        effective_size=estimate.effective_size,
        note=" ".join(each.sentence for each in objections) or None,
        objections=objections,
        action=action,
        knob=knob,
    )


class Examinations:
    """The latest examination of each loop that a dashboard shows: made in a thread, at most every few seconds."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store, self._now = store, now
        self._latest: dict[int, wire.Examined] = {}
        self._running: dict[int, asyncio.Task[None]] = {}

    def latest(self, loop: Loop) -> wire.Examined | None:
        """The latest examination; if it is outdated, the next one is started."""
        latest = self._latest.get(loop.number)
        changed = latest is None or latest.report.model != loop.model.event
        old = latest is None or self._now() - latest.time > (EXAMINE_SECONDS if latest.report.rows else 1.0)
        if changed and old and loop.number not in self._running:
            self._running[loop.number] = asyncio.create_task(self._examine(loop))
        return latest

    async def _examine(self, loop: Loop) -> None:
        try:
            snapshot = await asyncio.to_thread(loop.model.snapshot)
            time = self._now()
            self._latest[loop.number] = await asyncio.to_thread(examine, self._store, loop, snapshot, time)
        except Exception:
            log.exception("could not compute the report of a loop; the previous one stays", extra={"loop": loop.name})
        finally:
            del self._running[loop.number]
