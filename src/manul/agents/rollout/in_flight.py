"""Decisions of a rollout that are not judged yet."""

from __future__ import annotations

from collections.abc import Mapping

from manul.agents.rollout.rollout_progress import Ticket


class InFlight:
    """Tickets by number, in the order of the decisions, and `total`, the sum of the learner's shares in them.

    >>> decisions = InFlight()
    >>> decisions.add(7, Ticket(learner=True, share=0.25, level=0, period=0))
    >>> decisions.forget_before(8)
    >>> decisions.total
    0.0
    """

    def __init__(self, tickets: Mapping[int, Ticket] | None = None, total: float | None = None) -> None:
        self.tickets = dict(tickets or {})
        self.total = sum(ticket.share for ticket in self.tickets.values()) if total is None else total

    def add(self, number: int, ticket: Ticket) -> None:
        """Add a decision that is made now."""
        self.tickets[number] = ticket
        self.total += ticket.share

    def forget_before(self, number: int) -> None:
        """Forget decisions that are judged or left out."""
        while self.tickets and (first := next(iter(self.tickets))) < number:
            self.total -= self.tickets.pop(first).share
        if not self.tickets:
            self.total = 0.0  # without the rounding errors of the sum
