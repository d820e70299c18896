"""Decisions of a rollout that are not judged yet."""

from __future__ import annotations

from collections.abc import Mapping

from manul.agents.rollout.confidence_bounds import WholeLogs
from manul.agents.rollout.rollout_progress import Progress, Ticket


class InFlight:
    """Tickets by number, in the order of the decisions, and `total`, the sum of the learner's shares in them.

    Decisions without traffic for the learner need not be among them: they cost nothing, and their guarantee terms are at most 0.
    """

    def __init__(self, tickets: Mapping[int, Ticket] | None = None, total: float | None = None) -> None:
        self.tickets = dict(tickets or {})
        self.total = sum(ticket.share for ticket in self.tickets.values()) if total is None else total
        self._copies: dict[int, int] = {}
        self._without_loss, self._unmeasured = set(self.tickets), set(self.tickets)
        # The largest terms of decisions without a loss, and their sums by slot, at these centres and for the model of a period.
        self._largest: dict[int, tuple[int, WholeLogs]] = {}
        self._sums: dict[int, WholeLogs] = {}
        self._centres: list[float] = []
        self._began = 0

    def add(self, number: int, ticket: Ticket, copies: int = 1) -> None:
        """Add a decision that is made now; it counts as several if replicas make others that are not known here."""
        self.tickets[number] = ticket
        self.total += ticket.share * copies
        if copies > 1:
            self._copies[number] = copies
        self._without_loss.add(number)
        self._unmeasured.add(number)

    def join(self, others: Mapping[int, Ticket]) -> None:
        """Add decisions that others made; those that are known here already stay as they are."""
        for number, ticket in others.items():
            if number not in self.tickets and ticket.share > 0:
                self.add(number, ticket)
        self.tickets = dict(sorted(self.tickets.items()))

    def arrive(self, number: int) -> None:
        """Note that the loss of a decision has come, or will not be waited for."""
        self._without_loss.discard(number)
        self._unmeasured.discard(number)
        if number in self._largest:
            slot, largest = self._largest.pop(number)
            self._sums[slot].remove(largest)

    def forget_before(self, number: int) -> None:
        """Forget decisions that are judged or left out."""
        while self.tickets and (first := next(iter(self.tickets))) < number:
            self.total -= self.tickets.pop(first).share * self._copies.pop(first, 1)
            self.arrive(first)
        if not self.tickets:
            self.total = 0.0  # without the rounding errors of the sum

    def share(self, progress: Progress) -> float:
        """The share of the learner in the next decision."""
        return progress.share(self.total, self.worst)

    def worst(self, progress: Progress) -> Mapping[int, WholeLogs] | None:
        """For each slot, the largest terms that decisions without a loss can get; None if some are not known."""
        if self._copies:  # those of other replicas
            return None
        # The centre of the first step changes once, and slots change with the model.
        if self._centres != progress.centres[: len(self._centres)] or self._began != progress.began:
            self._largest, self._sums, self._unmeasured = {}, {}, set(self._without_loss)
        self._centres, self._began = list(progress.centres), progress.began
        for number in self._unmeasured:
            ticket = self.tickets[number]
            slot, largest = progress.slot(ticket), WholeLogs.of(progress.worst_term(ticket))
            self._largest[number] = slot, largest
            self._sums.setdefault(slot, WholeLogs()).add(largest)
        self._unmeasured.clear()
        return self._sums
