"""Metrics for Prometheus: totals of loops from the store, and the state of the service from memory."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from manul.service import wire
from manul.service.engine.engine import Engine
from manul.service.engine.rollout_control import describe_all
from manul.service.engine.status import status
from manul.service.http.request_metrics import RequestMetrics
from manul.service.http.rollout_metrics import rollout_metrics
from manul.service.http.tokens import Access
from manul.service.store import StoreFailure

log = logging.getLogger("manul.service")
# The longest time that a scrape waits for the store.
STORE_SECONDS = 0.5
LOOP = {
    "decisions": ("counter", "Decisions in the store."),
    "learned": ("counter", "Outcomes that the model has learned."),
    "waiting": ("gauge", "Decisions without an outcome."),
    "mean_loss": ("gauge", "Mean loss of all outcomes."),
    "late": ("counter", "Losses reported after the end of the wait."),
    "defaulted": ("counter", "Decisions that got the default loss."),
    "refused": ("counter", "Outcomes that the model could not learn."),
    "events": ("counter", "Events in the store."),
    "model": ("counter", "Number of the last event that the model contains."),
}
Statuses = Sequence[wire.Status]


class LoopCounts:
    """Reads the status of all loops in a separate thread, so that a store that hangs does not block the service."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reading: asyncio.Future[Statuses | None] | None = None

    async def read(self) -> Statuses | None:
        """The status of all loops; None if the store cannot be read in time."""
        if self._reading is None or self._reading.done():
            self._reading = asyncio.get_running_loop().create_future()
            threading.Thread(target=self._read, args=(self._reading,), name="manul-metrics", daemon=True).start()
        await asyncio.wait([self._reading], timeout=STORE_SECONDS)
        return self._reading.result() if self._reading.done() else None

    def _read(self, reading: asyncio.Future[Statuses | None]) -> None:
        statuses: Statuses | None
        try:
            statuses = [status(self._engine.store, loop) for loop in list(self._engine.loops.values())]
        except StoreFailure:
            statuses = None
        except Exception:
            log.exception("the status of the loops cannot be read")
            statuses = None
        try:
            reading.get_loop().call_soon_threadsafe(reading.set_result, statuses)
        except RuntimeError:
            return  # The service has stopped in the meantime.


def text(engine: Engine, statuses: Statuses | None, requests: RequestMetrics, tokens: Iterable[Access] = ()) -> str:
    """All metrics; those of the store are omitted if it could not be read."""
    lines: list[str] = []
    for name, (kind, meaning) in LOOP.items() if statuses is not None else ():
        values = [(each.name, getattr(each, name)) for each in statuses or ()]
        lines += _metric(name, kind, meaning, {_label(loop): value for loop, value in values if value is not None})
    if statuses is not None:
        lags = {_label(each.name): max(0, each.events - each.model) for each in statuses}
        lines += _metric("learner_lag", "gauge", "Events that the model has not learned yet.", lags)
        for name, kind, meaning, samples in outcome_metrics(statuses):
            lines += _metric(name, kind, meaning, samples)
    deviations = {_label(loop.name): loop.history.deviation for loop in list(engine.loops.values())}
    lines += _metric(
        "loss_deviation", "gauge", "Standard deviation of the losses that the model has learned.", deviations
    )
    for name, kind, meaning, samples in rollout_metrics(describe_all(list(engine.loops.values()), engine.now())):
        lines += _metric(name, kind, meaning, samples)
    for name, (kind, meaning, value) in state(engine, store_up=statuses is not None).items():
        lines += _metric(name, kind, meaning, {"": value})
    refused = {f'{{token="{each.shown}"}}': each.refused for each in tokens if each.refused}
    lines += _metric(
        "rate_limited", "counter", "Requests refused by the rate limit, by the start of the hash.", refused
    )
    return "\n".join([*lines, *requests.lines()]) + "\n"


def outcome_metrics(statuses: Statuses) -> Iterator[tuple[str, str, str, Mapping[str, float]]]:
    """What alerts compare between two periods; a mean over all time hardly moves."""
    outcomes = {_label(each.name): each.decisions - each.waiting for each in statuses}
    sums = {_label(each.name): outcomes[_label(each.name)] * (each.mean_loss or 0.0) for each in statuses}
    waits = {_label(each.name): each.wait for each in statuses if each.wait is not None}
    yield "outcomes", "counter", "Decisions with an outcome.", outcomes
    yield "loss_sum", "gauge", "Sum of the losses of all outcomes.", sums
    yield "wait_seconds", "gauge", "Age at which decisions get their outcome, if the loop has a wait.", waits


def state(engine: Engine, *, store_up: bool) -> Mapping[str, tuple[str, str, float]]:
    """The metrics from memory: kind, meaning and value by name."""
    writer, learner = engine.writer, engine.learner
    return {
        "commits": ("counter", "Transactions written.", writer.commits),
        "store_failing": ("gauge", "1 while the store is not writable.", int(writer.failing)),
        "store_up": (
            "gauge",
            "1 if the store can be read and written.",
            int(store_up and not writer.failing),
        ),
        "healthy": ("gauge", "1 if /readyz answers 200.", int(engine.trouble() is None)),
        "writer_alive": ("gauge", "1 while the writer thread is running.", int(writer.is_alive())),
        "writer_queue": ("gauge", "Operations waiting to be written.", writer.depth),
        "learner_alive": ("gauge", "1 while the learner thread is running.", int(learner.is_alive())),
        "leader": (
            "gauge",
            "1 if this replica is the leader, which sends webhooks and removes the data of deleted loops.",
            int(learner.leads()),
        ),
        "loops": ("gauge", "Number of loops.", len(engine.loops)),
        "resident_bytes": ("gauge", "Resident memory of the process.", resident_bytes()),
    }


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _label(loop: str) -> str:
    return f'{{loop="{loop}"}}'


def _metric(name: str, kind: str, meaning: str, values: Mapping[str, float]) -> Iterator[str]:
    full = f"manul_{name}_total" if kind == "counter" else f"manul_{name}"
    yield from (f"# HELP {full} {meaning}", f"# TYPE {full} {kind}")
    for labels, value in values.items():
        yield f"{full}{labels} {value!r}"
