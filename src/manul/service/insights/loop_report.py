"""The report of a loop: its agent's estimates, and the estimated losses of candidate policies on the latest decisions."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from manul.agents import AdaptiveCats, Auto
from manul.errors import ManulError
from manul.logs.exploration_cost import exploration_cost
from manul.logs.log import Log
from manul.offpolicy import doctor, evaluate
from manul.service import schema
from manul.service.engine import models
from manul.service.engine.loop import Loop
from manul.service.insights import log_export
from manul.service.store import Snapshot, Store
from manul.types import Policy, Within
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
        candidates=_candidates(rows, agent, loop) if rows else [],
        exploration=_exploration([row for row in rows if not row[0].observed], loop),
    )


def _exploration(rows: Sequence[log_export.Row], loop: Loop) -> schema.Exploration | None:
    if not rows:
        return None
    found = exploration_cost(log_export.log_of(loop, rows, contexts=np.empty((len(rows), 0))))
    return None if found is None else msgspec.convert(found.as_dict(), schema.Exploration)


def _beliefs(agent: Any) -> dict[str, Any]:
    if isinstance(agent, Auto):
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


class _PolicyByRow:
    """An agent for contexts that are mappings, on a log that holds row numbers.

    The columns of a log cannot hold nested or boolean fields unchanged, and agents refuse a field of another type.
    """

    def __init__(self, agent: Any, rows: Sequence[log_export.Row]) -> None:
        self._agent, self._rows = agent, rows

    def distribution(self, row: Any, within: Within | None = None) -> Any:
        """The distribution in the context of a row."""
        return self._agent.distribution(self._rows[int(row[0])][0].context, within)


def _candidates(rows: Sequence[log_export.Row], agent: Any, loop: Loop) -> list[schema.Candidate]:
    named = _named(rows)
    log = log_export.log_of(loop, rows, contexts=np.arange(len(rows))[:, np.newaxis] if named else None)
    policy = _PolicyByRow(agent, rows) if named else agent
    mean, error = float(log.losses.mean()), float(log.losses.std() / math.sqrt(len(log)))
    played = schema.Candidate(
        name="played", loss=mean, low=mean - 1.96 * error, high=mean + 1.96 * error, effective_size=float(len(log))
    )
    low, high = loop.settings.actions
    constants = [low + (place + 0.5) / CONSTANTS * (high - low) for place in range(CONSTANTS)]
    others: dict[str, Any] = {"model": policy}
    others |= {f"constant {action:g}": (lambda _, action=action: action) for action in constants}
    model, *fixed = [_candidate(name, policy, log, (high - low) / 16, _losses(loop)) for name, policy in others.items()]
    best = min((each for each in fixed if each is not None), key=lambda each: each.loss, default=None)
    return [each for each in (played, model, best) if each is not None]


def _candidate(name: str, policy: Any, log: Log, bandwidth: float, losses: AnyRange | None) -> schema.Candidate | None:
    """Evaluate a policy; None if the log does not support an estimate."""
    try:
        window = None if isinstance(policy, Policy) else bandwidth
        estimate = evaluate(policy, log, estimator="snips", interval="normal", bandwidth=window, losses=losses)
    except ManulError:
        return None
    values = (estimate.value, estimate.low, estimate.high, estimate.effective_size)
    if not np.isfinite(values).all():
        return None
    value, low, high, size = map(float, values)
    return schema.Candidate(name=name, loss=value, low=low, high=high, effective_size=size)
