"""The limits in expectation of a loop: a budget, and a rate to keep, as functions of its settings and its events alone.

What is expected of a decision is stored beside it, in an event of the kind "limits", and counted by the learner in the order of
events, as costs are. What was drawn and is not counted yet is kept here, so that no decision spends what another one may need.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from manul.actions.decision import Decision
from manul.agents.budget_account import Account, Booking
from manul.agents.budget_report import BudgetReport, KeepReport
from manul.agents.pacing import Expectation
from manul.outcomes.budgets import Moment
from manul.service import wire
from manul.service.engine.loop_agent import ledger_of
from manul.service.engine.losses import parts_of
from manul.service.store import OUTCOMES, Event
from manul.service.store.blocks import DecisionRow

if TYPE_CHECKING:
    from manul.agents.limited_auto import Ledger

MOST_OWN = 10_000  # events, many more than are ever between two writes
Number = float | None  # null in JSON if it is not known


class Booked(msgspec.Struct, array_like=True, frozen=True):
    """What is expected of a decision, when it was made, and what is held back for it."""

    number: int
    expected: tuple[Number, Number, Number, Number, Number]
    moment: tuple[float, float, float] | None = None
    booking: tuple[float, int, float, float, Number] | None = None


class LimitsEvent(msgspec.Struct, omit_defaults=True):
    """What an event of the kind "limits" says: decisions that were made, or the amount of the budget from now on; in a loop that was
    reset, also what had been spent in a period."""

    booked: list[Booked] = []
    amount: float | None = None
    owed: tuple[float, float] | None = None


class Owed(NamedTuple):
    """The amount of a budget, and what was spent in its current period."""

    amount: float
    period: float
    spent: float


_decoder = msgspec.json.Decoder(LimitsEvent)


def text_of(event: LimitsEvent) -> str:
    return msgspec.json.encode(event).decode()


class LoopLimits:
    """The decisions of this process that the model has not counted yet. Its methods are called under the lock of the model."""

    def __init__(self) -> None:
        self._drawn: dict[int, Booked] = {}
        self._events: dict[int, int] = {}  # of decisions that are stored
        self._live: Account | None = None
        self.own: set[int] = set()  # the latest events whose decisions are here, or were

    def draw(
        self,
        agent: Any,
        numbers: Sequence[int],
        keys: Sequence[int],
        contexts: Sequence[Any],
        withins: Sequence[Any],
        times: Sequence[datetime],
        *,
        levels: bool,
    ) -> list[Decision]:
        """Draw decisions, each from what the ones before leave of the budget."""
        ledger, decisions = ledger_of(agent), list[Decision]()
        account = self._account(ledger)
        try:
            for number, key, context, within, at in zip(numbers, keys, contexts, withins, times, strict=True):
                moment = None if account is None else account.latest_moment(at)
                drawn, expected, booking = ledger.draw(account, moment, key, context, within, levels=levels)
                if account is not None:
                    assert moment is not None
                    account.book(moment, expected, booking, number=number)
                self.note(number, expected, moment, booking)
                decisions.append(drawn)
        except BaseException:
            self.release(numbers)
            raise
        return decisions

    def note(
        self, number: int, expected: Expectation, moment: Moment | None = None, booking: Booking | None = None
    ) -> None:
        """Remember a decision that was drawn, until it is counted or released."""
        kept: Any = None if booking is None else (*booking[:4], _known(booking.expected))
        known: Any = tuple(map(_known, expected))
        at = None if moment is None else (moment.period, moment.length, moment.share)
        self._drawn[number] = Booked(number, known, at, kept)

    def event(self, numbers: Iterable[int]) -> str | None:
        """The text of an event about decisions that were drawn here; None if there are none."""
        booked = [self._drawn[number] for number in numbers if number in self._drawn]
        return text_of(LimitsEvent(booked)) if booked else None

    def stored(self, numbers: Iterable[int], event: int) -> None:
        """Note the event of decisions."""
        self._events.update((number, event) for number in numbers if number in self._drawn)
        self._add_own(event)

    def release(self, numbers: Iterable[int]) -> None:
        """Forget decisions that were not made."""
        for number in numbers:
            if self._drawn.pop(number, None) is not None:
                self._live = None

    def take_stored(self, events: Iterable[Event]) -> None:
        """Take decisions that are stored but not counted, because the loop is paused, from their events."""
        for event in events:
            if event.kind == "limits" and event.parts is not None:
                for each in _decoder.decode(event.parts).booked:
                    self._drawn[each.number], self._events[each.number] = each, event.number
                self._add_own(event.number)
        self._live = None

    def _add_own(self, event: int) -> None:
        self.own.add(event)
        if len(self.own) > 2 * MOST_OWN:
            self.own = {*sorted(self.own)[MOST_OWN:]}

    def forget_until(self, event: int) -> None:
        """Forget the decisions that a model has counted, which contains an event."""
        for number in [number for number, own in self._events.items() if own <= event]:
            self._events.pop(number)
            self._drawn.pop(number, None)
        self._live = None

    def count(self, agent: Any, event: Event, decision: DecisionRow | None) -> None:
        """Count decisions, a change of the amount, or the outcome of a decision of this loop."""
        ledger = ledger_of(agent)
        if event.kind == "limits":
            assert event.parts is not None
            self._count(ledger, _decoder.decode(event.parts))
        elif event.kind in OUTCOMES and decision is not None and not decision.observed:
            reported = parts_of(event)
            if reported is None or (decision.ticket is not None and not decision.ticket.learner):
                return
            ledger.settle(decision.number, decision.action, decision.context, reported.parts)
            self._live = None

    def _count(self, ledger: Ledger, said: LimitsEvent) -> None:
        for each in said.booked:
            moment = None if each.moment is None else Moment(*each.moment)
            ledger.book(each.number, moment, Expectation(*map(_number, each.expected)), _booking(each))
            self._drawn.pop(each.number, None)
            self._events.pop(each.number, None)
        if said.amount is not None:
            ledger.set_amount(said.amount)
        if said.owed is not None and ledger.account is not None:
            ledger.account.owe(*said.owed)
        self._live = None

    def _account(self, ledger: Ledger) -> Account | None:
        """The account with the decisions that are not counted yet."""
        if ledger.account is None:
            return None
        if self._live is None:
            self._live = ledger.account.fork()
            for each in self._drawn.values():
                if each.moment is not None:
                    expected = Expectation(*map(_number, each.expected))
                    self._live.book(Moment(*each.moment), expected, _booking(each), number=each.number)
        return self._live

    def owed(self, agent: Any) -> Owed | None:
        """What the account says, for a loop that replaces this one."""
        account = self._account(ledger_of(agent))
        return None if account is None else Owed(account.budget.amount, account.period, account.spent + account.held)

    def budget(self, agent: Any, at: datetime) -> wire.Budget | None:
        """The state of the budget at a time."""
        ledger = ledger_of(agent)
        account = self._account(ledger)
        if account is None or ledger.account is None:
            return None
        now = account.fork()
        now.advance(now.latest_moment(at))
        report, budget = BudgetReport.of(now), now.budget
        return wire.Budget(
            formula=str(budget.spending.formula),
            amount=budget.amount,
            period=budget.period,
            started=now.period if math.isfinite(now.period) and isinstance(budget.period, str) else None,
            available=report.available,
            spent=report.spent,
            held=report.held,
            left=report.available - report.spent - report.held,
            waiting=len(ledger.account.open) + sum(each.booking is not None for each in self._drawn.values()),
            pace=_known(report.pace),
            forecast=_known(report.forecast),
            price=report.price,
            planned=report.planned.tolist(),
            spent_by_slot=report.spent_by_slot.tolist(),
            latest=[
                wire.BudgetPeriod(
                    started=each.start, available=each.available, spent=each.spent, held=each.held, price=each.price
                )
                for each in report.periods
            ],
            trouble=_early_end(report, now.share),
        )


def kept(agent: Any) -> wire.Kept | None:
    """The state of what an agent keeps."""
    bound = ledger_of(agent).bound
    if bound is None:
        return None
    report = KeepReport.of(bound)
    return wire.Kept(
        formula=report.formula,
        sign=bound.kept.sign,
        value=report.value,
        mean=_known(report.mean),
        outcomes=report.outcomes,
        price=report.price,
        reachable=_known(report.reachable),
        trouble=report.doubt,
    )


def _early_end(report: BudgetReport, share: float) -> str | None:
    left = report.available - report.spent - report.held
    if left > 0.01 * report.available or share > 0.95:
        return None
    return f"The budget was gone after {share:.0%} of its period. Decisions decline until it ends."


def _booking(booked: Booked) -> Booking | None:
    if booked.booking is None:
        return None
    return Booking(*booked.booking[:4], _number(booked.booking[4]))


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _number(known: float | None) -> float:
    return math.nan if known is None else known
