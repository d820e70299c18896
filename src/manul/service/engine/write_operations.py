"""The operations that write decisions and losses, and answer those who wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby

from manul.errors import InputError
from manul.service import wire
from manul.service.engine import losses as loss_events
from manul.service.engine.group_commit import Operation
from manul.service.engine.loop import Loop
from manul.service.engine.requests import Observe, Request
from manul.service.errors import Conflict, Invalid, Problem, Unavailable, Unknown
from manul.service.store import OUTCOMES, Collision, Event, Fact, Kind, Lookup, Transaction
from manul.service.store.blocks import OWN, Block, DecisionRow, pack

Learn = Callable[[Loop, list[Fact]], None]
# The events after which a rollout does not wait for the loss of a decision.
SETTLED: tuple[Kind, ...] = (*OUTCOMES, "void", "overdue")


def own_number(id_: str) -> int | None:
    """The decision number in an id that the service made; None if it is not such an id."""
    digits = id_[1:].partition(".")[0]
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


class WriteEvents(Operation):
    """An operation that adds events to a loop, which the learner learns once they are durable."""

    def __init__(self, loop: Loop, learn: Learn) -> None:
        self._loop, self._learn = loop, learn
        self._facts: list[Fact] = []

    def _add(self, transaction: Transaction, facts: Sequence[Fact]) -> None:
        """Add events of decisions. An operation may be applied again, so these replace those of an earlier attempt."""
        stored = transaction.add_events(self._loop.number, [event for event, _ in facts]) if facts else []
        self._facts = [(event, decision) for event, (_, decision) in zip(stored, facts, strict=True)]

    def on_commit(self) -> None:
        if self._facts:
            self._learn(self._loop, self._facts)


def voids(numbers: Iterable[int], time: float) -> list[Fact]:
    """Events that say that the rollout need not wait for the losses of some numbers."""
    return [(Event(0, number, "void", 0.0, time), None) for number in numbers]


class WriteGroup(WriteEvents):
    """Decisions, observations and losses of one loop. A request that conflicts with the store fails alone.

    `block` has all decisions, if none has an id of its caller; then come observations. `finish` is told the error if there was one.
    """

    def __init__(
        self,
        loop: Loop,
        requests: Sequence[Request],
        block: Block | None,
        time: float,
        learn: Learn,
        finish: Callable[[Exception | None], None],
    ) -> None:
        super().__init__(loop, learn)
        self._requests, self._block, self._time, self._finish = requests, block, time, finish
        self._rows = [row for each in requests for row in each.rows]
        self._voids: list[int] = []
        self._fresh: list[int] = []
        # The ids of the losses; those of the service with the numbers of their decisions.
        ids = {loss.id for each in requests for loss in each.losses}
        self._reported = {each: own_number(each) if each.startswith(OWN) else None for each in ids}

    def begin(self) -> Lookup | None:
        if not self._reported:
            return None
        observed = {row.number for each in self._requests if each.losses for row in each.rows}
        numbers = [each for each in self._reported.values() if each is not None and each not in observed]
        return Lookup(self._loop.number, [each for each in self._reported if not each.startswith(OWN)], numbers)

    def apply(self, transaction: Transaction) -> None:
        """Find out what is new, then write it."""
        self._check_account(transaction)
        loop, fresh = self._loop.number, self._find_new(transaction)
        facts = self._find_outcomes(transaction, fresh)
        claimed = {each.id: each.number for each in fresh if each.id is not None}
        if claimed and transaction.claim(loop, claimed):
            raise Collision("another replica has just used one of the ids")
        blocks = [] if self._block is None else [self._block]
        rest = fresh[blocks[0].count :] if blocks else fresh
        blocks += [pack([each for _, each in group]) for _, group in groupby(enumerate(rest), key=_block_key)]
        for each in blocks:
            transaction.add_block(loop, each, waits=self._loop.settings.wait is not None)
        self._note_limits(fresh, facts)
        if self._rows and self._loop.model.rollout is not None:
            # Numbers of repeated requests and of observations here, and of earlier requests that failed.
            self._voids += self._loop.numbers.take_void()
            used = {each.number for each in fresh if each.ticket is not None}
            unused = (each.number for each in self._rows if each.number not in used)
            facts += voids([*self._voids, *unused], self._time)
        self._add(transaction, facts)

    def _note_limits(self, fresh: Sequence[DecisionRow], facts: list[Fact]) -> None:
        """Add what the new decisions are expected to spend and keep, before the outcomes."""
        limits, self._fresh = self._loop.model.limits, [each.number for each in fresh]
        text = None if limits is None else limits.event(self._fresh)
        if text is None:
            return
        facts.insert(0, (Event(0, fresh[0].number, "limits", 0.0, self._time, None, text), fresh[0]))

    def _check_account(self, transaction: Transaction) -> None:
        """Refuse decisions that were drawn before something was spent, or the amount changed, of which this replica did not know:
        another one did it, or this one did and never heard that it had succeeded."""
        loop = self._loop
        if not loop.is_shared or loop.settings.spend_at_most is None:
            return
        limits, drawn = loop.model.limits, [each.model for each in self._rows if not each.observed]
        assert limits is not None
        if drawn and not limits.own.issuperset(transaction.limits_after(loop.number, min(drawn))):
            raise Unavailable(
                f"The account of loop {loop.name!r} has just changed. Nothing was changed; retry.", "loop"
            )

    def _find_new(self, transaction: Transaction) -> list[DecisionRow]:
        """The decisions and observations to store; those whose id exists are answered from the store."""
        ids = [row.id for row in self._rows if row.id is not None]
        numbers = transaction.numbers(self._loop.number, ids) if ids else []
        known = {id_: number for id_, number in zip(ids, numbers, strict=True) if number is not None}
        stored = transaction.decisions(self._loop.number, list(known.values())) if known else []
        first = {id_: each for id_, each in zip(known, stored, strict=True) if each is not None}
        fresh: list[DecisionRow] = []
        for request in self._requests:
            if not ids:
                request.answer = request.rows
                fresh += request.rows
                continue
            new: list[DecisionRow] = []
            request.answer = answers = []
            for place, row in enumerate(request.rows):
                before = first.setdefault(row.id, row) if row.id is not None else row
                if before is not row and not _is_repeat(row, before):
                    request.answer = _conflict(request, place, row)
                    first = {id_: each for id_, each in first.items() if each not in new}
                    new = []
                    break
                answers.append(before)
                if before is row:
                    new.append(row)
            fresh += new
        return fresh

    def _find_outcomes(self, transaction: Transaction, fresh: list[DecisionRow]) -> list[Fact]:
        """The events of the reported losses, with their decisions."""
        reporting = [each for each in self._requests if each.losses and not isinstance(each.answer, Problem)]
        if not reporting:
            return []
        # Nobody knows the id of a decision yet that is in the block of this group.
        made = self._requests if self._block is None else [each for each in self._requests if isinstance(each, Observe)]
        rows = [row for each in made if not isinstance(each.answer, Problem) for row in each.answer]
        decisions, new = {row.public_id: row for row in rows}, {row.number for row in fresh} if rows else ()
        self._read_decisions(transaction, decisions)
        numbers = [row.number for row in decisions.values() if row.number not in new]
        before = transaction.events_of(self._loop.number, numbers)
        facts: list[Fact] = []
        for each in reporting:
            if isinstance(each.answer, Problem):  # it repeats what was just refused
                continue
            said, count = list[wire.Loss](), len(facts)
            try:
                for place, loss in enumerate(each.losses):
                    decision, where = decisions.get(loss.id), _place_of_loss(each, place)
                    if decision is None:
                        raise self._unknown(loss.id, f"{where}id")
                    known = before.get(decision.number, ())
                    status, event = self._outcome(loss, decision, known, where)
                    if event is not None:
                        before[decision.number] = [*known, event]
                        facts.append((event, decision))
                    said.append(wire.Loss(id=loss.id, status=status))
                each.answer = each.answer or said
            except Problem as problem:
                each.answer = problem
                for event, _ in facts[count:]:
                    before[event.decision].remove(event)
                del facts[count:]
                if each.rows:
                    own = self._withdraw(each, fresh)
                    facts[:] = [fact for fact in facts if fact[0].decision not in own]
                    decisions = {id_: row for id_, row in decisions.items() if row.number not in own}
        return facts

    def _withdraw(self, refused: Request, fresh: list[DecisionRow]) -> set[int]:
        """Do not store the observations of a request whose outcomes are refused, and refuse other requests of this group that repeat
        one. Returns the numbers."""
        own = {row.number for row in refused.rows}
        fresh[:] = [row for row in fresh if row.number not in own]
        for other in self._requests:
            if not isinstance(other.answer, Problem) and any(row.number in own for row in other.rows and other.answer):
                other.answer = Unavailable(
                    "Another request with the same id was just refused. Nothing was changed; retry.", "id"
                )
        return own

    def _outcome(
        self, loss: loss_events.ReportedLoss, decision: DecisionRow, known: Sequence[Event], where: str
    ) -> tuple[loss_events.LossStatus, Event | None]:
        outcome, time = self._loop.settings.outcome, self._time
        if outcome.parts:
            return self._parts_outcome(loss, decision, known, where)
        assert loss.loss is not None
        if outcome.wait is None and not known:
            return "recorded", Event(0, decision.number, "loss", loss.loss, time, loss.key)
        matured = outcome.wait is not None and outcome.wait.is_over(decision.time, time)
        told = (known, loss.loss, loss.key, outcome)
        status, kind = loss_events.classify(*told, matured=matured, field=where + outcome.keyword)
        return status, None if kind is None else Event(0, decision.number, kind, loss.loss, time, loss.key)

    def _parts_outcome(
        self, report: loss_events.ReportedLoss, decision: DecisionRow, known: Sequence[Event], where: str
    ) -> tuple[loss_events.LossStatus, Event | None]:
        """The same for a loop with parts: the loss of the event is the formula's value unless it was reported, 0 if neither is known."""
        outcome, field = self._loop.settings.outcome, where + "parts"
        matured = outcome.wait is not None and outcome.wait.is_over(decision.time, self._time)
        status, kind = loss_events.classify_parts(known, report, outcome, matured=matured, field=field)
        if kind is None:
            return status, None
        loss, parts = report.loss, report.parts
        if loss is None and (outcome.wait is None or outcome.has_needed(parts or {})):
            loss = self._value(decision, parts or {}, field, strict=outcome.wait is None)
        if outcome.wait is None:
            self._check_costs(decision, parts or {}, field)
        text = loss_events.parts_text(parts, judged=report.loss is not None)
        return status, Event(0, decision.number, kind, loss or 0.0, self._time, report.key, text)

    def _check_costs(self, decision: DecisionRow, parts: Mapping[str, float], field: str) -> None:
        try:
            self._loop.model.check_costs(decision, parts)
        except InputError as error:
            raise Invalid(str(error), field) from None

    def _value(self, decision: DecisionRow, parts: Mapping[str, float], field: str, *, strict: bool) -> float:
        """The loss that the formula gives; without `strict`, an amount may come later."""
        outcome = self._loop.settings.outcome
        try:
            value = self._loop.model.value(decision, parts)
        except InputError as error:
            if error.field == "parts" and not strict:
                return 0.0
            raise Invalid(str(error), field) from None
        if not outcome.contains(value):
            raise Invalid(f"{outcome.keyword} must be {outcome.rule}, but the formula gives {value:g}.", field)
        return outcome.to_loss(value)

    def _read_decisions(self, transaction: Transaction, decisions: dict[str, DecisionRow]) -> None:
        """Read the decisions of the losses that are not among those of this group."""
        wanted = {each: number for each, number in self._reported.items() if each not in decisions}
        named = [each for each in wanted if not each.startswith(OWN)]
        if named:
            wanted |= zip(named, transaction.numbers(self._loop.number, named), strict=True)
        numbers = sorted({number for number in wanted.values() if number is not None})
        for row in transaction.decisions(self._loop.number, numbers):
            if row is not None:
                # A number is used again after a reset or a restore, an epoch is not.
                decisions[row.public_id] = row

    def _unknown(self, given: str, field: str) -> Unknown:
        message = f"loop {self._loop.name!r} has no decision {given!r}."
        if given.startswith(OWN):
            message += " It may have been made before the loop was reset, deleted or restored from a backup."
        return Unknown(message, field)

    def on_commit(self) -> None:
        if self._rows:
            self._loop.note_first()
        limits = self._facts[0][0] if self._facts else None
        if limits is not None and limits.kind == "limits":
            self._loop.model.note_stored(self._fresh, limits.number)
        fresh = {*self._fresh}
        self._loop.model.release(each.number for each in self._rows if each.number not in fresh)
        super().on_commit()

    def answer(self, error: Exception | None) -> None:
        if error is not None and self._rows:
            self._loop.model.release(each.number for each in self._rows)
            self._loop.model.forget_unstored()
            self._loop.numbers.void([*self._voids, *(each.number for each in self._rows)])
        self._finish(error)


def _block_key(indexed: tuple[int, DecisionRow]) -> tuple[object, ...]:
    """Decisions share a block if their numbers are consecutive: a number is looked up in the last block that starts before it."""
    index, decision = indexed
    return decision.number - index, decision.model, decision.observed, decision.epoch


def _is_repeat(row: DecisionRow, before: DecisionRow) -> bool:
    """Whether a decision of the same id was asked for alike, also with the same action of the caller if rollouts used it."""
    alike = None in (row.asked, before.asked) or row.asked == before.asked
    return alike and _question(row) == _question(before)


def _question(row: DecisionRow) -> tuple[object, ...]:
    within = row.within if row.requested is None else tuple(row.requested) or None
    asked = (row.context, within, row.observed)
    return (*asked, row.action, row.density, row.densities, row.floor) if row.observed else asked


def _conflict(request: Request, place: int, row: DecisionRow) -> Conflict:
    kind = "observations" if isinstance(request, Observe) else "decisions"
    where = "" if request.alone else f"{kind}[{place}]."
    if isinstance(request, Observe) and request.is_numbered(place):
        said = "was already reported of another decision. Give each copy of the model a text of its own as copy"
        return Conflict(f"number {request.number(place)} of this copy of the model {said}.", f"{where}number")
    return Conflict(f"id {row.id!r} was already used for a different request. Use another id.", f"{where}id")


def _place_of_loss(request: Request, place: int) -> str:
    """What precedes the fields of a loss in errors."""
    if request.alone:
        return ""
    return f"observations[{request.place_of_loss(place)}]." if isinstance(request, Observe) else f"losses[{place}]."


class WriteVoids(WriteEvents):
    """Numbers that no decision has got, if no decision is written that would store them too."""

    def __init__(self, loop: Loop, time: float, learn: Learn) -> None:
        super().__init__(loop, learn)
        self._time = time
        self._voids: list[int] = []

    def apply(self, transaction: Transaction) -> None:
        self._voids += self._loop.numbers.take_void()
        self._add(transaction, voids([] if self._loop.model.rollout is None else self._voids, self._time))

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
        self._add(transaction, voids([] if self._loop.model.rollout is None else lost, self._time))


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
        self._add(transaction, [(Event(0, number, "overdue", 0.0, self._time), made[number]) for number in made])


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
        facts: list[Fact] = []
        for each in decisions:
            value = partial(self._loop.model.value, each)
            settled = loss_events.settle(before.get(each.number, []), outcome, each.time, self._time, value)
            if settled is not None:
                kind, loss, parts = settled
                facts.append((Event(0, each.number, kind, loss, self._time, None, parts), each))
        self._add(transaction, facts)

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
