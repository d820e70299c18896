"""Decisions of a rollout that are not judged yet.

If replicas make decisions too, one replica knows all decisions up to some number (`known_to`), and later ones only in part: its own, and
those that it has read. But all replicas take their numbers from one sequence, so it knows how many decisions before its own it does not
know, and each of these counts as the largest share. So the decisions up to any number keep to the guarantee, whatever the replicas know of
each other, and whether they start, hang or die: decisions after it are bounded by those who make them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from manul.agents.rollout.confidence_bounds import WholeLogs
from manul.agents.rollout.rollout_progress import Missing, Progress, Ticket


class InFlight:
    """Tickets by number, in the order of the decisions, and `total`, the sum of the learner's shares in them.

    Decisions without traffic for the learner need not be among them: they cost nothing, and their guarantee terms are at most 0.
    """

    def __init__(
        self, tickets: Mapping[int, Ticket] | None = None, total: float | None = None, *, known_to: float = math.inf
    ) -> None:
        self.tickets = dict(tickets or {})
        self.total = sum(ticket.share for ticket in self.tickets.values()) if total is None else total
        self.known_to = known_to
        # Numbers beyond `known_to` that are known, the highest, and the sum of the shares of their tickets.
        self._seen: set[int] = set()
        self._last_seen = -1
        self._later = 0.0
        # The largest terms of decisions without a loss up to `known_to`; and, less than nothing, the terms of later ones that have
        # a loss (`_early`), because the terms that count must be those of all decisions up to a number.
        self._without_loss, self._unmeasured = set(self.tickets), set(self.tickets)
        self._early: set[int] = set()
        self._measured: dict[int, tuple[int, WholeLogs]] = {}
        self._sums: dict[int, WholeLogs] = {}
        self._in_order = True
        # Shares of decisions of a period that the progress does not know yet.
        self._newer: dict[int, float] = {}
        # The terms hold at these centres, for the model of a period, in a period.
        self._centres: list[float] = []
        self._began = self._period = 0

    def add(self, number: int, ticket: Ticket) -> None:
        """Add a decision that is made now, or that was read."""
        self.note(number)
        self._in_order = self._in_order and number > next(reversed(self.tickets), -1)
        self.tickets[number] = ticket
        self.total += ticket.share
        self._without_loss.add(number)
        if number > self.known_to:
            self._later += ticket.share
        else:
            self._unmeasured.add(number)

    def note(self, number: int) -> None:
        """Note a number that is known, also if no decision has it, or one that costs nothing."""
        if number > self.known_to:
            self._seen.add(number)
            self._last_seen = max(self._last_seen, number)

    def join(self, others: Mapping[int, Ticket | None], progress: Progress) -> None:
        """Add decisions that were read, whoever made them; None are those that are not part of the rollout."""
        self.forget_before(progress.next)
        for number, ticket in others.items():
            if number <= self.known_to or number in self._seen:
                continue
            if ticket is None or ticket.share <= 0:
                self.note(number)
            else:
                self.add(number, ticket)
                if number in progress.arrived and progress.arrived[number].loss is not None:
                    self.arrive(number)
        self._know_more(progress)
        if not self._in_order:
            self.tickets, self._in_order = dict(sorted(self.tickets.items())), True

    def _know_more(self, progress: Progress) -> None:
        """Find out up to which number all decisions are known: read, made here, or learned."""
        number = int(self.known_to) + 1
        while number in self._seen or number in progress.arrived:
            self._begin_to_know(number, progress)
            number += 1

    def _begin_to_know(self, number: int, progress: Progress) -> None:
        arrived, ticket = progress.arrived.get(number), self.tickets.get(number)
        if number in self._early:
            self._early.discard(number)
            self._forget_terms(number)
        self.known_to = number
        if ticket is not None:
            self._later -= ticket.share
        elif arrived is not None and arrived.ticket is not None and arrived.ticket.share > 0:
            self.add(number, arrived.ticket)
        if arrived is not None and arrived.loss is not None:
            self.arrive(number)
        elif number in self._without_loss:
            self._unmeasured.add(number)
        self._seen.discard(number)
        if not self._seen:
            self._later = 0.0  # without the rounding errors of the sum

    def arrive(self, number: int) -> None:
        """Note that the loss of a decision has come, or will not be waited for."""
        if number in self._early:
            return
        self._without_loss.discard(number)
        self._unmeasured.discard(number)
        self._forget_terms(number)
        if number > self.known_to:
            self._early.add(number)
            self._unmeasured.add(number)

    def _forget_terms(self, number: int) -> None:
        self._newer.pop(number, None)
        if number in self._measured:
            slot, terms = self._measured.pop(number)
            self._sums[slot].remove(terms)

    def forget_before(self, number: int) -> None:
        """Forget decisions that are judged or left out."""
        if number - 1 > self.known_to:
            for early in [each for each in self._early if each < number]:
                self._early.discard(early)
                self._unmeasured.discard(early)
                self._forget_terms(early)
            for seen in [each for each in self._seen if each < number]:
                self._seen.discard(seen)
                self._later -= self.tickets[seen].share if seen in self.tickets else 0.0
            self._later = self._later if self._seen else 0.0
            self.known_to = number - 1
        while self.tickets and (first := next(iter(self.tickets))) < number:
            self.total -= self.tickets.pop(first).share
            self.arrive(first)
        if not self.tickets:
            self.total = 0.0

    def share(self, progress: Progress, number: int | None = None) -> float:
        """The share of the learner in the next decision, which has this number if others make decisions too."""
        hidden = 0.0 if number is None else self._unknown(number, progress) * max(progress.plan.shares)
        return progress.share(self.total + hidden, lambda _: self.worst(progress, hidden))

    def _unknown(self, number: int, progress: Progress) -> int:
        """How many decisions before a number are not known here."""
        known_to = max(self.known_to, progress.next - 1)
        if number <= known_to:
            return 0
        below = len(self._seen) if number > self._last_seen else sum(each < number for each in self._seen)
        return max(0, number - 1 - int(known_to) - below)

    def worst(self, progress: Progress, hidden: float = 0.0) -> Missing:
        """The largest terms that decisions without a loss can get, and the shares of those whose terms are not known.

        `hidden` are shares of decisions that are not known at all.
        """
        # The centre of the first step changes once, and slots change with the model; without others, no decision is newer.
        changed = self._period != progress.period and self.known_to < math.inf
        if changed or self._centres != progress.centres[: len(self._centres)] or self._began != progress.began:
            self._measured, self._sums, self._newer = {}, {}, {}
            self._unmeasured = {number for number in self._without_loss if number <= self.known_to} | self._early
        self._centres, self._began, self._period = list(progress.centres), progress.began, progress.period
        for number in self._unmeasured:
            self._measure(number, progress)
        self._unmeasured.clear()
        return Missing(self._sums, self._later + hidden + sum(self._newer.values()))

    def _measure(self, number: int, progress: Progress) -> None:
        if number in self._early:
            arrived = progress.arrived.get(number)
            if arrived is None or arrived.ticket is None or arrived.loss is None:
                return
            slot, terms = progress.slot(arrived.ticket), progress.known_terms(arrived.ticket, arrived.loss).negative
        else:
            ticket = self.tickets[number]
            if ticket.period > progress.period:
                self._newer[number] = ticket.share
                if ticket.level >= len(progress.guarantee):
                    return
            worst = progress.worst_term(ticket)
            # Of a newer period, its model, and so its slot, may be another one; then it adds nothing to this one.
            worst = max(worst, 0.0) if ticket.period > progress.period else worst
            slot, terms = progress.slot(ticket), WholeLogs.of(worst)
        self._measured[number] = slot, terms
        self._sums.setdefault(slot, WholeLogs()).add(terms)
