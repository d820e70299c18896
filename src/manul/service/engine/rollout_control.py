"""Starts, pauses, resumes and aborts the rollouts of loops, and describes them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Literal

import msgspec

from manul.agents.rollout.rollout_evidence import Evidence, evidence_of
from manul.service.engine.loop import Fact, Loop
from manul.service.engine.loop_rollout import LoopRollout, OwnerAct, check_contexts
from manul.service.errors import Conflict, Unknown
from manul.service.rollout_schema import NewRollout, Rollout, SavedPolicy, Status
from manul.service.store import Event, Store, Transaction

Write = Callable[[Callable[[Transaction], Any]], Awaitable[Any]]
Act = Literal["pause", "resume", "abort"]


class RolloutControl:
    """What owners do to rollouts. Each act is stored as an event, and applied by the learner in its turn."""

    def __init__(
        self, store: Store, write: Write, now: Callable[[], float], learn: Callable[[Loop, list[Fact]], None]
    ) -> None:
        self._store, self._write, self._now, self._learn = store, write, now, learn

    async def start(self, loop: Loop, settings: NewRollout) -> None:
        """Start a rollout. If it is running with the same settings, nothing changes; other settings start a new test."""
        running = loop.rollout
        trial = LoopRollout(loop.settings, settings, event=0, time=self._now(), first=0)
        if loop.first is not None:
            check_contexts(trial, loop.first)
        if running is not None and running.settings == settings and running.progress.level >= 0:
            return
        counts = await asyncio.to_thread(self._store.counts, loop.number)
        await self._store_act(loop, OwnerAct(act="start", settings=settings, first=counts.numbers + 1))

    async def act(self, loop: Loop, act: Act) -> None:
        """Pause, resume or abort the rollout of a loop; nothing changes if it is in that state already."""
        rollout = require_rollout(loop)
        ended = rollout.progress.level < 0
        if ended and act != "abort":
            raise Conflict("The rollout has ended. Start a new one.", "rollout")
        unchanged = {"pause": rollout.paused, "resume": not rollout.paused, "abort": ended}
        if not unchanged[act]:
            await self._store_act(loop, OwnerAct(act=act))

    async def end(self, loop: Loop) -> None:
        """End the rollout of a loop: from now on the learner makes all decisions."""
        if loop.rollout is not None:
            await self._store_act(loop, OwnerAct(act="end"))

    async def note_sent(self, loop: Loop, rollout: int, moves: int) -> None:
        """Note how many moves of the rollout that an event started the webhook has received."""
        if loop.rollout is not None and loop.rollout.event == rollout:
            await self._store_act(loop, OwnerAct(act="notified", rollout=rollout, moves=moves))

    async def _store_act(self, loop: Loop, act: OwnerAct) -> None:
        if loop.paused:
            raise Conflict(f"loop {loop.name!r} is paused, and so is its rollout. Resume the loop first.", "loop")

        def add(transaction: Transaction) -> Event:
            event = transaction.add_events(loop.number, [Event(0, 0, "rollout", 0.0, self._now())])[0]
            transaction.add_model(loop.number, event.number, msgspec.json.encode(act))
            return event

        event = await self._write(add)
        self._learn(loop, [(event, None)])
        await asyncio.wrap_future(loop.wait_for(event.number))


def require_rollout(loop: Loop) -> LoopRollout:
    """The rollout of a loop."""
    if loop.rollout is None:
        raise Unknown(f"loop {loop.name!r} has no rollout. Start one first.", "rollout")
    return loop.rollout


def describe(loop: Loop, now: float) -> Rollout:
    """The rollout of a loop for its owner."""
    with loop.lock:
        return _describe(loop, require_rollout(loop), now)


def describe_all(loops: Iterable[Loop], now: float) -> list[Rollout]:
    """The rollouts of all loops that have one."""
    described = []
    for loop in loops:
        with loop.lock:
            if loop.rollout is not None:
                described.append(_describe(loop, loop.rollout, now))
    return described


def _describe(loop: Loop, rollout: LoopRollout, now: float) -> Rollout:
    evidence = evidence_of(rollout.progress, loop.in_flight)
    settings, waits = rollout.settings, rollout.not_before if rollout.not_before > now else None
    known = all(abs(end) < float("inf") for end in evidence.excess)
    plan = {name: getattr(settings, name) for name in ("tolerance", "confidence", "holdout", "least_seconds")}
    return Rollout(
        loop=loop.name,
        rewards=loop.settings.rewards is not None,
        started=rollout.started,
        event=rollout.event,
        status=_status(rollout, evidence),
        sentence=_sentence(rollout, evidence, "loss" if loop.settings.rewards is None else "reward"),
        baseline="policy" if isinstance(settings.baseline, SavedPolicy) else settings.baseline,
        **plan,
        steps=list(settings.steps),
        least_decisions=settings.least_decisions,
        budget=evidence.budget,
        patience=settings.patience,
        webhook=None if settings.webhook is None else settings.webhook.url,
        unsent=len(rollout.unsent),
        step=evidence.step,
        traffic=evidence.traffic,
        limited=evidence.limited,
        judged=evidence.judged,
        in_flight=len(loop.in_flight.tickets),
        learner_decisions=rollout.counts[0],
        baseline_decisions=rollout.counts[1],
        excess=evidence.excess if known else None,
        learner_loss=evidence.learner_loss,
        baseline_loss=evidence.baseline_loss,
        spent=evidence.spent,
        needed=evidence.needed,
        not_before=waits if evidence.status == "waiting" else None,
        moves=list(rollout.moves),
        looks=list(rollout.looks),
    )


def _status(rollout: LoopRollout, evidence: Evidence) -> Status:
    if evidence.status == "rolled back":
        return "aborted" if evidence.moves[-1].reason == "aborted" else "rolled back"
    return "paused" if rollout.paused else evidence.status


def _sentence(rollout: LoopRollout, evidence: Evidence, outcome: Literal["loss", "reward"]) -> str:
    if evidence.status == "rolled back" and evidence.moves[-1].reason == "aborted":
        return "Aborted by its owner. The baseline makes all decisions."
    started = "" if rollout.moves[0].reason == "started" else "This is a new test: earlier evidence does not count. "
    paused = " Paused: the learner can lose traffic, but does not get more." if rollout.paused else ""
    return f"{started}{evidence.sentence(outcome)}{paused}"
