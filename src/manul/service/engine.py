"""The service without HTTP: loops that decide at once, are durable before they answer, and learn behind."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import numpy as np

from manul.actions import checked_range
from manul.errors import ManulError
from manul.outcomes import check_outcomes
from manul.service import agents, schema
from manul.service.configuration import Limits
from manul.service.following import Following
from manul.service.history import RECENT
from manul.service.learner import Learner
from manul.service.loop import Fact, Loop, refusal
from manul.service.operations import OWN, EndWaits, Future, WriteBlock, WriteDecisions, WriteLosses, decision, id_of
from manul.service.problems import Conflict, Invalid, Unknown
from manul.service.store import Event, LoopRow, Store, StoreFailure, Transaction
from manul.service.store.blocks import Decided, in_columns
from manul.service.writer import Answers, Operation, Task, Writer, answered

ENDED_AT_ONCE = 2000


class Engine:
    """All loops of one store. Every method is called in the thread of the event loop that started it."""

    def __init__(
        self,
        store: Store,
        limits: Limits | None = None,
        *,
        clock: Callable[[], float] = time.time,
        snapshot_seconds: float = 60.0,
        snapshot_events: int = 200_000,
    ) -> None:
        self.store, self.limits = store, limits or Limits()
        self._clock, self._latest = clock, 0.0
        self.writer = Writer(store)
        self.loops: dict[str, Loop] = {}
        replicas = store.replicas
        self._following = None if replicas is None else Following(store, replicas, self.loops, self.restored)
        self.learner = Learner(
            store,
            self.writer,
            lambda: list(self.loops.values()),
            seconds=snapshot_seconds,
            events=snapshot_events,
            following=self._following,
        )
        self._pending: dict[str, list[tuple[Decided, Future]]] = {}
        self._writing = 0
        self._sweeper: asyncio.Task[None] | None = None
        self.ready = False

    async def start(self) -> None:
        """Go on where the store stopped: the newest snapshots, then the events since."""
        self._events = asyncio.get_running_loop()
        self.writer.deliver = self._deliver
        self.writer.start()
        for row in self.store.loops():
            self.loops[row.name] = await asyncio.to_thread(self.recovered, row)
        self.learner.start()
        self._sweeper = asyncio.create_task(self._sweep())
        self.ready = True

    async def stop(self) -> None:
        """Finish what was asked for, learn what is at hand, keep snapshots, close the store."""
        self.ready = False
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._flush()
        await asyncio.to_thread(self.learner.stop)
        await asyncio.to_thread(self.writer.stop)
        self.store.close()

    def healthy(self) -> str | None:
        """Why the service cannot do its work; None if it can."""
        if not self.ready:
            return "it starts or stops"
        if not self.writer.is_alive():
            return "the thread that writes has died"
        if not self.learner.is_alive():
            return "the thread that learns has died"
        return "the store takes no writes" if self.writer.failing else None

    def loop(self, name: str) -> Loop:
        """The loop of a name."""
        if name not in self.loops and self._following is not None:
            self._following.meet()
        try:
            return self.loops[name]
        except KeyError:
            raise Unknown(
                f"loop must be one that was created; got {name!r}. Create it with POST /v1/loops.", "loop"
            ) from None

    async def create(self, settings: schema.NewLoop) -> Loop:
        """A new loop; the same settings again give the loop that is there."""
        check_settings(settings)
        agents.made(settings)
        existing = self.loops.get(settings.name)
        if existing is not None:
            if existing.settings == settings:
                return existing
            raise Conflict(
                f"name must be new; got {settings.name!r}, a loop with other settings. Choose another name.", "name"
            )
        if len(self.loops) >= self.limits.loops:
            raise Conflict(f"loops must be at most {self.limits.loops}; there are as many. Raise --max-loops.", "name")
        body, created = msgspec.json.encode(settings), self.now()
        number = await self.write(lambda tx: tx.add_loop(settings.name, body, created, apprentice=settings.apprentice))
        if number is None:
            if self._following is not None:
                self._following.meet()
            return await self.create(settings)
        row = LoopRow(
            number=number,
            name=settings.name,
            settings=body,
            created=created,
            paused=False,
            apprentice=settings.apprentice,
        )
        loop = self.loops.setdefault(settings.name, Loop(row))
        loop.caught_up(0)
        return loop

    def decide(self, loop: Loop, asked: schema.NewDecision) -> Future:
        """A future of the stored decision."""
        self._check_deciding(loop)
        context: Any = asked.context if asked.context is not None else []
        number = self.store.reserve(loop.number, 1)
        key = number if asked.id is None else agents.key(loop.name, asked.id)
        action, density, model = loop.draw(key, context, asked.within)
        decided = Decided(number, asked.id, context, asked.within, action, density, self.now(), model)
        return self._soon(loop, decided)

    async def decide_many(self, loop: Loop, asked: Sequence[schema.NewDecision]) -> list[schema.Decision]:
        """All decisions, stored together."""
        self._check_deciding(loop)
        contexts: list[Any] = [each.context if each.context is not None else [] for each in asked]
        withins = [each.within for each in asked]
        try:
            rows = agents.matrix(contexts)
        except ManulError as error:
            raise refusal(error) from None
        first, now = self.store.reserve(loop.number, len(asked)), self.now()
        numbers, named = range(first, first + len(asked)), any(each.id is not None for each in asked)
        keys: Sequence[int] = numbers
        if named:
            given = zip(numbers, asked, strict=True)
            keys = [number if each.id is None else agents.key(loop.name, each.id) for number, each in given]
        actions, densities, model = loop.draw_many(keys, contexts, rows, withins)
        future = self._events.create_future()
        if not named:
            columns = (numbers, actions, densities, contexts if rows is None else rows, withins)
            self._watch(loop, future, len(asked), now)
            self._submit(loop, WriteBlock(loop, in_columns(now, model, *columns), future), future)
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
        self._submit(loop, WriteDecisions(loop, decided, [future], together=True, done=lambda: None), future)
        return [decision(each) for each in await future]

    async def observe(self, loop: Loop, seen: schema.NewObservation) -> Decided:
        """Keep what the caller did by itself, and its loss where it came with one."""
        context: Any = seen.context if seen.context is not None else []
        low, high = loop.settings.actions if seen.within is None else seen.within
        loss = loop.settings.losses[0] if seen.loss is None else seen.loss
        loop.check(context, seen.within)
        try:
            values = (seen.action, seen.density or 1.0, loss, low, high)
            check_outcomes(*(_array(value) for value in values), loss_range=loop.settings.losses)
        except ManulError as error:
            raise refusal(error, str(error).split(" ", 1)[0]) from None
        number = self.store.reserve(loop.number, 1)
        decided = Decided(
            number, seen.id, context, seen.within, seen.action, seen.density, self.now(), loop.model, observed=True
        )
        stored: Decided = await self._soon(loop, decided)
        if seen.loss is not None:
            await self.lose(loop, [schema.LossOf(id=id_of(stored), loss=seen.loss, key=seen.id)], alone=True)
        return stored

    def lose(self, loop: Loop, losses: Sequence[schema.LossOf], *, alone: bool = False) -> Future:
        """A future of the answers to losses, all of them durable."""
        low, high = loop.settings.losses
        for place, each in enumerate(losses):
            if not low <= each.loss <= high:
                field = "loss" if alone else f"losses[{place}].loss"
                raise Invalid(
                    f"loss must be in [{low:g}, {high:g}]; got {each.loss:g}. Declare the range with losses.", field
                )
        future = self._events.create_future()
        self.writer.submit(WriteLosses(loop, losses, self.now(), future, self._learn, alone=alone))
        return future

    async def change(self, loop: Loop, *, paused: bool | None = None, apprentice: bool | None = None) -> None:
        """Pause, resume or promote a loop."""
        await self.write(lambda tx: tx.change_loop(loop.number, paused=paused, apprentice=apprentice))
        loop.paused = loop.paused if paused is None else paused
        loop.apprentice = loop.apprentice if apprentice is None else apprentice
        self.learner.wake()

    async def replace(self, loop: Loop, model: bytes) -> None:
        """Put an imported model in the place of a loop's own, once it has been seen to fit."""
        if loop.paused:
            raise Conflict(f"loop must not be paused to take a model; {loop.name!r} is. Resume it first.", "loop")
        await asyncio.to_thread(agents.checked, model, loop.settings, loop.first)

        def add(transaction: Transaction) -> Event:
            event = transaction.add_events(loop.number, [Event(0, 0, "import", 0.0, self.now())])[0]
            transaction.add_model(loop.number, event.number, model)
            return event

        event = await self.write(add)
        self._learn(loop, [(event, None)])
        while loop.model < event.number and not loop.paused:
            await asyncio.sleep(0.005)

    def status(self, loop: Loop) -> schema.Status:
        """A loop as it is now."""
        counts, settings = self.store.counts(loop.number), loop.settings
        agent = schema.Auto() if isinstance(settings.agent, str) else settings.agent
        return schema.Status(
            name=loop.name,
            actions=settings.actions,
            losses=settings.losses,
            agent=msgspec.to_builtins(agent),
            combine=settings.combine,
            wait=settings.wait,
            default_loss=settings.default_loss,
            apprentice=loop.apprentice,
            paused=loop.paused,
            created=loop.created,
            decisions=counts.decisions,
            learned=loop.learned,
            waiting=counts.decisions - counts.outcomes,
            mean_loss=counts.loss_sum / counts.outcomes if counts.outcomes else None,
            late=counts.late,
            defaulted=counts.defaulted,
            refused=loop.refused,
            events=counts.events,
            model=loop.model,
            width=loop.agent.width,
        )

    def now(self) -> float:
        """The time, which never goes back."""
        self._latest = max(self._latest, self._clock())
        return self._latest

    async def write(self, function: Callable[[Transaction], Any]) -> Any:
        """Have a function of the transaction written."""
        task: Task[Any] = Task(function)
        self.writer.submit(task)
        return await asyncio.wrap_future(task.future)

    def end_waits(self) -> None:
        """Settle the decisions whose wait has ended; one replica does it for all."""
        if not self.learner.leads():
            return
        for loop in self.loops.values():
            if loop.settings.wait is not None:
                self.writer.submit(EndWaits(loop, self.now(), ENDED_AT_ONCE, self._learn, self.end_waits))

    async def _sweep(self) -> None:
        while True:
            self.end_waits()
            waits = [loop.settings.wait for loop in self.loops.values() if loop.settings.wait is not None]
            await asyncio.sleep(min(1.0, max(0.05, min(waits, default=1.0) / 4)))

    def recovered(self, row: LoopRow) -> Loop:
        """A loop as the store has it: its newest snapshot, and the events since."""
        loop = self.restored(row)
        self.learner.catch_up(loop)
        return loop

    def restored(self, row: LoopRow) -> Loop:
        """A loop as its newest snapshot has it."""
        loop = Loop(row)
        snapshot = self.store.snapshot(row.number)
        if snapshot is not None:
            loop.restore(snapshot)
            loop.history.meet(self.store.events(row.number, max(0, snapshot.event - RECENT), RECENT))
        loop.meet_first(self.store)
        self._latest = max(self._latest, self.store.counts(row.number).latest)
        return loop

    def _check_deciding(self, loop: Loop) -> None:
        if loop.apprentice:
            raise Conflict(
                f"loop must be promoted to decide; {loop.name!r} is an apprentice. Report observations, or promote it.",
                "loop",
            )

    def _soon(self, loop: Loop, decided: Decided) -> Future:
        """What is decided in one turn of the event loop, or while others are being written, is written together."""
        future = self._events.create_future()
        if not self._pending and not self._writing:
            self._events.call_soon(self._flush)
        self._pending.setdefault(loop.name, []).append((decided, future))
        return future

    def _flush(self) -> None:
        pending, self._pending = self._pending, {}
        for name, waiting in pending.items():
            loop, decided, futures = self.loops[name], [each for each, _ in waiting], [future for _, future in waiting]
            self._writing += 1
            operation = WriteDecisions(loop, decided, futures, together=False, done=self._written)
            self._watch(loop, futures[0], len(decided), decided[0].time)
            self._submit(loop, operation, futures[0], quick=True)

    def _written(self) -> None:
        self._writing -= 1
        if self._pending and not self._writing:
            self._flush()

    def _submit(self, loop: Loop, operation: Operation, written: Future, *, quick: bool = False) -> None:
        if loop.first is None:
            written.add_done_callback(lambda _: self._met(loop))
        if not (quick and self.writer.at_once(operation)):
            self.writer.submit(operation)

    def _watch(self, loop: Loop, written: Future, count: int, time: float) -> None:
        def durable(future: Future) -> None:
            if not future.cancelled() and future.exception() is None:
                now = self.now()
                loop.traffic.add(now, count, now - time)

        written.add_done_callback(durable)

    def _met(self, loop: Loop) -> None:
        """The first decision that is durable says what contexts look like; one that is not says nothing."""
        if loop.first is None:
            try:
                loop.meet_first(self.store)
            except StoreFailure:
                loop.meet(None)

    def _learn(self, loop: Loop, facts: list[Fact]) -> None:
        if self._following is None:
            loop.enqueue(facts)
        self.learner.wake()

    def _deliver(self, answers: Answers) -> None:
        try:
            self._events.call_soon_threadsafe(answered, answers)
        except RuntimeError:
            answered(answers)


def check_settings(settings: schema.NewLoop) -> None:
    """Refuses settings of a loop that cannot work together."""
    for name in ("actions", "losses"):
        try:
            low, high = checked_range(name, getattr(settings, name))
        except ManulError as error:
            raise Invalid(str(error), name) from None
    if settings.default_loss is not None and not low <= settings.default_loss <= high:
        raise Invalid(
            f"default_loss must be in [{low:g}, {high:g}], the losses; got {settings.default_loss:g}. Choose one inside.",
            "default_loss",
        )
    if (settings.wait is None) != (settings.default_loss is None):
        raise Invalid("wait and default_loss must come together; got one of them. Add the other.", "wait")
    if settings.combine != "first" and settings.wait is None:
        raise Invalid(
            f"wait must be given with combine={settings.combine!r}, as losses combine at its end; got none. Add it.",
            "wait",
        )


def _array(value: float) -> Any:
    return np.array([value], np.float64)
