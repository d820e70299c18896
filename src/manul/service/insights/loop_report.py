"""The report of a loop: its agent's estimates, and the estimated losses of candidate policies on the latest decisions."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from manul.actions.knobs import Choice
from manul.agents import AdaptiveCats, Auto
from manul.agents.auto_knobs import AutoKnobs
from manul.errors import ManulError
from manul.logs.batching import observed_range
from manul.logs.exploration_cost import exploration_cost, greedy_rows
from manul.logs.log import Log
from manul.offpolicy import doctor, evaluate
from manul.offpolicy.evaluation.empirical_likelihood import UNKNOWN_BOUND, EmpiricalLikelihood
from manul.offpolicy.evaluation.intervals import Terms
from manul.offpolicy.evaluation.objections import EVIDENCE, SMALL
from manul.service import schema
from manul.service.engine import models
from manul.service.engine.action_space import SeveralKnobs
from manul.service.engine.loop import Loop
from manul.service.insights import cells, log_export
from manul.service.store import Snapshot, Store
from manul.types import Estimate, Floats, Within
from manul.utils.rewards import AnyRange

# Decisions that a report is based on, constant actions that are compared, and columns that the doctor examines.
LATEST, CONSTANTS, MAX_COLUMNS = 4000, 9, 256


def report(store: Store, loop: Loop, snapshot: Snapshot) -> schema.Report:
    """The report of a loop; `snapshot` is its current model."""
    return _report(loop, snapshot, _latest(store, loop))


def examine(store: Store, loop: Loop, snapshot: Snapshot, time: float) -> schema.Examined:
    """The report of a loop with the doctor's findings on the same rows."""
    rows = _latest(store, loop)
    problems = doctor(_numeric(loop, rows), losses=_losses(loop)) if rows else None
    findings = None if problems is None else [schema.Finding(**dataclasses.asdict(each)) for each in problems]
    return schema.Examined(time=time, report=_report(loop, snapshot, rows), findings=findings)


def _report(loop: Loop, snapshot: Snapshot, rows: Sequence[log_export.Row]) -> schema.Report:
    agent = models.from_bytes(snapshot.model)
    return schema.Report(
        name=loop.name,
        model=snapshot.event,
        rows=len(rows),
        beliefs=_beliefs(agent),
        candidates=_candidates(rows, loop) if rows else [],
        exploration=_exploration([row for row in rows if not row[0].observed], loop),
    )


def _exploration(rows: Sequence[log_export.Row], loop: Loop) -> schema.Exploration | None:
    if not rows:
        return None
    found = exploration_cost(log_export.log_of(loop, rows, contexts=np.empty((len(rows), 0))))
    return None if found is None else msgspec.convert(found.as_dict(), schema.Exploration)


def _beliefs(agent: Any) -> dict[str, Any]:
    if isinstance(agent, Auto | AutoKnobs):
        report = dataclasses.asdict(agent.report()) if agent.width is not None else {}
        return {name: _finite(value) for name, value in report.items() if name not in ("actions", "losses")}
    if isinstance(agent, AdaptiveCats):
        pairs = zip(agent.bandwidths, agent.estimates.tolist(), agent.risks.tolist(), strict=True)
        members = [{"bandwidth": each[0], "estimate": _finite(each[1]), "risk": _finite(each[2])} for each in pairs]
        return {"bandwidth": agent.bandwidth, "epsilon": agent.current_epsilon, "members": members}
    parameters = getattr(agent, "parameters", {}) | {"epsilon": getattr(agent, "current_epsilon", None)}
    return {name: _finite(value) for name, value in parameters.items()}


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
    filled = [(decision._replace(context=loop.context(decision.context)), loss) for decision, loss in rows]
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
    contexts: list[Any] = [decision.context for decision, _ in rows]
    flat = [dict(map(_column, log_export.flat_columns(context).items())) for context in contexts]
    names = list(dict.fromkeys(name for row in flat for name in row))[:MAX_COLUMNS]
    return log_export.log_of(loop, rows, contexts=np.array([[row.get(name, 0.0) for name in names] for row in flat]))


def _named(rows: Sequence[log_export.Row]) -> bool:
    return isinstance(rows[0][0].context, dict)


def _column(pair: tuple[str, float | str | None]) -> tuple[str, float]:
    name, value = pair
    return (f"{name}={value}", 1.0) if isinstance(value, str) else (name, value or 0.0)


def _candidates(rows: Sequence[log_export.Row], loop: Loop) -> list[schema.Candidate]:
    log = log_export.log_of(loop, rows, contexts=np.empty((len(rows), 0)))
    low, high = log.loss_range or observed_range(log)
    shares = (log.losses - low) / (high - low)
    greedy = greedy_rows(log) & ~np.array([decision.observed for decision, _ in rows])
    candidates = [_candidate("played", _mean(shares), (low, high))]
    if greedy.any() and not greedy.all():
        candidates.append(_candidate("greedy", _mean(shares[greedy]), (low, high)))
    judged = loop.history.judged
    if loop.apprentice and len(judged):
        outcomes = np.clip((judged[:, 2] - low) / (high - low), 0.0, 1.0)
        candidates.append(_candidate("model", _weighted(judged[:, 0], outcomes, judged[:, 1].max()), (low, high)))
    if isinstance(loop.space, SeveralKnobs):
        constants = [_best_value(place, rows, shares, loop) for place in range(len(loop.space.knobs))]
        return [*candidates, *(_candidate(*each, (low, high)) for each in constants if each is not None)]
    return [*candidates, *_best_constant(log, loop)]


def _best_value(place: int, rows: Sequence[log_export.Row], shares: Floats, loop: Loop) -> tuple[str, _Judged] | None:
    """The value of one knob that is best on every other row, the other knobs as they were set, judged on the remaining
    rows by the densities of this knob alone; None if no value has enough."""
    name, knob = loop.space.knobs[place]
    densities = np.array([(decision.densities or {}).get(name, math.inf) for decision, _ in rows])
    at = cells.cells(knob, cells.positions(knob, [decision.action[name] for decision, _ in rows]))
    count = cells.cell_count(knob)
    window = 1 if isinstance(knob, Choice) else max(1, count // 8)
    firsts = np.arange(count - window + 1)[:, np.newaxis]
    volumes = np.convolve(cells.cell_volumes(knob), np.ones(window), "valid")[:, np.newaxis]
    weights = ((at >= firsts) & (at < firsts + window)) / (densities * volumes)
    chosen, judging = weights[:, 0::2], weights[:, 1::2]
    totals, squares = chosen.sum(axis=1), (chosen**2).sum(axis=1)
    known = totals**2 >= SMALL * np.maximum(squares, np.finfo(np.float64).tiny)
    if not known.any():
        return None
    losses = np.where(known, chosen @ shares[0::2] / np.where(known, totals, 1.0), np.inf)
    best = int(losses.argmin())
    judged = _weighted(judging[best], shares[1::2], UNKNOWN_BOUND)
    value = knob.value(best if isinstance(knob, Choice) else (best + window / 2) / count)
    return f"constant {name} {value:g}" if isinstance(value, float) else f"constant {name} {value}", judged


class _Judged(NamedTuple):
    """An estimate of losses scaled to [0, 1], its interval, the effective sample size and the number of decisions."""

    value: float
    ends: Within
    size: float
    rows: int
    note: str | None = None


def _mean(shares: Floats) -> _Judged:
    return _weighted(np.ones(len(shares)), shares, 1.0)


def _weighted(weights: Floats, shares: Floats, bound: float) -> _Judged:
    likelihood = EmpiricalLikelihood()
    likelihood.add(Terms(weights * shares, weights, weights, shares))
    total = float(weights.sum())
    if not total:
        return _Judged(0.0, (0.0, 1.0), 0.0, len(weights))
    value = float((weights * shares).sum()) / total
    low, high = likelihood.ends(0.95, bound)
    size = total**2 / float((weights**2).sum())
    wrong = likelihood.evidence_against_weights(bound) > EVIDENCE
    note = f"weights average {total / len(weights):.3g}, not 1: check the densities" if wrong else None
    return _Judged(value, (min(low, value), max(high, value)), size, len(weights), note)


def _candidate(name: str, judged: _Judged, scale: Within) -> schema.Candidate:
    """A candidate in the units of the losses; its numbers are null if too few decisions match, or if the densities are wrong."""
    note = _too_few(judged.size, judged.rows) if judged.size < SMALL else judged.note
    if note is not None:
        return schema.Candidate(name=name, loss=None, low=None, high=None, effective_size=judged.size, note=note)
    low, span = scale[0], scale[1] - scale[0]
    loss, bottom, top = (low + share * span for share in (judged.value, *judged.ends))
    return schema.Candidate(name=name, loss=loss, low=bottom, high=top, effective_size=judged.size)


def _too_few(size: float, rows: int) -> str:
    decisions = "1 decision" if rows == 1 else f"{rows:,} decisions"
    matching = decisions if size == rows else f"{size:,.0f} of {rows:,} decisions match"
    return f"{matching}: not enough to say"


def _best_constant(log: Log, loop: Loop) -> list[schema.Candidate]:
    """The constant action that is best on every other row, judged on the remaining rows; none if no action has enough."""
    low, high = loop.space.actions
    constants = [low + (place + 0.5) / CONSTANTS * (high - low) for place in range(CONSTANTS)]
    chosen, judging = log.rows(np.arange(0, len(log), 2)), log.rows(np.arange(1, len(log), 2))
    estimates = {action: _evaluate(action, chosen, loop) for action in constants}
    known = {
        action: estimate for action, estimate in estimates.items() if estimate and estimate.effective_size >= SMALL
    }
    if not known:
        return []
    best = min(known, key=lambda action: known[action].value)
    judged = _evaluate(best, judging, loop)
    if judged is None:
        return []
    size, errors = judged.effective_size, [each.sentence for each in judged.objections if each.severity == "error"]
    note = _too_few(size, len(judging)) if size < SMALL else errors[0] if errors else None
    numbers = (judged.value, judged.low, judged.high) if note is None else (None, None, None)
    loss, bottom, top = numbers
    name = f"constant {best:g}"
    return [schema.Candidate(name=name, loss=loss, low=bottom, high=top, effective_size=size, note=note)]


def _evaluate(action: float, log: Log, loop: Loop) -> Estimate | None:
    low, high = loop.space.actions
    try:
        return evaluate(lambda _: action, log, bandwidth=(high - low) / 16, losses=_losses(loop))
    except ManulError:
        return None
