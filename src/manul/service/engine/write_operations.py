"""The operations that write decisions and losses, and answer those who wait for them."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from msgspec import UNSET

from manul.service import wire
from manul.service.engine import losses as loss_events
from manul.service.engine.group_commit import Operation
from manul.service.engine.loop import Fact, Loop
from manul.service.errors import Conflict, Unknown
from manul.service.store import Collision, Event, Lookup, Transaction
from manul.service.store.blocks import Block, DecisionRow, pack

Future = asyncio.Future[Any]
OWN = "~"


def own_id(number: int, epoch: str | None) -> str:
    """The id that the service gives to a decision; those of earlier versions have no epoch.

    >>> own_id(17, "k3f7x2ab"), own_id(17, None)
    ('~17.k3f7x2ab', '~17')
    """
    return f"{OWN}{number}" if epoch is None else f"{OWN}{number}.{epoch}"


def id_of(decision: DecisionRow) -> str:
    """The id of a decision: the caller's, or one made from its number and its epoch."""
    return own_id(decision.number, decision.epoch) if decision.id is None else decision.id


def decision_answer(decision: DecisionRow) -> wire.Decision:
    density = decision.density
    assert density is not None
    densities = UNSET if decision.densities is None else decision.densities
    arm: Any = UNSET if decision.ticket is None else "learner" if decision.ticket.learner else "baseline"
    answered = {"id": id_of(decision), "action": decision.action, "density": density, "model": decision.model}
    return wire.Decision(**answered, densities=densities, arm=arm)


def own_number(id_: str) -> int | None:
    """The decision number in an id that the service made; None if it is not such an id.

    >>> own_number("~17.k3f7x2ab"), own_number("~17"), own_number("~many")
    (17, 17, None)
    """
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


class WriteDecisions(Operation):
    """Decisions of one loop, each with its own future, or `together`: all or none, with one future."""

    def __init__(
        self,
        loop: Loop,
        decisions: list[DecisionRow],
        futures: list[Future],
        note_first: Callable[[Loop], None],
        learn: Callable[[Loop, list[Fact]], None],
        *,
        together: bool,
    ) -> None:
        self._loop, self._decisions, self._futures, self._together = loop, decisions, futures, together
        self._note_first, self._learn = note_first, learn
        self._begun, self._adding = False, threading.Lock()
        self._answers: list[DecisionRow | Conflict] = []
        self._voids: list[int] = []
        self._facts: list[Fact] = []

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
        if self._loop.rollout is not None:
            self._add_voids(transaction, fresh)

    def _add_voids(self, transaction: Transaction, fresh: Sequence[DecisionRow]) -> None:
        """Store which numbers the rollout need not wait for: those of repeated requests and of observations here, and of
        earlier requests that failed."""
        take_voids(self._loop, self._voids)
        used = {each.number for each in fresh if each.ticket is not None}
        unused = [*self._voids, *(each.number for each in self._decisions if each.number not in used)]
        self._facts = add_voids(transaction, self._loop, unused, self._decisions[0].time)

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
        """The first decision of a loop determines the shape of contexts."""
        self._note_first(self._loop)
        if self._facts:
            self._learn(self._loop, self._facts)

    def answer(self, error: Exception | None) -> None:
        # The writer refuses operations without beginning them if the service stops while the store fails.
        self.begin()
        if error is not None:
            self._loop.forget_unstored()
            self._loop.void([*self._voids, *(each.number for each in self._decisions)])
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

    def __init__(self, loop: Loop, block: Block, future: Future, note_first: Callable[[Loop], None]) -> None:
        self._loop, self._block, self._future, self._note_first = loop, block, future, note_first

    def apply(self, transaction: Transaction) -> None:
        transaction.add_block(self._loop.number, self._block)

    def on_commit(self) -> None:
        """The first decision of a loop determines the shape of contexts."""
        self._note_first(self._loop)

    def answer(self, error: Exception | None) -> None:
        if error is not None:
            self._loop.forget_unstored()
        resolve(self._future, None, error)


def take_voids(loop: Loop, voids: list[int]) -> None:
    """Move the numbers that no decision has got from a loop to a list."""
    while loop.voids:
        voids.append(loop.voids.popleft())


def add_voids(transaction: Transaction, loop: Loop, numbers: Sequence[int], time: float) -> list[Fact]:
    """Store that the rollout need not wait for the losses of some numbers."""
    events = [Event(0, number, "void", 0.0, time) for number in numbers]
    return [(event, None) for event in (transaction.add_events(loop.number, events) if events else [])]


class WriteVoids(Operation):
    """Numbers that no decision has got, if no decision is written that would store them too."""

    def __init__(self, loop: Loop, time: float, learn: Callable[[Loop, list[Fact]], None]) -> None:
        self._loop, self._time, self._learn = loop, time, learn
        self._voids: list[int] = []
        self._facts: list[Fact] = []

    def apply(self, transaction: Transaction) -> None:
        take_voids(self._loop, self._voids)
        numbers = [] if self._loop.rollout is None else self._voids
        self._facts = add_voids(transaction, self._loop, numbers, self._time)

    def on_commit(self) -> None:
        if self._facts:
            self._learn(self._loop, self._facts)

    def answer(self, error: Exception | None) -> None:
        """Keep them for later if they could not be stored."""
        if error is not None:
            self._loop.void(self._voids)


class WriteLosses(Operation):
    def __init__(
        self,
        loop: Loop,
        losses: Sequence[loss_events.ReportedLoss],
        time: float,
        future: Future,
        learn: Callable[[Loop, list[Fact]], None],
        *,
        alone: bool,
    ) -> None:
        self._loop, self._losses, self._time, self._future = loop, losses, time, future
        self._learn, self._alone = learn, alone
        self._facts: list[Fact] = []
        self._answers: list[wire.Loss] = []

    def begin(self) -> Lookup:
        named = [loss.id for loss in self._losses if not loss.id.startswith(OWN)]
        own = [own_number(loss.id) for loss in self._losses if loss.id.startswith(OWN)]
        return Lookup(self._loop.number, named, [number for number in own if number is not None])

    def apply(self, transaction: Transaction) -> None:
        numbers = self._numbers(transaction)
        decisions = transaction.decisions(self._loop.number, numbers)
        before = transaction.events_of(self._loop.number, numbers)
        events, of, self._answers, self._facts = [], [], [], []
        outcome = self._loop.settings.outcome
        for place, (loss, each) in enumerate(zip(self._losses, decisions, strict=True)):
            # A number is used again after a reset or a restore, an epoch is not.
            if each is None or (loss.id.startswith(OWN) and id_of(each) != loss.id):
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
        if events:
            self._facts = list(zip(transaction.add_events(self._loop.number, events), of, strict=True))

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

    def on_commit(self) -> None:
        if self._facts:
            self._learn(self._loop, self._facts)

    def answer(self, error: Exception | None) -> None:
        resolve(self._future, self._answers, error)


class EndWaits(Operation):
    """Default or combined losses for decisions whose wait has ended."""

    def __init__(
        self, loop: Loop, time: float, limit: int, learn: Callable[[Loop, list[Fact]], None], again: Callable[[], None]
    ) -> None:
        self._loop, self._time, self._limit, self._learn, self._again = loop, time, limit, learn, again
        self._facts: list[Fact] = []
        self._full = False

    def apply(self, transaction: Transaction) -> None:
        """Store an outcome for each decision that has none."""
        outcome = self._loop.settings.outcome
        assert outcome.wait is not None
        decisions = transaction.take_expired(self._loop.number, self._time - outcome.wait.seconds, self._limit)
        self._full, self._facts = len(decisions) >= self._limit, []
        before = transaction.events_of(self._loop.number, [each.number for each in decisions])
        events, of = [], []
        for each in decisions:
            settled = loss_events.settle(before.get(each.number, []), outcome, each.time, self._time)
            if settled is not None:
                events.append(Event(0, each.number, *settled, self._time))
                of.append(each)
        if events:
            self._facts = list(zip(transaction.add_events(self._loop.number, events), of, strict=True))

    def on_commit(self) -> None:
        if self._facts:
            self._learn(self._loop, self._facts)

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
