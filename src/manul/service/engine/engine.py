"""The service without HTTP: loops that decide at once, are durable before they answer, and learn behind."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from manul.service import schema
from manul.service.configuration import Limits
from manul.service.engine import models as agents
from manul.service.engine.admission import check_settings
from manul.service.engine.clock import SteadyClock
from manul.service.engine.deciding import Decider
from manul.service.engine.learner import Learner
from manul.service.engine.loop import Fact, Loop
from manul.service.engine.recovery import restored
from manul.service.engine.replica import Following
from manul.service.engine.writer import Answers, Task, Writer, answered
from manul.service.engine.writes import EndWaits, Future, Purge, WriteLosses, id_of, resolve
from manul.service.errors import Conflict, Invalid, Problem, Unavailable, Unknown
from manul.service.loop_settings import NewLoop
from manul.service.store import Event, LoopRow, Store, StoreFailure, Transaction
from manul.service.store.blocks import Decided

log = logging.getLogger("manul.service")
# Decisions whose waits end in one transaction, rows of deleted loops that one removes, and the seconds that threads get to
# finish when the service stops: everything acknowledged is durable already.
ENDED_AT_ONCE, PURGED_AT_ONCE, PATIENCE = 2000, 2000, 6.0


class Engine:
    """All loops of one store. Every method is called in the thread of the event loop that started it."""

    def __init__(
        self,
        store: Store,
        limits: Limits | None = None,
        *,
        clock: Callable[[], float] | None = None,
        snapshot_seconds: float = 60.0,
        snapshot_events: int = 200_000,
    ) -> None:
        self.store, self.limits = store, limits or Limits()
        self._clock, self._ahead = clock or SteadyClock(), 0.0
        self.writer = Writer(store)
        self.loops: dict[str, Loop] = {}
        self.broken: dict[str, LoopRow] = {}
        replicas = store.replicas
        self._following = None if replicas is None else Following(store, replicas, self)
        self.learner = Learner(
            store,
            self.writer,
            lambda: list(self.loops.values()),
            seconds=snapshot_seconds,
            events=snapshot_events,
            following=self._following,
        )
        self._decider = Decider(store, self.writer, self.limits, self.now)
        self._purging = True
        self._sweeper: asyncio.Task[None] | None = None
        self.ready = False

    async def start(self) -> None:
        """Go on where the store stopped: the newest snapshots, then the events since."""
        self._events = asyncio.get_running_loop()
        self.writer.deliver = self._deliver
        self.writer.start()
        for row in await asyncio.to_thread(self.store.loops):
            await asyncio.to_thread(self.take_up, row, self.recovered)
        self.learner.start()
        self._sweeper = asyncio.create_task(self._sweep())
        self.ready = True

    def take_up(self, row: LoopRow, make: Callable[[LoopRow], Loop] | None = None) -> None:
        """Serve a loop; one that cannot be read is out of service, and keeps no other from being served."""
        try:
            self.loops[row.name] = (make or self.restored)(row)
        except StoreFailure:
            raise
        except Exception:
            log.exception("a loop cannot be read and is out of service", extra={"loop": row.name})
            self.broken[row.name] = row

    async def stop(self) -> None:
        """Finish what was asked for, learn what is at hand, keep snapshots, close the store."""
        self.ready = False
        if self._sweeper is not None:
            self._sweeper.cancel()
        self._decider.flush()
        for loop in list(self.loops.values()):
            loop.stop_waiting()
        await self._finish_threads()

    async def _finish_threads(self) -> None:
        """Wait for the threads, but not for ever: a store that hangs keeps nothing alive."""
        done = self._events.create_future()

        def finish() -> None:
            self.learner.stop()
            self.writer.stop()
            self.store.close()
            self._events.call_soon_threadsafe(resolve, done, None)

        threading.Thread(target=finish, name="manul-stop", daemon=True).start()
        try:
            await asyncio.wait_for(done, PATIENCE)
        except TimeoutError:
            log.error("the store hangs; stopping without the last snapshots, which the next start makes up for")

    def trouble(self) -> str | None:
        """Why the service cannot work as it should; None if it can."""
        if not self.ready:
            return "the service is starting or stopping"
        for thread in (self.writer, self.learner):
            if not thread.is_alive():
                return f"the {thread.name.removeprefix('manul-')} has stopped"
        if self.writer.failing:
            return "the store cannot be written to"
        if self.learner.failing:
            return f"learning fails for {', '.join(self.learner.failing)}"
        return None

    def loop(self, name: str) -> Loop:
        """The loop of a name, if this replica knows it; see `find`."""
        try:
            return self.loops[name]
        except KeyError:
            raise self._unknown(name) from None

    async def find(self, name: str) -> Loop:
        """The loop of a name, which another replica may have made a moment ago."""
        if name not in self.loops and self._following is not None:
            await asyncio.to_thread(self._following.meet)
        return self.loop(name)

    def _unknown(self, name: str) -> Problem:
        if name in self.broken:
            return Unavailable(
                f"loop {name!r} is out of service: its settings cannot be read. See the server log.", "loop"
            )
        return Unknown(f"loop {name!r} does not exist. Create it with POST /v1/loops.", "loop")

    def _known(self, name: str) -> bool:
        return name in self.loops or self._following is None

    async def create(self, settings: NewLoop) -> Loop:
        """A new loop; the same settings again give the loop that is there."""
        check_settings(settings)
        agents.make_agent(settings)
        existing = self.loops.get(settings.name)
        if existing is not None and existing.settings == settings:
            return existing
        if existing is not None or settings.name in self.broken:
            raise Conflict(
                f"loop {settings.name!r} exists with other settings. Choose another name, or delete it.", "name"
            )
        if len(self.loops) >= self.limits.loops:
            raise Conflict(f"there are {len(self.loops)} loops already. Delete one, or raise --max-loops.", "name")
        body, created = msgspec.json.encode(settings), self.now()
        number = await self.write(lambda tx: tx.add_loop(settings.name, body, created, apprentice=settings.apprentice))
        if number is None:
            if self._following is not None:
                await asyncio.to_thread(self._following.meet)
            return await self.create(settings)
        return self._serve_new(number, settings, body, created)

    def _serve_new(self, number: int, settings: NewLoop, body: bytes, created: float) -> Loop:
        row = LoopRow(
            number=number,
            name=settings.name,
            settings=body,
            created=created,
            paused=False,
            apprentice=settings.apprentice,
        )
        known = self.loops.get(settings.name)
        loop = known if known is not None and known.number == number else Loop(row)
        self.loops[settings.name] = loop
        loop.caught_up(0)
        return loop

    async def delete(self, name: str) -> None:
        """Delete a loop with all its decisions, losses and models; its data leave the store over the next seconds."""
        number = self.broken[name].number if name in self.broken else (await self.find(name)).number
        await self.write(lambda tx: tx.delete_loop(number))
        self.drop(name, number)

    async def reset(self, name: str) -> Loop:
        """Start a loop again from nothing with the settings it was made with."""
        loop = await self.find(name)
        body, created = loop.row.settings, self.now()

        def replace(transaction: Transaction) -> int | None:
            transaction.delete_loop(loop.number)
            return transaction.add_loop(name, body, created, apprentice=loop.settings.apprentice)

        number = await self.write(replace)
        assert number is not None, "the name is free once its loop is deleted"
        self.drop(name, loop.number)
        return self._serve_new(number, loop.settings, body, created)

    def drop(self, name: str, number: int) -> None:
        """Serve a deleted loop no longer."""
        self.broken.pop(name, None)
        loop = self.loops.get(name)
        if loop is not None and loop.number == number:
            del self.loops[name]
            loop.stop_waiting()
            self.learner.forget(loop)
        self._purging = True

    def decide(self, name: str, asked: schema.NewDecision) -> Future:
        """The stored decision, to be awaited."""
        if not self._known(name):
            return asyncio.ensure_future(self._decide_later(name, asked))
        return self._decider.decide(self.loop(name), asked) or asyncio.ensure_future(self._decide_later(name, asked))

    async def _decide_later(self, name: str, asked: schema.NewDecision) -> Decided:
        """Decide in a loop that another replica has just made, or with numbers that the store has to give first."""
        return await self._decider.decide_later(await self.find(name), asked)

    async def decide_many(self, loop: Loop, asked: Sequence[schema.NewDecision]) -> list[schema.Decision]:
        """All decisions, stored together."""
        return await self._decider.decide_many(loop, asked)

    async def observe(self, loop: Loop, seen: schema.NewObservation) -> Decided:
        """Keep what the caller did by itself, and its loss if it came with one."""
        stored = await self._decider.observe(loop, seen)
        if seen.loss is not None:
            await self._lose(loop, [schema.LossOf(id=id_of(stored), loss=seen.loss, key=seen.id)], alone=True)
        return stored

    def lose(self, name: str, losses: Sequence[schema.LossOf], *, alone: bool = False) -> Future:
        """A future of the answers to losses, all of them durable."""
        if not self._known(name):
            return asyncio.ensure_future(self._lose_later(name, losses, alone=alone))
        return self._lose(self.loop(name), losses, alone=alone)

    async def _lose_later(self, name: str, losses: Sequence[schema.LossOf], *, alone: bool) -> Any:
        return await self._lose(await self.find(name), losses, alone=alone)

    def _lose(self, loop: Loop, losses: Sequence[schema.LossOf], *, alone: bool) -> Future:
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
        if loop.paused:
            loop.stop_waiting()
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
        await asyncio.wrap_future(loop.reached(event.number))

    def now(self) -> float:
        """The time, which is never before that of anything stored."""
        return self._clock() + self._ahead

    async def write(self, function: Callable[[Transaction], Any]) -> Any:
        """Have a function of the transaction written."""
        task: Task[Any] = Task(function)
        self.writer.submit(task)
        return await asyncio.wrap_future(task.future)

    def purge(self) -> None:
        """Remove what deleted loops have left in the store, some at a time; one replica does it for all."""
        if self._purging and self.learner.leads():
            self._purging = False
            self.writer.submit(Purge(PURGED_AT_ONCE, self._purged))

    def _purged(self, left: bool, error: Exception | None) -> None:  # noqa: FBT001
        self._purging = self._purging or left or error is not None
        if error is None:
            self.purge()

    def end_waits(self) -> None:
        """Settle the decisions whose wait has ended; one replica does it for all."""
        if not self.learner.leads():
            return
        for loop in list(self.loops.values()):
            if loop.settings.wait is not None:
                self.writer.submit(EndWaits(loop, self.now(), ENDED_AT_ONCE, self._learn, self.end_waits))

    async def _sweep(self) -> None:
        while True:
            self.end_waits()
            self.purge()
            waits = [loop.settings.wait for loop in list(self.loops.values()) if loop.settings.wait is not None]
            await asyncio.sleep(min(1.0, max(0.05, min(waits, default=1.0) / 4)))

    def recovered(self, row: LoopRow) -> Loop:
        """A loop as the store has it: its newest snapshot, and the events since."""
        loop = self.restored(row)
        self.learner.catch_up(loop)
        return loop

    def restored(self, row: LoopRow) -> Loop:
        """A loop as its newest snapshot has it."""
        loop = restored(self.store, row)
        self._ahead = max(self._ahead, self.store.counts(row.number).latest - self._clock())
        return loop

    def _learn(self, loop: Loop, facts: list[Fact]) -> None:
        if self._following is None:
            loop.enqueue(facts)
        self.learner.wake()

    def _deliver(self, answers: Answers) -> None:
        try:
            self._events.call_soon_threadsafe(answered, answers)
        except RuntimeError:
            answered(answers)
