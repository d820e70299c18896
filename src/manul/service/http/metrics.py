"""Metrics for Prometheus: totals of loops from the store; requests, rollouts and the state of the service from memory."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import asdict

from manul.service import wire
from manul.service.engine.engine import Engine
from manul.service.engine.rollout_control import describe_all
from manul.service.http.tokens import Access
from manul.service.rollout_schema import Rollout
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
GAUGES = {
    "traffic": "The learner's share of the decisions.",
    "step": "Number of the step; 0 after the rollout went back to the baseline.",
    "spent": "Upper bound of what the learner has cost beyond the tolerance, in units of the loss.",
    "budget": "Start-up budget of the rollout, in units of the loss.",
    "in_flight": "Decisions of the rollout that are not judged yet.",
    "uneven": "1 if the arms lack losses at different rates, so that the learner does not move up.",
    "unsent": "Moves that the webhook has not received yet.",
}
BUDGET = {
    "amount": "Amount of the budget.",
    "available": "What the current period of the budget has.",
    "spent": "What the current period has spent.",
    "held": "What is held back for decisions that wait for their cost.",
    "left": "What is left of the budget in the current period.",
    "pace": "What was spent relative to what was planned so far.",
    "forecast": "What will be spent at the end of the period at this pace.",
    "price": "What a decision must earn for one that it spends, beyond the one itself.",
    "gone": "1 if the budget is gone early in its period.",
}
KEPT = {
    "mean": "Mean of what is kept, of about the latest 1,000 outcomes.",
    "value": "The bound on the mean.",
    "price": "Price of what is kept.",
    "out_of_reach": "1 if the bound cannot be kept.",
}
# Upper bounds of the histogram's buckets.
SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
OTHER = "other"
Statuses = Sequence[wire.Status]
Metric = tuple[str, str, str, Mapping[str, float]]


class RequestMetrics:
    """Responses by route and status, and a histogram of latencies by route."""

    def __init__(self) -> None:
        self._answers: Counter[tuple[str, int]] = Counter()
        self._counts: dict[str, list[int]] = {}
        self._sums: Counter[str] = Counter()

    def add(self, route: str, status: int, seconds: float) -> None:
        self._answers[route, status] += 1
        if route not in self._counts:
            self._counts[route] = [0] * (len(SECONDS) + 1)
        self._counts[route][bisect_left(SECONDS, seconds)] += 1
        self._sums[route] += seconds  # type: ignore[assignment]

    def lines(self) -> Iterator[str]:
        yield from ("# HELP manul_requests_total Responses by route and status.", "# TYPE manul_requests_total counter")
        for (route, status), count in sorted(self._answers.items()):
            yield f'manul_requests_total{{route="{route}",status="{status}"}} {count}'
        yield "# HELP manul_request_seconds Time from the headers of a request to the end of its response."
        yield "# TYPE manul_request_seconds histogram"
        for route in sorted(self._counts):
            yield from self._histogram(route)

    def _histogram(self, route: str) -> Iterator[str]:
        total = 0
        for bound, count in zip((*SECONDS, "+Inf"), self._counts[route], strict=True):
            total += count
            yield f'manul_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}'
        yield f'manul_request_seconds_sum{{route="{route}"}} {self._sums[route]!r}'
        yield f'manul_request_seconds_count{{route="{route}"}} {total}'


class LoopCounts:
    """Reads the status of all loops in a separate thread, so that a store that hangs does not block the service."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._reading: asyncio.Future[Statuses | None] | None = None
        self.files: list[Metric] = []

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
            self.files = list(file_metrics(self._engine))
            statuses = self._engine.statuses(list(self._engine.loops.values()))
        except (StoreFailure, OSError):
            statuses = None
        except Exception:
            log.exception("the status of the loops cannot be read")
            statuses = None
        try:
            reading.get_loop().call_soon_threadsafe(reading.set_result, statuses)
        except RuntimeError:
            return  # The service has stopped in the meantime.


def text(
    engine: Engine,
    statuses: Statuses | None,
    requests: RequestMetrics,
    tokens: Iterable[Access] = (),
    files: Sequence[Metric] = (),
) -> str:
    """All metrics; those of the store are omitted if it could not be read."""
    lines: list[str] = []
    for name, kind, meaning, samples in files:
        lines += _metric(name, kind, meaning, samples)
    for name, (kind, meaning) in LOOP.items() if statuses is not None else ():
        values = [(each.name, asdict(each)[name]) for each in statuses or ()]
        lines += _metric(name, kind, meaning, {_labels(loop): value for loop, value in values if value is not None})
    if statuses is not None:
        lags = {_labels(each.name): max(0, each.events - each.model) for each in statuses}
        lines += _metric("learner_lag", "gauge", "Events that the model has not learned yet.", lags)
        for name, kind, meaning, samples in (*outcome_metrics(statuses), *limit_metrics(statuses)):
            lines += _metric(name, kind, meaning, samples)
    deviations = {_labels(loop.name): loop.history.deviation for loop in list(engine.loops.values())}
    lines += _metric(
        "loss_deviation", "gauge", "Standard deviation of the losses that the model has learned.", deviations
    )
    ready = {_labels(each.name): int(engine.loop_trouble(each) is None) for each in list(engine.loops.values())}
    ready |= {_labels(name): 0 for name in list(engine.broken)}
    lines += _metric("loop_ready", "gauge", "1 if the loop can be read, and learns.", ready)
    for name, kind, meaning, samples in rollout_metrics(describe_all(list(engine.loops.values()), engine.now())):
        lines += _metric(name, kind, meaning, samples)
    for name, (kind, meaning, value) in state(engine, store_up=statuses is not None).items():
        lines += _metric(name, kind, meaning, {"": value})
    refused = {f'{{token="{each.shown}"}}': each.refused for each in tokens if each.refused}
    lines += _metric(
        "rate_limited", "counter", "Requests refused by the rate limit, by the start of the hash.", refused
    )
    return "\n".join([*lines, *requests.lines()]) + "\n"


def file_metrics(engine: Engine) -> Iterator[Metric]:
    """What the disks have left, and the age of the newest backup; both may be slow, so they are read in a thread."""
    free, folder = engine.store.free_bytes(), engine.backups
    yield "disk_free_bytes", "gauge", "Free space where the store is.", {} if free is None else {"": free}
    times = [] if folder is None else [each.stat().st_mtime for each in folder.glob("*.zip")]
    age = {} if folder is None else {"": time.time() - max(times, default=0.0)}
    yield "backup_age_seconds", "gauge", "Age of the newest backup in the folder of --backups.", age


def outcome_metrics(statuses: Statuses) -> Iterator[Metric]:
    """What alerts compare between two periods; a mean over all time hardly moves."""
    outcomes = {_labels(each.name): each.decisions - each.waiting for each in statuses}
    sums = {_labels(each.name): outcomes[_labels(each.name)] * (each.mean_loss or 0.0) for each in statuses}
    waits = {_labels(each.name): each.wait for each in statuses if each.wait is not None}
    yield "outcomes", "counter", "Decisions with an outcome.", outcomes
    yield "loss_sum", "gauge", "Sum of the losses of all outcomes.", sums
    yield "wait_seconds", "gauge", "Age at which decisions get their outcome, if the loop has a wait.", waits


def limit_metrics(statuses: Statuses) -> Iterator[Metric]:
    """The budgets, and what is kept, of the loops that have some."""
    for limit, meanings, trouble in (("budget", BUDGET, "gone"), ("kept", KEPT, "out_of_reach")):
        states = {_labels(each.name): each.budget if limit == "budget" else each.kept for each in statuses}
        values = {
            loop: {**asdict(state), trouble: int(state.trouble is not None)}
            for loop, state in states.items()
            if state is not None
        }
        for name, meaning in meanings.items():
            known = {loop: row[name] for loop, row in values.items() if row[name] is not None}
            if known:
                yield f"{limit}_{name}", "gauge", meaning, known


def rollout_metrics(rollouts: Sequence[Rollout]) -> Iterator[Metric]:
    """Each metric with its name, kind, meaning and samples by labels; loops without a rollout have none."""
    if not rollouts:
        return
    for name, meaning in GAUGES.items():
        yield f"rollout_{name}", "gauge", meaning, {_labels(each.loop): +asdict(each)[name] for each in rollouts}
    by_arm = {
        "decisions": "Decisions with losses since the rollout began, by arm.",
        "left_out": "Decisions whose losses did not come within patience since the model was given, by arm.",
    }
    for name, meaning in by_arm.items():
        arms = ((each, arm) for each in rollouts for arm in ("learner", "baseline"))
        counts = {_labels(each.loop, arm=arm): asdict(each)[f"{arm}_{name}"] for each, arm in arms}
        yield f"rollout_{name}", "counter", meaning, counts
    moves = {
        _labels(each.loop, reason=reason): count
        for each in rollouts
        for reason, count in Counter(move.reason for move in each.moves).items()
    }
    yield "rollout_moves", "counter", "Moves of the rollout by reason.", moves
    guards = {
        _labels(each.loop, guard=guard.name): {"holds": 1, "does not hold": -1}.get(guard.state, 0)
        for each in rollouts
        for guard in each.guards
    }
    if guards:
        meaning = "Whether a guard of the rollout is proven to hold (1), proven not to (-1), or neither (0)."
        yield "rollout_guard", "gauge", meaning, guards


def state(engine: Engine, *, store_up: bool) -> Mapping[str, tuple[str, str, float]]:
    """The metrics from memory: kind, meaning and value by name."""
    writer, learner = engine.writer, engine.learner
    return {
        "commits": ("counter", "Transactions written.", writer.commits),
        "store_failing": ("gauge", "1 while the store is not writable.", int(writer.failing)),
        "store_lost": (
            "gauge",
            "1 if the file of the store was deleted or replaced.",
            int(engine.store.lost is not None),
        ),
        "store_up": (
            "gauge",
            "1 if the store can be read and written.",
            int(store_up and not writer.failing and engine.store.lost is None),
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


def _labels(loop: str, **more: str) -> str:
    return "{" + ",".join(f'{name}="{value}"' for name, value in {"loop": loop, **more}.items()) + "}"


def _metric(name: str, kind: str, meaning: str, values: Mapping[str, float]) -> Iterator[str]:
    full = f"manul_{name}_total" if kind == "counter" else f"manul_{name}"
    yield from (f"# HELP {full} {meaning}", f"# TYPE {full} {kind}")
    for labels, value in values.items():
        yield f"{full}{labels} {value!r}"
