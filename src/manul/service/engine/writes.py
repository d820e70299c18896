"""What is written for decisions and losses, each with whoever waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from itertools import groupby
from typing import Any

from manul.service import schema
from manul.service.engine import losses as outcomes
from manul.service.engine.loop import Fact, Loop
from manul.service.engine.writer import Operation
from manul.service.errors import Conflict, Unknown
from manul.service.store import Collision, Event, Transaction
from manul.service.store.blocks import Block, Decided, packed

Future = asyncio.Future[Any]
OWN = "~"


def id_of(decided: Decided) -> str:
    """What a decision is called: what the caller says, or else its number."""
    return f"{OWN}{decided.number}" if decided.id is None else decided.id


def decision(decided: Decided) -> schema.Decision:
    """A stored decision as it is answered."""
    density = decided.density
    assert density is not None
    return schema.Decision(id=id_of(decided), action=decided.action, density=density, model=decided.model)


def own_number(given: str) -> int | None:
    """The number behind an id of the service's own; none where there cannot be one.

    >>> own_number("~17"), own_number("~many")
    (17, None)
    """
    digits = given[1:]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def resolve(future: Future, value: object, error: Exception | None = None) -> None:
    """Tells whoever still waits."""
    if future.done():
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(value)


class WriteDecisions(Operation):
    """Decisions of one loop: each with its own future, or all with one and then all or none."""

    def __init__(
        self,
        loop: Loop,
        decided: Sequence[Decided],
        futures: Sequence[Future],
        begun: Callable[[Loop], None],
        *,
        together: bool,
        done: Callable[[], None] = lambda: None,
    ) -> None:
        self._loop, self._decided, self._futures, self._together = loop, decided, futures, together
        self._begun, self._done = begun, done
        self._answers: list[Decided | Conflict] = []

    def apply(self, transaction: Transaction) -> None:
        """Keep those that are new; those whose id is known already are answered from the store."""
        if all(each.id is None for each in self._decided):
            fresh, self._answers = self._decided, list(self._decided)
        else:
            fresh = self._new(transaction)
            claimed = {each.id: each.number for each in fresh if each.id is not None}
            if transaction.claim(self._loop.number, claimed):
                raise Collision("another replica has just given one of the ids")
        for _, some in groupby(enumerate(fresh), key=_together):
            transaction.add_block(self._loop.number, packed([each for _, each in some]))

    def _new(self, transaction: Transaction) -> list[Decided]:
        ids = [each.id for each in self._decided if each.id is not None]
        numbers = transaction.numbers(self._loop.number, ids)
        known = {given: number for given, number in zip(ids, numbers, strict=True) if number is not None}
        stored = transaction.decisions(self._loop.number, list(known.values()))
        first = {given: each for given, each in zip(known, stored, strict=True) if each is not None}
        fresh, self._answers = [], []
        for place, each in enumerate(self._decided):
            before = first.get(each.id) if each.id is not None else None
            if before is None:
                fresh.append(each)
                if each.id is not None:
                    first[each.id] = each
            self._answers.append(each if before is None else self._repeated(before, each, place))
        return fresh

    def _repeated(self, before: Decided, now: Decided, place: int) -> Decided | Conflict:
        if _question(before) == _question(now):
            return before
        field = f"decisions[{place}].id" if self._together else "id"
        conflict = Conflict(
            f"id must be new, or come with what it came with before; got {now.id!r} with something else. Give it another id.",
            field,
        )
        if self._together:
            raise conflict
        return conflict

    def kept(self) -> None:
        """The loop has a decision."""
        self._begun(self._loop)

    def answer(self, error: Exception | None) -> None:
        """Tell each what was decided."""
        self._done()
        if error is not None:
            self._loop.take_back()
            for future in self._futures:
                resolve(future, None, error)
        elif self._together:
            resolve(self._futures[0], self._answers)
        else:
            for future, answer in zip(self._futures, self._answers, strict=True):
                resolve(future, answer, answer if isinstance(answer, Conflict) else None)


def _together(placed: tuple[int, Decided]) -> tuple[object, ...]:
    """Decisions share a block where nothing can come between their numbers: a number is in the block that begins before it."""
    place, decided = placed
    return decided.number - place, decided.model, decided.observed


def _question(decided: Decided) -> tuple[object, ...]:
    asked = (decided.context, decided.within, decided.observed)
    return (*asked, decided.action, decided.density) if decided.observed else asked


class WriteBlock(Operation):
    """Decisions that were given no ids: nothing can stand against them."""

    def __init__(self, loop: Loop, block: Block, future: Future, begun: Callable[[Loop], None]) -> None:
        self._loop, self._block, self._future, self._begun = loop, block, future, begun

    def apply(self, transaction: Transaction) -> None:
        """Keep them."""
        transaction.add_block(self._loop.number, self._block)

    def kept(self) -> None:
        """The loop has a decision."""
        self._begun(self._loop)

    def answer(self, error: Exception | None) -> None:
        """Tell that they are durable."""
        if error is not None:
            self._loop.take_back()
        resolve(self._future, None, error)


class WriteLosses(Operation):
    """Losses of one loop, all or none."""

    def __init__(
        self,
        loop: Loop,
        losses: Sequence[schema.LossOf],
        time: float,
        future: Future,
        learn: Callable[[Loop, list[Fact]], None],
        *,
        alone: bool,
    ) -> None:
        self._loop, self._losses, self._time, self._future = loop, losses, time, future
        self._learn, self._alone = learn, alone
        self._facts: list[Fact] = []
        self._answers: list[schema.Loss] = []

    def apply(self, transaction: Transaction) -> None:
        """Keep those that are new."""
        numbers = self._numbers(transaction)
        decided = transaction.decisions(self._loop.number, numbers)
        before = transaction.events_of(self._loop.number, numbers)
        events, of, self._answers, self._facts = [], [], [], []
        for place, (loss, each) in enumerate(zip(self._losses, decided, strict=True)):
            if each is None:
                raise self._unknown(place)
            known = before.setdefault(each.number, [])
            status, kind = outcomes.taken(
                known, loss.loss, loss.key, self._loop.settings.combine, self._field(place, "loss")
            )
            if kind is not None:
                events.append(Event(0, each.number, kind, loss.loss, self._time, loss.key))
                known.append(events[-1])
                of.append(each)
            self._answers.append(schema.Loss(id=loss.id, status=status))
        if events:
            self._facts = list(zip(transaction.add_events(self._loop.number, events), of, strict=True))

    def _numbers(self, transaction: Transaction) -> list[int]:
        given = [loss.id for loss in self._losses if not loss.id.startswith(OWN)]
        known = dict(zip(given, transaction.numbers(self._loop.number, given), strict=True)) if given else {}
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
        message = (
            f"id must be that of a decision of loop {self._loop.name!r}; got {self._losses[place].id!r}. Decide first."
        )
        return Unknown(message, self._field(place, "id"))

    def kept(self) -> None:
        """Have them learned."""
        if self._facts:
            self._learn(self._loop, self._facts)

    def answer(self, error: Exception | None) -> None:
        """Tell what became of each."""
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
        """Settle what is not settled."""
        settings = self._loop.settings
        assert settings.wait is not None
        numbers = transaction.ended(self._loop.number, self._time - settings.wait, self._limit)
        self._full, self._facts = len(numbers) >= self._limit, []
        before = transaction.events_of(self._loop.number, numbers)
        events = []
        for number in numbers:
            found = outcomes.ended(before.get(number, []), settings)
            if found is not None:
                events.append(Event(0, number, found[0], found[1], self._time))
        if events:
            decided = transaction.decisions(self._loop.number, [event.decision for event in events])
            self._facts = list(zip(transaction.add_events(self._loop.number, events), decided, strict=True))

    def kept(self) -> None:
        """Have them learned."""
        if self._facts:
            self._learn(self._loop, self._facts)

    def answer(self, error: Exception | None) -> None:
        """Go on where there are more."""
        if error is None and self._full:
            self._again()


class Purge(Operation):
    """Removes some of what deleted loops have left behind; `done` hears whether there is more, and what went wrong."""

    def __init__(self, limit: int, done: Callable[[bool, Exception | None], None]) -> None:
        self._limit, self._done, self._left = limit, done, False

    def apply(self, transaction: Transaction) -> None:
        """Remove some."""
        self._left = transaction.purge(self._limit)

    def answer(self, error: Exception | None) -> None:
        """Say whether there is more."""
        self._done(self._left, error)
