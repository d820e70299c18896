"""Decisions: drawn in the event loop, and answered as soon as the writer has stored them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence, Sized

from manul.actions.decision import Decisions
from manul.errors import ManulError
from manul.service import wire
from manul.service.configuration import Limits
from manul.service.engine import models
from manul.service.engine.admission import check_context
from manul.service.engine.group_commit import Writer
from manul.service.engine.loop import Fact, Loop, refusal
from manul.service.engine.losses import stated_loss
from manul.service.engine.write_operations import (
    Future,
    WriteBlock,
    WriteDecisions,
    WriteVoids,
    decision_answer,
    own_id,
)
from manul.service.errors import Conflict, Invalid
from manul.service.store import Store
from manul.service.store.blocks import DecisionRow, pack_columns


class Decider:
    """Draws decisions and submits them to the writer. Only decision numbers may have to be read from the store, in a thread."""

    def __init__(
        self,
        store: Store,
        writer: Writer,
        limits: Limits,
        now: Callable[[], float],
        learn: Callable[[Loop, list[Fact]], None],
    ) -> None:
        self._store, self._writer, self._limits, self._now, self._learn = store, writer, limits, now, learn
        self._open: dict[int, WriteDecisions] = {}
        self._refills: dict[int, asyncio.Task[None]] = {}
        self._needed: dict[int, int] = {}

    def decide(self, loop: Loop, request: wire.NewDecision) -> Future | None:
        """A future of the stored decision; None if decision numbers have to be read from the store first."""
        check_deciding(loop)
        number = self._take(loop, 1)
        return None if number is None else self._decide(loop, request, number)

    async def decide_later(self, loop: Loop, request: wire.NewDecision) -> DecisionRow:
        """The stored decision; reads decision numbers from the store if necessary."""
        check_deciding(loop)
        decision: DecisionRow = await self._decide(loop, request, await self._reserve(loop, 1))
        return decision

    def _decide(self, loop: Loop, request: wire.NewDecision, number: int) -> Future:
        try:
            return self._enqueue(loop, self._draw(loop, request, number))
        except Exception:
            loop.void([number])
            raise

    def _draw(self, loop: Loop, request: wire.NewDecision, number: int) -> DecisionRow:
        context = loop.context(request.context)
        check_context(loop, context, self._limits)
        loop.space.check_within(request.within)
        key = number if request.id is None else models.key(loop.name, request.id)
        drawn, model, ticket = loop.draw(number, key, context, request.within, request.action)
        decided = (request.within, drawn.action, drawn.density, self._now(), model)
        return DecisionRow(
            number,
            request.id,
            context,
            *decided,
            floor=drawn.floor,
            densities=drawn.densities,
            ticket=ticket,
            epoch=loop.epoch,
        )

    def _take(self, loop: Loop, count: int) -> int | None:
        """Decision numbers, if they are at hand; a rollout needs them in the order of the decisions of all replicas."""
        self._void_dropped(loop)
        return self._store.reserve(loop.number, count)

    def _void_dropped(self, loop: Loop) -> None:
        for numbers in self._store.keep_numbers(loop.number, ahead=loop.rollout is None):
            loop.void(numbers)

    def store_voids(self, loops: Iterable[Loop]) -> None:
        """Store which numbers no decision has got, also if no further decision is made here."""
        for loop in loops:
            self._void_dropped(loop)
            if loop.voids:
                self._writer.submit(WriteVoids(loop, self._now(), self._learn))

    async def _reserve(self, loop: Loop, count: int) -> int:
        """Reserve decision numbers, reading more from the store if necessary."""
        self._needed[loop.number] = self._needed.get(loop.number, 0) + count
        try:
            while (number := self._take(loop, count)) is None:
                await asyncio.shield(self._refill(loop.number))
        finally:
            self._needed[loop.number] -= count
        return number

    def _refill(self, loop: int) -> asyncio.Task[None]:
        """All decisions of a loop that need numbers share one request to the store."""
        task = self._refills.get(loop)
        if task is None or task.done():  # awaiting one that is done would not let its callback remove it
            refill = asyncio.to_thread(self._store.refill, loop, self._needed[loop])
            task = self._refills[loop] = asyncio.create_task(refill)
            task.add_done_callback(self._end_refill)
        return task

    def _end_refill(self, task: asyncio.Task[None]) -> None:
        self._refills = {loop: each for loop, each in self._refills.items() if each is not task}
        if not task.cancelled():
            task.exception()

    async def decide_many(self, loop: Loop, requests: Sequence[wire.NewDecision]) -> list[wire.Decision]:
        """Decide in many contexts; the decisions are stored together."""
        check_deciding(loop)
        contexts = [loop.context(each.context) for each in requests]
        for place, context in enumerate(contexts):
            check_context(loop, context, self._limits, f"decisions[{place}].context")
        withins = [each.within for each in requests]
        for within in withins:
            loop.space.check_within(within)
        if loop.rollout is not None:
            return await self._decide_by_rollout(loop, requests)
        try:
            rows = models.matrix(contexts)
        except ManulError as error:
            raise refusal(error) from None
        first, now = await self._reserve(loop, len(requests)), self._now()
        numbers, named = range(first, first + len(requests)), any(each.id is not None for each in requests)
        keys: Sequence[int] = numbers
        if named:
            pairs = zip(numbers, requests, strict=True)
            keys = [number if each.id is None else models.key(loop.name, each.id) for number, each in pairs]
        decisions, model = loop.draw_many(keys, contexts, rows, withins)
        future = asyncio.get_running_loop().create_future()
        self._measure(loop, future, requests, now)
        if not named and isinstance(decisions, Decisions):
            actions, densities = decisions.actions, decisions.densities
            columns = (numbers, actions, densities, contexts if rows is None else rows, withins, decisions.floors)
            block = pack_columns(now, model, *columns, epoch=loop.epoch)
            self._writer.submit(WriteBlock(loop, block, future, self._note_first))
            await future
            drawn = zip(numbers, actions.tolist(), densities.tolist(), strict=True)
            return [
                wire.Decision(id=own_id(number, loop.epoch), action=action, density=density, model=model)
                for number, action, density in drawn
            ]
        rows_to_store = [
            DecisionRow(
                number,
                each.id,
                context,
                each.within,
                action,
                density,
                now,
                model,
                floor=floor,
                densities=by_knob,
                epoch=loop.epoch,
            )
            for number, each, context, (action, density, floor, by_knob) in zip(
                numbers, requests, contexts, models.split(decisions), strict=True
            )
        ]
        self._writer.submit(WriteDecisions(loop, rows_to_store, [future], self._note_first, self._learn, together=True))
        return [decision_answer(each) for each in await future]

    async def _decide_by_rollout(self, loop: Loop, requests: Sequence[wire.NewDecision]) -> list[wire.Decision]:
        """Decide one by one, because each decision changes what the guarantee leaves for the next one."""
        first = await self._reserve(loop, len(requests))
        numbers = range(first, first + len(requests))
        try:
            rows = [self._draw(loop, each, number) for number, each in zip(numbers, requests, strict=True)]
        except Exception:
            loop.void(numbers)
            raise
        future = asyncio.get_running_loop().create_future()
        self._measure(loop, future, rows, rows[0].time)
        self._writer.submit(WriteDecisions(loop, rows, [future], self._note_first, self._learn, together=True))
        return [decision_answer(each) for each in await future]

    async def observe(self, loop: Loop, observation: wire.NewObservation) -> DecisionRow:
        """Store an action that the caller chose itself."""
        context = loop.context(observation.context)
        check_context(loop, context, self._limits)
        if observation.loss is not None or observation.reward is not None:
            stated_loss(loop.settings.outcome, observation)
        loop.space.check_within(observation.within)
        loop.check(context, observation.within)
        try:
            action = loop.space.check_action(observation.action, observation.within)
            density = loop.space.check_density(observation.density, observation.densities)
        except ManulError as error:
            raise refusal(error) from None
        if observation.floor is not None and not observation.floor <= (density or 0.0):
            raise Invalid(f"floor must be at most the density, got {observation.floor:g}.", "floor")
        number = await self._reserve(loop, 1)
        row = DecisionRow(
            number,
            observation.id,
            context,
            observation.within,
            action,
            density,
            self._now(),
            loop.model,
            observed=True,
            floor=observation.floor,
            densities=observation.densities,
            epoch=loop.epoch,
        )
        stored: DecisionRow = await self._enqueue(loop, row)
        return stored

    def _enqueue(self, loop: Loop, decision: DecisionRow) -> Future:
        """Decisions that are made before the writer begins its next transaction are written together."""
        future = asyncio.get_running_loop().create_future()
        group = self._open.get(loop.number)
        if group is None or not group.add(decision, future):
            decisions = [decision]
            group = self._open[loop.number] = WriteDecisions(
                loop, decisions, [future], self._note_first, self._learn, together=False
            )
            self._measure(loop, future, decisions, decision.time)
            self._writer.submit(group)
        return future

    def _measure(self, loop: Loop, written: Future, decided: Sized, time: float) -> None:
        def add(future: Future) -> None:
            if not future.cancelled() and future.exception() is None:
                now = self._now()
                loop.traffic.add(now, len(decided), now - time)

        written.add_done_callback(add)

    def _note_first(self, loop: Loop) -> None:
        """In the writer's thread: the first stored decision determines the shape of contexts."""
        if loop.first is None:
            loop.read_first(self._store)


def check_deciding(loop: Loop) -> None:
    if loop.apprentice and loop.rollout is None:
        raise Conflict(
            f"loop {loop.name!r} is an apprentice and does not decide. Report observations, start a rollout, or promote it.",
            "loop",
        )
