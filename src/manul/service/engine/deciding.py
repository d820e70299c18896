"""Decisions: drawn at once in the event loop, and answered once the writer has made them durable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np

from manul.errors import ManulError
from manul.service import schema
from manul.service.configuration import Limits
from manul.service.engine import models
from manul.service.engine.admission import check_context
from manul.service.engine.loop import Loop, refusal
from manul.service.engine.writer import Writer
from manul.service.engine.writes import OWN, Future, WriteBlock, WriteDecisions, decision
from manul.service.errors import Conflict
from manul.service.store import Store
from manul.service.store.blocks import Decided, in_columns
from manul.utils.validation import check_outcomes


class Decider:
    """Draws decisions and has them written; nothing here waits for the store but for decision numbers, in a thread."""

    def __init__(self, store: Store, writer: Writer, limits: Limits, now: Callable[[], float]) -> None:
        self._store, self._writer, self._limits, self._now = store, writer, limits, now
        self._pending: dict[int, tuple[Loop, list[tuple[Decided, Future]]]] = {}
        self._groups = 0
        self._refills: dict[int, asyncio.Task[None]] = {}

    def decide(self, loop: Loop, asked: schema.NewDecision) -> Future | None:
        """A future of the stored decision; None if the store has to give numbers first."""
        check_deciding(loop)
        number = self._store.reserve(loop.number, 1)
        return None if number is None else self._decide(loop, asked, number)

    async def decide_later(self, loop: Loop, asked: schema.NewDecision) -> Decided:
        """The stored decision, also if the store has to give numbers first."""
        check_deciding(loop)
        decided: Decided = await self._decide(loop, asked, await self._reserve(loop, 1))
        return decided

    def _decide(self, loop: Loop, asked: schema.NewDecision, number: int) -> Future:
        context = loop.context(asked.context)
        check_context(loop, context, self._limits)
        key = number if asked.id is None else models.key(loop.name, asked.id)
        action, density, model = loop.draw(key, context, asked.within)
        return self._soon(loop, Decided(number, asked.id, context, asked.within, action, density, self._now(), model))

    async def _reserve(self, loop: Loop, count: int) -> int:
        """Decision numbers, from the store if there are not enough at hand."""
        while (number := self._store.reserve(loop.number, count)) is None:
            await asyncio.shield(self._refill(loop.number, count))
        return number

    def _refill(self, loop: int, count: int) -> asyncio.Task[None]:
        """All who need numbers of a loop wait for one answer of the store."""
        task = self._refills.get(loop)
        if task is None:
            task = self._refills[loop] = asyncio.create_task(asyncio.to_thread(self._store.refill, loop, count))
            task.add_done_callback(self._refilled)
        return task

    def _refilled(self, task: asyncio.Task[None]) -> None:
        self._refills = {loop: each for loop, each in self._refills.items() if each is not task}
        if not task.cancelled():
            task.exception()

    async def decide_many(self, loop: Loop, asked: Sequence[schema.NewDecision]) -> list[schema.Decision]:
        """All decisions, stored together."""
        check_deciding(loop)
        contexts = [loop.context(each.context) for each in asked]
        for place, context in enumerate(contexts):
            check_context(loop, context, self._limits, f"decisions[{place}].context")
        withins = [each.within for each in asked]
        try:
            rows = models.matrix(contexts)
        except ManulError as error:
            raise refusal(error) from None
        first, now = await self._reserve(loop, len(asked)), self._now()
        numbers, named = range(first, first + len(asked)), any(each.id is not None for each in asked)
        keys: Sequence[int] = numbers
        if named:
            given = zip(numbers, asked, strict=True)
            keys = [number if each.id is None else models.key(loop.name, each.id) for number, each in given]
        actions, densities, model = loop.draw_many(keys, contexts, rows, withins)
        future = asyncio.get_running_loop().create_future()
        if not named:
            columns = (numbers, actions, densities, contexts if rows is None else rows, withins)
            self._watch(loop, future, len(asked), now)
            self._writer.submit(WriteBlock(loop, in_columns(now, model, *columns), future, self._begun))
            await future
            drawn = zip(numbers, actions.tolist(), densities.tolist(), strict=True)
            return [schema.Decision(id=f"{OWN}{n}", action=a, density=d, model=model) for n, a, d in drawn]
        decided = [
            Decided(number, each.id, context, each.within, action, density, now, model)
            for number, each, context, action, density in zip(
                numbers, asked, contexts, actions.tolist(), densities.tolist(), strict=True
            )
        ]
        self._watch(loop, future, len(asked), now)
        self._writer.submit(WriteDecisions(loop, decided, [future], self._begun, together=True))
        return [decision(each) for each in await future]

    async def observe(self, loop: Loop, seen: schema.NewObservation) -> Decided:
        """Keep what the caller did by itself."""
        context = loop.context(seen.context)
        check_context(loop, context, self._limits)
        low, high = loop.settings.actions if seen.within is None else seen.within
        loss = loop.settings.losses[0] if seen.loss is None else seen.loss
        loop.check(context, seen.within)
        try:
            values = (seen.action, seen.density or 1.0, loss, low, high)
            check_outcomes(*(np.array([value], np.float64) for value in values), loss_range=loop.settings.losses)
        except ManulError as error:
            raise refusal(error) from None
        number = await self._reserve(loop, 1)
        decided = Decided(
            number, seen.id, context, seen.within, seen.action, seen.density, self._now(), loop.model, observed=True
        )
        stored: Decided = await self._soon(loop, decided)
        return stored

    def _soon(self, loop: Loop, decided: Decided) -> Future:
        """What is decided in one turn of the event loop, or while others are being written, is written together."""
        future = asyncio.get_running_loop().create_future()
        if not self._pending and not self._groups:
            asyncio.get_running_loop().call_soon(self.flush)
        self._pending.setdefault(loop.number, (loop, []))[1].append((decided, future))
        return future

    def flush(self) -> None:
        """Have everything written that has been decided."""
        pending, self._pending = self._pending, {}
        for loop, waiting in pending.values():
            decided, futures = [each for each, _ in waiting], [future for _, future in waiting]
            self._groups += 1
            operation = WriteDecisions(loop, decided, futures, self._begun, together=False, done=self._written)
            self._watch(loop, futures[0], len(decided), decided[0].time)
            self._writer.submit(operation)

    def _written(self) -> None:
        self._groups -= 1
        if self._pending and not self._groups:
            self.flush()

    def _watch(self, loop: Loop, written: Future, count: int, time: float) -> None:
        def durable(future: Future) -> None:
            if not future.cancelled() and future.exception() is None:
                now = self._now()
                loop.traffic.add(now, count, now - time)

        written.add_done_callback(durable)

    def _begun(self, loop: Loop) -> None:
        """In the writer's thread: the first decision that is durable says what contexts look like."""
        if loop.first is None:
            loop.meet_first(self._store)


def check_deciding(loop: Loop) -> None:
    """Refuses to decide for a loop whose caller decides."""
    if loop.apprentice:
        raise Conflict(
            f"loop must be promoted to decide; {loop.name!r} is an apprentice. Report observations, or promote it.",
            "loop",
        )
