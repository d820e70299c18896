"""What a loop's agent believes, and what it and others would have lost, from the latest decisions in the store."""

from __future__ import annotations

import dataclasses
import math
from collections import deque
from typing import Any

import numpy as np

from manul.agents import AdaptiveCats, Auto
from manul.errors import ManulError
from manul.log import Log
from manul.offpolicy import doctor, evaluate
from manul.service import agents, export, schema
from manul.service.loop import Loop
from manul.service.store import Snapshot, Store
from manul.types import Policy

LATEST = 4000
CONSTANTS = 9


def report(store: Store, loop: Loop, snapshot: Snapshot) -> schema.Report:
    """The report of a loop; `snapshot` is its model as it is now."""
    return _report(loop, snapshot, *_latest(store, loop))


def examined(store: Store, loop: Loop, snapshot: Snapshot, time: float) -> schema.Examined:
    """The report of a loop with the doctor's findings on the same rows."""
    log, rows = _latest(store, loop)
    findings = None if log is None else [schema.Finding(**dataclasses.asdict(each)) for each in doctor(log)]
    return schema.Examined(time=time, report=_report(loop, snapshot, log, rows), findings=findings)


def _report(loop: Loop, snapshot: Snapshot, log: Log | None, rows: int) -> schema.Report:
    agent = agents.from_bytes(snapshot.model)
    candidates = [] if log is None else _candidates(log, agent, loop)
    return schema.Report(
        name=loop.name, model=snapshot.event, rows=rows, beliefs=_beliefs(agent), candidates=candidates
    )


def _beliefs(agent: Any) -> dict[str, Any]:
    if isinstance(agent, Auto):
        found = dataclasses.asdict(agent.report()) if agent.width is not None else {}
        return {name: _finite(value) for name, value in found.items() if name not in ("actions", "losses")}
    if isinstance(agent, AdaptiveCats):
        pairs = zip(agent.bandwidths, agent.estimates.tolist(), agent.risks.tolist(), strict=True)
        members = [{"bandwidth": each[0], "estimate": _finite(each[1]), "risk": _finite(each[2])} for each in pairs]
        return {"bandwidth": agent.bandwidth, "members": members}
    return {name: _finite(value) for name, value in getattr(agent, "parameters", {}).items()}


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value if isinstance(value, str | int | bool | None) else str(value)


def _latest(store: Store, loop: Loop) -> tuple[Log | None, int]:
    first = max(0, store.counts(loop.number).numbers - 2 * LATEST)
    rows = deque((row for page in export.pages(store, loop.number, first) for row in page), LATEST)
    return (export.log_of(loop, list(rows)) if rows else None), len(rows)


def _candidates(log: Log, agent: Any, loop: Loop) -> list[schema.Candidate]:
    mean, error = float(log.losses.mean()), float(log.losses.std() / math.sqrt(len(log)))
    played = schema.Candidate(
        name="played", loss=mean, low=mean - 1.96 * error, high=mean + 1.96 * error, effective_size=float(len(log))
    )
    low, high = loop.settings.actions
    constants = [low + (place + 0.5) / CONSTANTS * (high - low) for place in range(CONSTANTS)]
    others: dict[str, Any] = {"model": agent}
    others |= {f"constant {action:g}": (lambda _, action=action: action) for action in constants}
    found = [_candidate(name, policy, log, (high - low) / 16) for name, policy in others.items()]
    model, *fixed = found
    best = min((each for each in fixed if each is not None), key=lambda each: each.loss, default=None)
    return [each for each in (played, model, best) if each is not None]


def _candidate(name: str, policy: Any, log: Log, bandwidth: float) -> schema.Candidate | None:
    """Nothing where the log cannot say anything about a policy."""
    try:
        window = None if isinstance(policy, Policy) else bandwidth
        found = evaluate(policy, log, estimator="snips", interval="normal", bandwidth=window)
    except ManulError:
        return None
    values = (found.value, found.low, found.high, found.effective_size)
    if not np.isfinite(values).all():
        return None
    value, low, high, size = map(float, values)
    return schema.Candidate(name=name, loss=value, low=low, high=high, effective_size=size)
