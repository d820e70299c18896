"""The operations that write decisions and losses, and answer those who wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from manul.service import wire
from manul.service.engine import losses as loss_events
from manul.service.engine.group_commit import Operation
from manul.service.engine.loop import Loop
from manul.service.errors import Conflict, Unknown
from manul.service.store import OUTCOMES, Collision, Event, Fact, Kind, Lookup, Transaction
from manul.service.store.blocks import OWN, Block, DecisionRow, pack

Future = asyncio.Future[Any]
Learn = Callable[[Loop, list[Fact]], None]
# The events after which a rollout does not wait for the loss of a decision.
SETTLED: tuple[Kind, ...] = (*OUTCOMES, "void", "overdue")


def own_number(id_: str) -> int | None:
    """The decision number in an id that the service made; None if it is not such an id."""
    digits = id_[1:].partition(".")[0]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def resolve(future: Future, value: object, error: Exception | None = None) -> None:
    """Complete a future, unless its caller is gone."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


class WriteEvents(Operation):
    """An operation that adds events to a loop, which the learner learns once they are durable."""

    def __init__(self, loop: Loop, learn: Learn) -> None:
        self._loop, self._learn = loop, learn
        self._facts: list[Fact] = []

    def _add(self, transaction: Transaction, events: Sequence[Event], of: Sequence[DecisionRow | None]) -> None:
        """Add events of decisions. An operation may be applied again, so these replace those of an earlier attempt."""
        stored = transaction.add_events(self._loop.number, events) if events else []
        self._facts = list(zip(stored, of, strict=True))

    def _add_voids(self, transaction: Transaction, numbers: Sequence[int], time: float) -> None:
        """Add events that say that the rollout need not wait for the losses of some numbers."""
        self._add(transaction, [Event(0, number, "void", 0.0, time) for number in numbers], [None] * len(numbers))

    def on_commit(self) -> None:
        if self._facts:
            self._learn(self._loop, self._facts)


class WriteDecisions(WriteEvents):
    """Decisions of one loop, each with its own future, or `together`: all or none, with one future."""

    def __init__(
        self,
        loop: Loop,
        decisions: list[DecisionRow],
        futures: list[Future],
        learn: Learn,
        *,
        together: bool,
    ) -> None:
        super().__init__(loop, learn)
        self._decisions, self._futures, self._together = decisions, futures, together
        self._begun, self._adding = False, threading.Lock()
        self._answers: list[DecisionRow | Conflict] = []
        self._voids: list[int] = []

    def add(self, decision: DecisionRow, future: Future) -> bool:
        """Add a decision to a submitted operation; returns False if the writer has begun to write it."""
        with self._adding:
            if not self._begun:
                self._decisions.append(decision)
                self._futures.append(future)
            return not self._begun

    def begin(self) -> None:
        with self._adding:
            self._begun = True

    def apply(self, transaction: Transaction) -> None:
        """Store new decisions; those whose id exists are answered from the store."""
        self._facts = []
        if all(each.id is None for each in self._decisions):
            fresh, self._answers = self._decisions, list(self._decisions)
        else:
            fresh = self._find_new(transaction)
            claimed = {each.id: each.number for each in fresh if each.id is not None}
            if transaction.claim(self._loop.number, claimed):
                raise Collision("another replica has just used one of the ids")
        for _, group in groupby(enumerate(fresh), key=_block_key):
            transaction.add_block(self._loop.number, pack([each for _, each in group]))
        if self._loop.model.rollout is not None:
            # Numbers of repeated requests and of observations here, and of earlier requests that failed.
            self._voids += self._loop.numbers.take_void()
            used = {each.number for each in fresh if each.ticket is not None}
            unused = [*self._voids, *(each.number for each in self._decisions if each.number not in used)]
            self._add_voids(transaction, unused, self._decisions[0].time)

    def _find_new(self, transaction: Transaction) -> list[DecisionRow]:
        ids = [each.id for each in self._decisions if each.id is not None]
        numbers = transaction.numbers(self._loop.number, ids)
        known = {id_: number for id_, number in zip(ids, numbers, strict=True) if number is not None}
        stored = transaction.decisions(self._loop.number, list(known.values()))
        first = {id_: each for id_, each in zip(known, stored, strict=True) if each is not None}
        fresh, self._answers = [], []
        for place, each in enumerate(self._decisions):
            before = first.get(each.id) if each.id is not None else None
            if before is None:
                fresh.append(each)
                if each.id is not None:
                    first[each.id] = each
            self._answers.append(each if before is None else self._repeat(before, each, place))
        return fresh

    def _repeat(self, before: DecisionRow, now: DecisionRow, place: int) -> DecisionRow | Conflict:
        if _question(before) == _question(now):
            return before
        field = f"decisions[{place}].id" if self._together else "id"
        conflict = Conflict(
            f"id {now.id!r} was already used for a different request. Use another id.",
            field,
        )
        if self._together:
            raise conflict
        return conflict

    def on_commit(self) -> None:
        self._loop.note_first()
        super().on_commit()

    def answer(self, error: Exception | None) -> None:
        # The writer refuses operations without beginning them if the service stops while the store fails.
        self.begin()
        if error is not None:
            self._loop.model.forget_unstored()
            self._loop.numbers.void([*self._voids, *(each.number for each in self._decisions)])
            for future in self._futures:
                resolve(future, None, error)
        elif self._together:
            resolve(self._futures[0], self._answers)
        else:
            for future, answer in zip(self._futures, self._answers, strict=True):
                resolve(future, answer, answer if isinstance(answer, Conflict) else None)


def _block_key(indexed: tuple[int, DecisionRow]) -> tuple[object, ...]:
    """Decisions share a block if their numbers are consecutive: a number is looked up in the last block that starts before it."""
    index, decision = indexed
    return decision.number - index, decision.model, decision.observed, decision.epoch


def _question(decision: DecisionRow) -> tuple[object, ...]:
    request = (decision.context, decision.within, decision.observed)
    return (
        (*request, decision.action, decision.density, decision.densities, decision.floor)
        if decision.observed
        else request
    )


class WriteBlock(Operation):
    """Decisions without ids of the caller, which cannot conflict with others."""

    def __init__(self, loop: Loop, block: Block, future: Future) -> None:
        self._loop, self._block, self._future = loop, block, future

    def apply(self, transaction: Transaction) -> None:
        transaction.add_block(self._loop.number, self._block)

    def on_commit(self) -> None:
        self._loop.note_first()

    def answer(self, error: Exception | None) -> None:
        if error is not None:
            self._loop.model.forget_unstored()
        resolve(self._future, None, error)


class WriteVoids(WriteEvents):
    """Numbers that no decision has got, if no decision is written that would store them too."""

    def __init__(self, loop: Loop, time: float, learn: Learn) -> None:
        super().__init__(loop, learn)
        self._time = time
        self._voids: list[int] = []

    def apply(self, transaction: Transaction) -> None:
        self._voids += self._loop.numbers.take_void()
        self._add_voids(transaction, [] if self._loop.model.rollout is None else self._voids, self._time)

    def answer(self, error: Exception | None) -> None:
        """Keep them for later if they could not be stored."""
        if error is not None:
            self._loop.numbers.void(self._voids)


class VoidLost(WriteEvents):
    """Stores which of some numbers no decision has. Nobody waits: if this fails, they are looked up again."""

    def __init__(self, loop: Loop, numbers: Sequence[int], time: float, learn: Learn) -> None:
        super().__init__(loop, learn)
        self._numbers, self._time = numbers, time

    def apply(self, transaction: Transaction) -> None:
        found = transaction.decisions(self._loop.number, self._numbers)
        lost = [number for number, decision in zip(self._numbers, found, strict=True) if decision is None]
        self._add_voids(transaction, [] if self._loop.model.rollout is None else lost, self._time)


class LeaveOut(WriteEvents):
    """Stores which of some decisions are overdue: those made before a time that have no outcome. Nobody waits, as above."""

    def __init__(self, loop: Loop, numbers: Sequence[int], time: float, learn: Learn, *, made_before: float) -> None:
        super().__init__(loop, learn)
        self._numbers, self._time, self._made_before = numbers, time, made_before

    def apply(self, transaction: Transaction) -> None:
        """Store them. A number without a decision may get one yet."""
        self._facts = []
        first = transaction.decisions(self._loop.number, self._numbers[:1])[0]
        if first is not None and first.time > self._made_before:
            return  # and so are the later ones
        found = transaction.decisions(self._loop.number, self._numbers)
        made = {each.number: each for each in found if each is not None and each.time <= self._made_before}
        for number, events in transaction.events_of(self._loop.number, list(made)).items():
            if any(event.kind in SETTLED for event in events):
                del made[number]
        overdue = [Event(0, number, "overdue", 0.0, self._time) for number in made]
        self._add(transaction, overdue, list(made.values()))


class WriteLosses(WriteEvents):
    def __init__(
        self,
        loop: Loop,
        losses: Sequence[loss_events.ReportedLoss],
        time: float,
        future: Future,
        learn: Learn,
        *,
        alone: bool,
    ) -> None:
        super().__init__(loop, learn)
        self._losses, self._time, self._future, self._alone = losses, time, future, alone
        self._answers: list[wire.Loss] = []

    def begin(self) -> Lookup:
        named = [loss.id for loss in self._losses if not loss.id.startswith(OWN)]
        own = [own_number(loss.id) for loss in self._losses if loss.id.startswith(OWN)]
        return Lookup(self._loop.number, named, [number for number in own if number is not None])

    def apply(self, transaction: Transaction) -> None:
        numbers = self._numbers(transaction)
        decisions = transaction.decisions(self._loop.number, numbers)
        before = transaction.events_of(self._loop.number, numbers)
        events, of, self._answers = [], [], []
        outcome = self._loop.settings.outcome
        for place, (loss, each) in enumerate(zip(self._losses, decisions, strict=True)):
            # A number is used again after a reset or a restore, an epoch is not.
            if each is None or (loss.id.startswith(OWN) and each.public_id != loss.id):
                raise self._unknown(place)
            known = before.setdefault(each.number, [])
            matured = outcome.wait is not None and outcome.wait.is_over(each.time, self._time)
            field = self._field(place, outcome.keyword)
            status, kind = loss_events.classify(known, loss.loss, loss.key, outcome, matured=matured, field=field)
            if kind is not None:
                events.append(Event(0, each.number, kind, loss.loss, self._time, loss.key))
                known.append(events[-1])
                of.append(each)
            self._answers.append(wire.Loss(id=loss.id, status=status))
        self._add(transaction, events, of)

    def _numbers(self, transaction: Transaction) -> list[int]:
        ids = [loss.id for loss in self._losses if not loss.id.startswith(OWN)]
        known = dict(zip(ids, transaction.numbers(self._loop.number, ids), strict=True)) if ids else {}
        numbers = []
        for place, loss in enumerate(self._losses):
            number = own_number(loss.id) if loss.id.startswith(OWN) else known[loss.id]
            if number is None:
                raise self._unknown(place)
            numbers.append(number)
        return numbers

    def _field(self, place: int, name: str) -> str:
        return name if self._alone else f"losses[{place}].{name}"

    def _unknown(self, place: int) -> Unknown:
        given = self._losses[place].id
        message = f"loop {self._loop.name!r} has no decision {given!r}."
        if given.startswith(OWN):
            message += " It may have been made before the loop was reset, deleted or restored from a backup."
        return Unknown(message, self._field(place, "id"))

    def answer(self, error: Exception | None) -> None:
        resolve(self._future, self._answers, error)


class EndWaits(WriteEvents):
    """Default or combined losses for decisions whose wait has ended."""

    def __init__(self, loop: Loop, time: float, limit: int, learn: Learn, again: Callable[[], None]) -> None:
        super().__init__(loop, learn)
        self._time, self._limit, self._again, self._full = time, limit, again, False

    def apply(self, transaction: Transaction) -> None:
        """Store an outcome for each decision that has none."""
        outcome = self._loop.settings.outcome
        assert outcome.wait is not None
        decisions = transaction.take_expired(self._loop.number, self._time - outcome.wait.seconds, self._limit)
        self._full = len(decisions) >= self._limit
        before = transaction.events_of(self._loop.number, [each.number for each in decisions])
        events, of = [], []
        for each in decisions:
            settled = loss_events.settle(before.get(each.number, []), outcome, each.time, self._time)
            if settled is not None:
                events.append(Event(0, each.number, *settled, self._time))
                of.append(each)
        self._add(transaction, events, of)

    def answer(self, error: Exception | None) -> None:
        if error is None and self._full:
            self._again()


class Purge(Operation):
    """Removes some data of deleted loops; `done` is told whether more is left, and the error if there was one."""

    def __init__(self, limit: int, done: Callable[[bool, Exception | None], None]) -> None:
        self._limit, self._done, self._left = limit, done, False

    def apply(self, transaction: Transaction) -> None:
        self._left = transaction.purge(self._limit)

    def answer(self, error: Exception | None) -> None:
        self._done(self._left, error)
