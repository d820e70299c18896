"""Starts, pauses, resumes and aborts the rollouts of loops, and describes them."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Literal

import msgspec

from manul.agents.rollout.rollout_evidence import Evidence, GuardEvidence, evidence_of
from manul.agents.rollout.rollout_progress import COHORT
from manul.service.engine.loop import Loop
from manul.service.engine.loop_rollout import LoopRollout, OwnerAct, check_contexts, check_url
from manul.service.engine.model import Model
from manul.service.engine.webhooks import check_host
from manul.service.errors import Conflict, Unavailable, Unknown
from manul.service.rollout_schema import NewRollout, Rollout, RolloutGuard, Status
from manul.service.store import Event, Transaction

if TYPE_CHECKING:
    from manul.service.engine.engine import Engine

Act = Literal["pause", "resume", "abort"]
# How long the answer to an abort waits for the learner, so that it shows the move; the abort does not.
ABORT_SECONDS = 0.05
ABORTED = "Aborted by its owner. The baseline makes all decisions."


class RolloutControl:
    """What owners do to rollouts. Each act is stored as an event, and applied by the learner in its turn."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def start(self, loop: Loop, settings: NewRollout) -> None:
        """Start a rollout. If it is running with the same settings, nothing changes; other settings start a new test. One that
        has ended starts again only with `restart`."""
        if loop.settings.spend_at_most is not None:
            rule = "has a budget, and a rollout has a baseline that spends money which the loop does not count"
            raise Conflict(f"loop {loop.name!r} {rule}. Create the loop without spend_at_most.", "loop")
        running, again = loop.model.rollout, settings.restart
        settings = msgspec.structs.replace(settings, restart=False)
        if settings.webhook is not None:
            check_url(settings.webhook.url)
            check_host(settings.webhook.url, self._engine.webhook_hosts)
        trial = LoopRollout(loop.settings, settings, event=0, time=self._engine.now(), first=0)
        if loop.model.first is not None:
            check_contexts(trial, loop.model.first)
        ended = running is not None and has_ended(loop.model, running)
        if running is not None and running.settings == settings and not (ended and again):
            return
        if ended and not again:
            raise Conflict(
                "The rollout of this loop has ended, and other settings do not start it again. Send them with restart=true.",
                "restart",
            )
        counts = await asyncio.to_thread(self._engine.store.counts, loop.number)
        await self._store_act(loop, OwnerAct(act="start", settings=settings, first=counts.numbers + 1))

    async def act(self, loop: Loop, act: Act) -> None:
        """Pause, resume or abort the rollout of a loop; nothing changes if it is in that state already."""
        rollout = require_rollout(loop)
        if act == "abort":
            await self._abort(loop, rollout)
        elif has_ended(loop.model, rollout):
            raise Conflict("The rollout has ended. Start it again with restart=true.", "rollout")
        elif rollout.paused != (act == "pause"):
            await self._store_act(loop, OwnerAct(act=act))

    async def _abort(self, loop: Loop, rollout: LoopRollout) -> None:
        """Abort a rollout. It takes effect before it is stored, and neither waits for losses that are written or learned, nor
        for a loop that is paused."""
        if rollout.progress.level < 0 or loop.model.stopped > rollout.event:
            return
        loop.model.stop(rollout.event)

        def add(transaction: Transaction) -> Event:
            event = add_act(transaction, loop.number, OwnerAct(act="abort"), self._engine.now())
            transaction.change_loop(loop.number, stopped=event.number)
            return event

        try:
            event = await self._engine.write(add, urgent=True)
        except Unavailable:
            raise Unavailable(
                "The learner gets no more traffic here, but the abort could not be stored, so that a restart or another replica "
                "would not know of it. Retry until it is."
            ) from None
        loop.model.stop(event.number)
        self._engine.learn(loop, [(event, None)])
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.wrap_future(loop.wait_for(event.number)), ABORT_SECONDS)

    async def end(self, loop: Loop) -> None:
        """End the rollout of a loop: from now on the learner makes all decisions."""
        if loop.model.rollout is not None:
            await self._store_act(loop, OwnerAct(act="end"))

    async def note_sent(self, loop: Loop, rollout: int, moves: int) -> None:
        """Note how many moves of the rollout that an event started the webhook has received."""
        if loop.model.rollout is not None and loop.model.rollout.event == rollout:
            await self._store_act(loop, OwnerAct(act="notified", rollout=rollout, moves=moves))

    async def _store_act(self, loop: Loop, act: OwnerAct) -> None:
        if loop.paused:
            raise Conflict(f"loop {loop.name!r} is paused, and so is its rollout. Resume the loop first.", "loop")
        self._engine.check_learning(loop)
        event = await self._engine.write(lambda transaction: add_act(transaction, loop.number, act, self._engine.now()))
        self._engine.learn(loop, [(event, None)])
        await self._engine.learned(loop, event)


def add_act(transaction: Transaction, loop: int, act: OwnerAct, time: float) -> Event:
    event = transaction.add_events(loop, [Event(0, 0, "rollout", 0.0, time)])[0]
    transaction.add_model(loop, event.number, msgspec.json.encode(act))
    return event


def keep_rollout(transaction: Transaction, loop: Loop, fresh: Loop, time: float) -> None:
    """Start the rollout of a loop again in the one that replaces it, from a snapshot, so that no replica decides without it.

    The loop is deleted already, so that other replicas add no decisions to those in flight.
    """
    loop.read_others(sys.maxsize)
    with loop.model.hold() as model:
        rollout = model.rollout
        if rollout is None:
            return
        # Losses of decisions in flight will not be judged any more, so these count as the worst possible.
        left = COHORT * rollout.progress.allowed(rollout.in_flight.total, rollout.in_flight.worst)
        owed, ended = max(rollout.plan.budget - left, 0.0), has_ended(loop.model, rollout)
    acts = [OwnerAct(act="start", settings=rollout.settings, first=1, owed=owed)]
    worse = ended and not loop.model.is_stopped(rollout) and rollout.progress.moves[-1].reason == "worse"
    acts += [OwnerAct(act="abort", worse=worse)] if ended else [OwnerAct(act="pause")] if rollout.paused else []
    stored = {add_act(transaction, fresh.number, act, time): act for act in acts}
    bodies = {event.number: msgspec.json.encode(act) for event, act in stored.items()}
    fresh.learn([(event, None) for event in stored], bodies.__getitem__)
    transaction.add_snapshot(fresh.number, fresh.model.snapshot(), keep=1)


def has_ended(model: Model, rollout: LoopRollout) -> bool:
    """Whether the baseline makes all decisions for good."""
    return rollout.progress.level < 0 or model.is_stopped(rollout)


def require_rollout(loop: Loop) -> LoopRollout:
    if loop.model.rollout is None:
        raise Unknown(f"loop {loop.name!r} has no rollout. Start one first.", "rollout")
    return loop.model.rollout


def describe(loop: Loop, now: float) -> Rollout:
    with loop.model.hold():
        return _describe(loop, require_rollout(loop), now)


def describe_all(loops: Iterable[Loop], now: float) -> list[Rollout]:
    described = []
    for loop in loops:
        with loop.model.hold() as model:
            if model.rollout is not None:
                described.append(_describe(loop, model.rollout, now))
    return described


def _describe(loop: Loop, rollout: LoopRollout, now: float) -> Rollout:
    evidence = evidence_of(rollout.progress, rollout.in_flight, loop.settings.outcome)
    stopped = loop.model.is_stopped(rollout)
    if stopped:  # also if the learner has not come to it yet
        evidence = replace(evidence, status="rolled back", step=0, traffic=0.0, limited=False, needed=None)
    settings, waits = rollout.settings, rollout.not_before if rollout.not_before > now else None
    known = all(abs(end) < float("inf") for end in evidence.excess)
    return Rollout(
        loop=loop.name,
        rewards=loop.settings.outcome.higher,
        started=rollout.started,
        event=rollout.event,
        status="aborted" if stopped else _status(rollout, evidence),
        sentence=ABORTED if stopped else _sentence(rollout, evidence),
        baseline=rollout.stated_baseline,
        **asdict(rollout.plan) | {"budget": evidence.budget},
        least_seconds=settings.least_seconds,
        webhook=None if settings.webhook is None else settings.webhook.url,
        unsent=len(rollout.unsent),
        step=evidence.step,
        traffic=evidence.traffic,
        limited=evidence.limited,
        judged=evidence.judged,
        in_flight=len(rollout.in_flight.tickets),
        learner_decisions=rollout.counts[0],
        baseline_decisions=rollout.counts[1],
        learner_left_out=evidence.left_out[0],
        baseline_left_out=evidence.left_out[1],
        uneven=evidence.uneven,
        excess=evidence.excess if known else None,
        learner_loss=evidence.learner_loss,
        baseline_loss=evidence.baseline_loss,
        spent=evidence.spent,
        needed=evidence.needed,
        not_before=waits if evidence.status == "waiting" else None,
        guards=[_guard(each) for each in evidence.guards],
        moves=list(rollout.moves),
        looks=list(rollout.looks),
    )


def _guard(evidence: GuardEvidence) -> RolloutGuard:
    known = all(abs(end) < float("inf") for end in evidence.excess)
    learner_left_out, baseline_left_out = evidence.left_out
    return RolloutGuard(
        name=evidence.name,
        rule=evidence.rule,
        state=evidence.state,
        learner=evidence.learner,
        baseline=evidence.baseline,
        excess=evidence.excess if known else None,
        learner_left_out=learner_left_out,
        baseline_left_out=baseline_left_out,
        beyond=evidence.beyond,
    )


def _status(rollout: LoopRollout, evidence: Evidence) -> Status:
    if evidence.status == "rolled back":
        return "aborted" if evidence.moves[-1].reason == "aborted" else "rolled back"
    return "paused" if rollout.paused else evidence.status


def _sentence(rollout: LoopRollout, evidence: Evidence) -> str:
    if evidence.status == "rolled back" and evidence.moves[-1].reason == "aborted":
        return ABORTED
    started = "" if rollout.moves[0].reason == "started" else "This is a new test: earlier evidence does not count. "
    paused = " Paused: the learner can lose traffic, but does not get more." if rollout.paused else ""
    return f"{started}{evidence}{paused}"
