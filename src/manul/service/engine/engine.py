"""The service without HTTP: loops decide, store every decision and loss before answering, and learn in the background."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from manul.errors import ManulError
from manul.outcomes.budgets import EXPLAIN_LATE
from manul.outcomes.parts import PartsReader
from manul.service import wire
from manul.service.configuration import Limits
from manul.service.engine.clock import SteadyClock
from manul.service.engine.downloads import Downloads
from manul.service.engine.following import Following
from manul.service.engine.group import Groups
from manul.service.engine.group_commit import Answers, Task, Writer, deliver_answers
from manul.service.engine.learner import Learner
from manul.service.engine.loop import Loop
from manul.service.engine.loop_agent import from_bytes, ledger_of, load_model, make_agent
from manul.service.engine.loop_limits import LimitsEvent, text_of
from manul.service.engine.loop_space import LoopSpace
from manul.service.engine.requests import Request
from manul.service.engine.rollout_control import RolloutControl, keep_rollout
from manul.service.engine.webhooks import Webhooks
from manul.service.engine.write_operations import EndWaits, LeaveOut, Purge, VoidLost, WriteVoids
from manul.service.errors import Conflict, Invalid, Problem, Unavailable, Unknown
from manul.service.loop_settings import NewLoop, prior_loop, stored_body
from manul.service.store import DAMAGED, Damaged, Event, Fact, LoopGone, LoopRow, Store, StoreFailure, Transaction
from manul.utils import model_files

log = logging.getLogger("manul.service")
# Decisions whose waits end per transaction, and rows of deleted loops that one transaction removes.
EXPIRED_PER_TRANSACTION, PURGED_PER_TRANSACTION = 2000, 2000
# Seconds for threads to finish when the service stops; everything acknowledged is durable already.
STOP_SECONDS = 6.0
# How long the answer to an act of the owner, such as a new model, waits for the learner.
ACT_SECONDS = 10.0


class Engine:
    """All loops of one store. Its methods are called in the thread of the event loop that started it."""

    def __init__(
        self,
        store: Store,
        limits: Limits | None = None,
        *,
        clock: Callable[[], float] | None = None,
        snapshot_seconds: float = 60.0,
        snapshot_events: int = 200_000,
        webhook_hosts: Sequence[str] = (),
        backups: Path | None = None,
    ) -> None:
        self.store, self.limits, self.backups = store, limits or Limits(), backups
        self.webhook_hosts = frozenset(host.lower() for host in webhook_hosts)
        self._clock, self._ahead = clock or SteadyClock(), 0.0
        self.writer = Writer(store)
        self.loops: dict[str, Loop] = {}
        self._serving = threading.Lock()
        # Loops that could not be read, and why.
        self.broken: dict[str, tuple[LoopRow, str]] = {}
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
        self.groups = Groups(self.writer, self.limits, self.now, self.learn)
        self.rollouts = RolloutControl(self)
        self.downloads = Downloads(store, self.limits, self.write, self.now)
        self._webhooks = Webhooks(self)
        self.purging = True
        self._background: list[asyncio.Task[None]] = []
        self.ready = False

    async def start(self) -> None:
        """Resume from the store: load the newest snapshots and learn the events since."""
        self._events = asyncio.get_running_loop()
        self.writer.deliver = self._deliver
        self.writer.start()
        for row in await asyncio.to_thread(self.store.loops):
            await asyncio.to_thread(self.take_up, row, self.recover)
        self.learner.start()
        self._background = [asyncio.create_task(self._sweep()), asyncio.create_task(self._webhooks.run())]
        self.ready = True

    def take_up(self, row: LoopRow, load: Callable[[LoopRow], Loop] | None = None) -> None:
        """Serve a loop; one that cannot be read is out of service and does not affect the others."""
        try:
            self._serve((load or self.restore)(row))
        except StoreFailure:
            raise
        except Exception as error:
            log.exception("loop cannot be read and is out of service", extra={"loop": row.name})
            known = isinstance(error, Damaged) or row.number in self.store.damaged
            self.broken[row.name] = row, DAMAGED if known else "its settings cannot be read"

    def _serve(self, loop: Loop) -> Loop:
        """Serve a loop, unless it is served already: the learner's thread finds a new loop while the request that created it is
        answered, and a second one would learn what others wait for in the first."""
        with self._serving:
            known = self.loops.get(loop.name)
            if known is None or known.number < loop.number:
                self.loops[loop.name] = loop
            return self.loops[loop.name]

    async def stop(self) -> None:
        """Finish pending requests, learn what is queued, save snapshots and close the store."""
        self.ready = False
        for task in self._background:
            task.cancel()
        for loop in list(self.loops.values()):
            loop.stop_waiting()
        await self._finish_threads()

    async def _finish_threads(self) -> None:
        """Wait for the threads, but not longer than STOP_SECONDS, in case the store does not answer."""
        done = self._events.create_future()

        def finish() -> None:
            self.learner.stop()
            self.writer.stop()
            self.store.close()
            with suppress(RuntimeError):  # the event loop is closed, because this took too long
                self._events.call_soon_threadsafe(done.cancel)

        try:
            async with asyncio.timeout(STOP_SECONDS):
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.groups.finish(), STOP_SECONDS / 2)
                threading.Thread(target=finish, name="manul-stop", daemon=True).start()
                await asyncio.wait([done])
        except TimeoutError:
            log.error(
                "the store did not finish within %g s. Everything that was answered is stored; the next start may have to learn "
                "the latest events again",
                STOP_SECONDS,
            )

    def trouble(self) -> str | None:
        """Why the process or its store is not ready; None if it is. Loops have troubles of their own."""
        if not self.ready:
            return "starting or stopping"
        if self.store.lost is not None:
            return self.store.lost
        for thread in (self.writer, self.learner):
            if not thread.is_alive():
                return f"the {thread.name.removeprefix('manul-')} has stopped"
        return "the store is not writable" if self.writer.failing else None

    def loop_trouble(self, loop: Loop) -> str | None:
        """Why a loop that is served is not ready; None if it is."""
        return DAMAGED if loop.number in self.store.damaged else loop.feed.failure

    def statuses(self, loops: Iterable[Loop]) -> list[wire.Status]:
        """The status of each loop that can be read; reads the store."""
        found = []
        for loop in loops:
            with suppress(Damaged, LoopGone):
                found.append(self.status(loop))
        return found

    def status(self, loop: Loop) -> wire.Status:
        return loop.status(self.loop_trouble(loop), self.now())

    def loop(self, name: str) -> Loop:
        """A loop that this replica already serves; see `find`."""
        try:
            return self.loops[name]
        except KeyError:
            raise self._unknown(name) from None

    async def find(self, name: str) -> Loop:
        """A loop, also if another replica has just created it."""
        if name not in self.loops and self._following is not None:
            await asyncio.to_thread(self._following.find_new_loops)
        return self.loop(name)

    def _unknown(self, name: str) -> Problem:
        if name in self.broken:
            why = self.broken[name][1]
            return Unavailable(
                f"loop {name!r} is out of service: {why}. Restore a backup, or delete it; see the server log.", "loop"
            )
        return Unknown(f"loop {name!r} does not exist. Create it with POST /v1/loops.", "loop")

    async def create(self, settings: NewLoop) -> Loop:
        """Create a loop; if it exists with the same settings, return it."""
        check_settings(settings)
        check_limits(settings, make_agent(settings))
        existing = self.loops.get(settings.name)
        if existing is not None and _same(existing.settings, settings):
            return existing
        if existing is not None or settings.name in self.broken:
            raise Conflict(
                f"loop {settings.name!r} already exists with other settings. Choose another name, or delete it.", "name"
            )
        if len(self.loops) >= self.limits.loops:
            raise Conflict(
                f"The limit of {self.limits.loops} loops is reached. Delete one, or raise --max-loops.", "name"
            )
        body, created, prior = stored_body(settings), self.now(), prior_loop(settings)
        first = None if prior is None else await self._first_model(settings, await self.find(prior))

        def add(transaction: Transaction) -> int | None:
            number = transaction.add_loop(settings.name, body, created, apprentice=settings.apprentice)
            if number is not None and first is not None:
                self._add_first_model(transaction, _new_row(number, settings, body, created), first)
            return number

        number = await self.write(add)
        if number is None:
            if self._following is not None:
                await asyncio.to_thread(self._following.find_new_loops)
            return await self.create(settings)
        if first is None:
            return self._serve_new(number, settings, body, created)
        if settings.name not in self.loops:  # unless the learner's thread has found it
            await asyncio.to_thread(self.take_up, _new_row(number, settings, body, created), self.recover)
        return self.loop(settings.name)

    async def _first_model(self, settings: NewLoop, prior: Loop) -> bytes:
        """The model of a new loop that starts from the present one of another loop."""

        def copy() -> bytes:
            known = from_bytes(prior.model.snapshot().model)
            return model_files.dumps(make_agent(settings, known))  # type: ignore[arg-type]

        return await asyncio.to_thread(copy)

    def _serve_new(self, number: int, settings: NewLoop, body: bytes, created: float) -> Loop:
        row = _new_row(number, settings, body, created)
        fresh = Loop(row, self.store)
        fresh.feed.keep_up(0, 0)
        return self._serve(fresh)

    def _add_first_model(self, transaction: Transaction, row: LoopRow, model: bytes) -> Loop:
        """Import the first model of a loop. The snapshot contains it, so that only the learner's thread ever learns an import."""
        loop, event = Loop(row, self.store), _add_import(transaction, row.number, model, row.created)
        loop.learn([(event, None)], lambda _: model)
        transaction.add_snapshot(row.number, loop.model.snapshot(), keep=1)
        return loop

    async def delete(self, name: str) -> None:
        """Delete a loop; its data are removed from the store in the background."""
        number = self.broken[name][0].number if name in self.broken else (await self.find(name)).number
        await self.write(lambda tx: tx.delete_loop(number))
        self.drop(name, number)

    async def reset(self, name: str) -> Loop:
        """Delete all data of a loop and restart it with its original settings. A rollout begins again at its first step, with
        what is left of its budget, or stays ended."""
        loop = await self.find(name)
        body, created = loop.row.settings, self.now()
        # What the model of another loop knew when this one was created.
        first = b"" if prior_loop(loop.settings) is None else await asyncio.to_thread(self.store.model, loop.number, 1)

        def replace(transaction: Transaction) -> LoopRow:
            transaction.delete_loop(loop.number)
            number = transaction.add_loop(name, body, created, apprentice=loop.settings.apprentice)
            assert number is not None, "the name is free once its loop is deleted"
            row = _new_row(number, loop.settings, body, created)
            fresh = self._add_first_model(transaction, row, first) if first else Loop(row, self.store)
            keep_rollout(transaction, loop, fresh, created)
            keep_account(transaction, loop, row.number, created)
            return row

        row = await self.write(replace)
        self.drop(name, loop.number)
        if name not in self.loops:  # unless the learner's thread has found it
            await asyncio.to_thread(self.take_up, row, self.recover)
        return self.loop(name)

    def drop(self, name: str, number: int) -> None:
        self.broken.pop(name, None)
        loop = self.loops.get(name)
        if loop is not None and loop.number == number:
            del self.loops[name]
            loop.stop_waiting()
        self.purging = True

    async def ask(self, name: str, request: Request) -> Any:
        """Fulfil a request; its answer once it is durable."""
        future = self._events.create_future()
        request.respond = partial(_resolve, future)
        self.groups.add(await self.find(name), request)
        return await future

    async def change(self, loop: Loop, *, paused: bool | None = None, apprentice: bool | None = None) -> None:
        await self.write(lambda tx: tx.change_loop(loop.number, paused=paused, apprentice=apprentice))
        loop.changed = time.monotonic()
        loop.set_state(paused=paused, apprentice=apprentice)
        self.learner.wake()

    async def change_budget(self, loop: Loop, amount: float) -> None:
        """Change the amount of the budget of a loop."""
        if loop.settings.spend_at_most is None:
            raise Conflict(f"loop {loop.name!r} has no budget. Create one with spend_at_most.", "loop")
        if loop.paused:
            raise Conflict(f"loop {loop.name!r} is paused, and so is its budget. Resume it first.", "loop")
        self.check_learning(loop)
        event = await self.write(lambda tx: add_limits(tx, loop.number, LimitsEvent(amount=amount), self.now()))
        self.learn(loop, [(event, None)])
        await self.learned(loop, event)

    async def promote(self, loop: Loop) -> None:
        """Let an apprentice decide; if there is a rollout, it ends, and the learner makes all decisions."""
        await self.rollouts.end(loop)
        await self.change(loop, apprentice=False)

    async def replace(self, loop: Loop, model: bytes) -> None:
        """Replace the model of a loop, after checking that the new one fits."""
        if loop.paused:
            raise Conflict(f"loop {loop.name!r} is paused and cannot import a model. Resume it first.", "loop")
        self.check_learning(loop)
        await asyncio.to_thread(load_model, model, loop.settings, loop.model.first)

        event = await self.write(lambda tx: _add_import(tx, loop.number, model, self.now()))
        self.learn(loop, [(event, None)])
        await self.learned(loop, event)

    def check_learning(self, loop: Loop) -> None:
        """Refuse an act that has to be learned to a loop that cannot learn."""
        if loop.feed.failure is not None:
            raise Unavailable(f"loop {loop.name!r} does not learn: {loop.feed.failure}. Nothing was changed.", "loop")

    async def learned(self, loop: Loop, event: Event) -> None:
        """Wait until an act of the owner, which is stored, has been learned."""
        try:
            await asyncio.wait_for(asyncio.wrap_future(loop.wait_for(event.number)), ACT_SECONDS)
        except TimeoutError:
            why = self.loop_trouble(loop) or "it has many losses to learn first"
            raise Unavailable(
                f"This is stored, but loop {loop.name!r} has not come to it in {ACT_SECONDS:g} s: {why}. It takes effect once "
                "the loop has learned what came before; do not repeat it.",
                "loop",
            ) from None

    def now(self) -> float:
        """The current time, never earlier than that of any stored decision."""
        return self._clock() + self._ahead

    async def write(self, function: Callable[[Transaction], Any], *, urgent: bool = False) -> Any:
        """Run a function in a transaction and return its result; an urgent one waits for no other operation."""
        task: Task[Any] = Task(function)
        self.writer.submit(task, urgent=urgent)
        return await asyncio.wrap_future(task.future)

    def purge(self) -> None:
        """Remove the data of deleted loops in small transactions; only the leader does so."""
        if self.purging and self.learner.leads():
            self.purging = False
            self.writer.submit(Purge(PURGED_PER_TRANSACTION, self._continue_purge))

    def _continue_purge(self, left: bool, error: Exception | None) -> None:  # noqa: FBT001
        self.purging = self.purging or left or error is not None
        if error is None:
            self.purge()

    def end_waits(self) -> None:
        """Store outcomes for decisions whose wait has ended; only the replica that learns the loop does so."""
        for loop in list(self.loops.values()):
            if loop.settings.wait is not None and self.learner.learns(loop):
                self.writer.submit(EndWaits(loop, self.now(), EXPIRED_PER_TRANSACTION, self.learn, self.end_waits))

    def _settle_numbers(self, loop: Loop) -> None:
        """Store what a rollout need not wait for, also if no further decision is made here."""
        now, numbers = self.now(), loop.numbers
        numbers.void_unused(left=False)
        if numbers.has_void:
            self.writer.submit(WriteVoids(loop, now, self.learn))
        if not self.learner.learns(loop):
            return
        if lost := numbers.lost(now):
            self.writer.submit(VoidLost(loop, lost, now, self.learn))
        overdue, late, seconds = ((), (), None) if loop.paused else numbers.overdue()
        if overdue:
            self.writer.submit(LeaveOut(loop, overdue, now, self.learn, made_before=now))
        if late and seconds is not None:
            self.writer.submit(LeaveOut(loop, late, now, self.learn, made_before=now - seconds))

    async def _sweep(self) -> None:
        while True:
            self.end_waits()
            for loop in list(self.loops.values()):
                self._settle_numbers(loop)
            self.purge()
            self._try_store()
            waits = [loop.settings.wait for loop in list(self.loops.values()) if loop.settings.wait is not None]
            await asyncio.sleep(min(1.0, max(0.05, min(waits, default=1.0) / 4)))

    def _try_store(self) -> None:
        """Write something while writing fails: a proxy sends no requests here before one has succeeded."""
        if self.writer.failing and not self.writer.depth:
            number = next((loop.number for loop in self.loops.values()), None)
            self.writer.submit(Task(lambda tx: None if number is None else tx.change_loop(number)))

    def recover(self, row: LoopRow) -> Loop:
        """Load a loop from its newest snapshot and learn the events since."""
        loop = self.restore(row)
        self.learner.catch_up(loop)
        loop.load_in_flight()  # the rollout may have begun after the snapshot
        loop.load_uncounted()
        return loop

    def restore(self, row: LoopRow) -> Loop:
        loop = Loop.recover(row, self.store)
        self._ahead = max(self._ahead, self.store.counts(row.number).latest - self._clock())
        return loop

    def learn(self, loop: Loop, facts: list[Fact]) -> None:
        """Let the learner learn events that are durable."""
        if self._following is None:
            loop.feed.add(facts)
        self.learner.wake()

    def _deliver(self, answers: Answers) -> None:
        try:
            self._events.call_soon_threadsafe(deliver_answers, answers)
        except RuntimeError:
            deliver_answers(answers)


def _resolve(future: asyncio.Future[Any], answer: Any) -> None:
    """Complete a future, unless its caller is gone."""
    if future.done():
        return
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def _add_import(transaction: Transaction, loop: int, model: bytes, time: float) -> Event:
    event = transaction.add_events(loop, [Event(0, 0, "import", 0.0, time)])[0]
    transaction.add_model(loop, event.number, model)
    return event


def add_limits(transaction: Transaction, loop: int, said: LimitsEvent, time: float) -> Event:
    return transaction.add_events(loop, [Event(0, 0, "limits", 0.0, time, None, text_of(said))])[0]


def keep_account(transaction: Transaction, loop: Loop, fresh: int, time: float) -> None:
    """Begin the loop that replaces another one with the amount of its budget, and what its current period has spent."""
    with loop.model.hold() as model:
        owed = None if model.limits is None else model.limits.owed(model.agent)
    if owed is not None:
        spent = (owed.period, owed.spent) if math.isfinite(owed.period) else None
        add_limits(transaction, fresh, LimitsEvent(amount=owed.amount, owed=spent), time)


def _new_row(number: int, settings: NewLoop, body: bytes, created: float) -> LoopRow:
    state = {"paused": False, "apprentice": settings.apprentice}
    return LoopRow(number=number, name=settings.name, settings=body, created=created, **state)


def _same(one: NewLoop, other: NewLoop) -> bool:
    """Whether settings are equal as JSON, in which the order of knobs matters and 1 is not true."""
    return stored_body(one) == stored_body(other)


def check_limits(settings: NewLoop, agent: Any) -> None:
    """Refuse a budget whose costs may be late, or may be any, without saying how they count."""
    if settings.spend_at_most is None or settings.late is not None:
        return
    if settings.wait is not None:
        raise Invalid(f"late must be given, because costs wait for the outcome. {EXPLAIN_LATE}", "late")
    if not ledger_of(agent).has_most:
        rule = f"late must be 'carry', because {settings.spend_at_most[0]!r} has no upper bound"
        raise Invalid(f"{rule}: what decisions may cost cannot be held back until it is known.", "late")


def check_settings(settings: NewLoop) -> None:
    """Refuse settings of a loop that contradict each other."""
    for name in LoopSpace.of(settings).names:
        if "\0" in name:  # logs are exchanged as C strings, which end there
            raise Invalid(f"the name of a knob must have no null character, got {name!r}.", "actions")
    try:
        outcome = settings.learned
    except ManulError as error:
        raise Invalid(str(error), error.field) from None
    default = f"default_{outcome.keyword}"
    value = settings.default_reward if outcome.higher else settings.default_loss
    if value is not None and not outcome.contains(value):
        rule = "finite" if outcome.range == "auto" else f"in the range of {outcome.keywords}, {outcome.rule[3:]}"
        raise Invalid(f"{default} must be {rule}, got {value:g}.", default)
    if settings.default_parts is not None and settings.default_loss is not None:
        raise Invalid(f"default_parts and {default} exclude each other. Set one of them.", "default_parts")
    default = default if settings.default_parts is None else "default_parts"
    has_default = settings.default_loss is not None or settings.default_parts is not None
    if (settings.wait is None) == has_default:
        given, absent = ("wait", default) if not has_default else (default, "wait")
        raise Invalid(f"{given} is set, but {absent} is not. Set both or neither.", absent)
    if settings.combine != "first" and settings.wait is None:
        raise Invalid(
            f"combine={settings.combine!r} needs a wait, because losses are combined when it ends.",
            "wait",
        )
    try:
        assert settings.outcome is not None  # its wait has the default
        PartsReader.of(outcome, LoopSpace.of(settings))
    except ManulError as error:
        fields = {"outcome": "formula", "default": "default_parts"}
        raise Invalid(str(error), fields.get(error.field or "", error.field)) from None
    if settings.limits and settings.wait is not None and settings.default_parts is None:
        name = next(iter(settings.limits))
        raise Invalid(
            f"{name} needs default_parts instead of {default}, because parts say what is spent and kept.", default
        )
