"""The progress of a rollout: a function of its plan and of the outcomes of its decisions, in order.

Each step is tested in periods. In a period, the learner's excess over what is tolerated is bounded from both sides. If
the upper bound falls below 0, "not worse" is proven, and the learner moves up a step, or a new period begins if there is
none; if the lower bound rises above 0, "worse" is proven, and it moves down. Each trial of a step has its own chances of
error, 6 / (pi n)^2 of the plan's in the n-th, so that all trials together stay below the plan's.

The guarantee limits the traffic at all times: an upper bound of what the learner has cost beyond the tolerance so far,
plus the worst that the next cohort can cost, stays within the budget. Decisions whose losses have not come are not in it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

import numpy as np

from manul.agents.rollout.confidence_bounds import Sums, radius
from manul.agents.rollout.excess_terms import (
    Outcomes,
    excess_bounds,
    excess_terms,
    guarantee_bound,
    guarantee_terms,
)
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.types import Floats, Within

COHORT = 50  # judged decisions between two looks at the evidence
_FARTHEST = 2.0**40  # decisions: a longer forecast says nothing

Reason = Literal["not worse", "worse", "guarantee"]


class Move(NamedTuple):
    """A change of the step: after how many judged decisions, from and to which step (0 is the baseline), why, and the
    bounds of the learner's excess over what is tolerated, per decision."""

    judged: int
    origin: int
    target: int
    reason: Reason
    low: float
    high: float


class Ticket(NamedTuple):
    """What the evidence needs to know of a decision: its arm, the learner's share, and its step and period."""

    learner: bool
    share: float
    level: int
    period: int


@dataclass
class Progress:
    """The state of a rollout; `level` is the number of its step, from 0, or -1 after it went back to the baseline.

    >>> progress = Progress(RolloutPlan(steps=(0.5, 1)), losses=(0.0, 1.0))
    >>> for number in range(1000):
    ...     ticket = progress.decide(learner=number % 2 == 0)
    ...     progress.judge(ticket, 0.1 if ticket.learner else 0.9)
    >>> progress.moves[0].reason, progress.traffic
    ('not worse', 0.98)
    """

    plan: RolloutPlan
    losses: Within
    level: int = 0
    period: int = 0
    judged: int = 0
    spent: float = 0.0
    traffic_sum: float = 0.0
    excess: Sums = field(default_factory=Sums)
    arms: tuple[Sums, Sums] = field(default_factory=lambda: (Sums(), Sums()))
    trials: list[int] = field(default_factory=list)
    centres: list[float] = field(default_factory=list)
    guarantee: list[Sums] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    cohort: list[tuple[Ticket, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        if not self.trials:
            self.trials, self.centres, self.guarantee = [1], [sum(self.losses) / 2], [Sums()]

    @property
    def width(self) -> float:
        """The width of the range of losses."""
        return self.losses[1] - self.losses[0]

    @property
    def allowed(self) -> float:
        """The share that the guarantee allows: a cohort of the worst decisions would not break it."""
        return (self.plan.budget - self.spent / self.width) / COHORT

    @property
    def traffic(self) -> float:
        """The share of the learner in the next decision; it changes only when a cohort is complete."""
        return max(0.0, min(self.plan.shares[self.level], self.allowed)) if self.level >= 0 else 0.0

    def decide(self, *, learner: bool) -> Ticket:
        """The ticket of the next decision, which the learner or the baseline makes."""
        return Ticket(learner, self.traffic, max(self.level, 0), self.period)

    def judge(self, ticket: Ticket, loss: float) -> None:
        """Add a decision with its loss, after all earlier decisions; the evidence is looked at once per cohort."""
        self.cohort.append((ticket, loss))
        self.judged += 1
        if len(self.cohort) == COHORT:
            tickets, losses = zip(*self.cohort, strict=True)
            self.cohort = []
            self._add(tickets, np.array(losses))
            self._review()

    def _add(self, tickets: Sequence[Ticket], losses: Floats) -> None:
        learner, shares, levels, periods = (np.array(column) for column in zip(*tickets, strict=True))
        for level in np.unique(levels):
            outcomes = Outcomes(*(column[levels == level] for column in (learner, shares, losses)))
            self.guarantee[level].add(guarantee_terms(outcomes, self.centres[level], self.plan.tolerance))
        current = periods == self.period
        if self.level >= 0 and current.any():
            outcomes = Outcomes(*(column[current] for column in (learner, shares, losses)))
            self.excess.add(excess_terms(outcomes, self.centres[self.level], self.plan.tolerance))
            self.traffic_sum += float(outcomes.shares.sum())
            for arm, rows in zip(self.arms, (outcomes.learner, ~outcomes.learner), strict=True):
                arm.add(outcomes.losses[rows])

    def _review(self) -> None:
        self.spent = sum(map(self._spent, range(len(self.guarantee)), self.guarantee, self.centres))
        if self.judged == COHORT:  # the first losses only show how large losses are
            self.centres[0] = self._mean_loss
            self._begin_period()
        elif self.level >= 0:
            self._move()

    def _spent(self, level: int, sums: Sums, centre: float) -> float:
        """An upper bound of what the learner has cost beyond the tolerance in the decisions of a step."""
        ends = self.losses if level == 0 else (centre,)  # the centre of the first step changes once
        share, tolerance = self.plan.shares[level], self.plan.tolerance
        bound = max(guarantee_bound(share, end, tolerance, self.losses) for end in ends)
        return sums.upper(bound, self.plan.error / len(self.plan.steps))

    def _has_room_for(self, level: int) -> bool:
        """Whether the guarantee would still allow more traffic on a higher step, of which nothing is known at first."""
        unknown = self._spent(level, Sums(), self._mean_loss) if level == len(self.guarantee) else 0.0
        return self.allowed - unknown / self.width / COHORT > self.plan.shares[level - 1]

    @property
    def _mean_loss(self) -> float:
        return sum(arm.total for arm in self.arms) / sum(arm.count for arm in self.arms)

    def _move(self) -> None:
        low, high = self.bounds()
        level, last = self.level, len(self.plan.steps) - 1
        if low > 0:
            self._go(level - 1, "worse", low, high)
        elif level > 0 and self.allowed < self.plan.shares[level - 1]:
            self._go(level - 1, "guarantee", low, high)
        elif high < 0 and self.excess.count >= self.plan.least:
            if level == last:
                self._begin_trial()
            elif self._has_room_for(level + 1):
                self._go(level + 1, "not worse", low, high)

    def bounds(self) -> Within:
        """The bounds, in this period, of the learner's mean excess over what is tolerated."""
        if self.traffic_sum <= 0 or self.level < 0:
            return -math.inf, math.inf
        below, above = self._term_bounds()
        up, down = self._chances()
        low, high = self.excess.lower(below, down), self.excess.upper(above, up)
        return low / self.traffic_sum, high / self.traffic_sum

    def decisions_needed(self) -> int | None:
        """About how many more decisions prove "not worse", if all goes on as in this period; None if they never do."""
        if self.level < 0 or not self.excess.count or self.excess.total >= 0:
            return None
        count, total, squares = self.excess.count, self.excess.total, self.excess.squares
        above, chance = self._term_bounds()[1], self._chances()[0]
        factor, low = 1.0, 1.0
        while total * factor + radius(squares * factor, above, chance) >= 0:
            low, factor = factor, factor * 2
            if factor * count > _FARTHEST:
                return None
        for _ in range(30):
            middle = (low + factor) / 2
            proven = total * middle + radius(squares * middle, above, chance) < 0
            low, factor = (low, middle) if proven else (middle, factor)
        return max(math.ceil(count * factor), self.plan.least) - count

    def _term_bounds(self) -> tuple[float, float]:
        share, centre = self.plan.shares[self.level], self.centres[self.level]
        return excess_bounds(share, centre, self.plan.tolerance, self.losses)

    def _chances(self) -> tuple[float, float]:
        """The chances of error of this period, of a wrong step up and of a wrong step down."""
        up = self.plan.error * 6 / (math.pi * self.trials[self.level]) ** 2
        return up, up / len(self.plan.steps)

    def _go(self, level: int, reason: Reason, low: float, high: float) -> None:
        self.moves.append(Move(self.judged, self.level + 1, level + 1, reason, low, high))
        if level == len(self.trials):
            self.trials.append(0)
            self.centres.append(self._mean_loss)
            self.guarantee.append(Sums())
        self.level = level
        self._begin_trial()

    def _begin_trial(self) -> None:
        if self.level >= 0:
            self.trials[self.level] += 1
        self._begin_period()

    def _begin_period(self) -> None:
        self.period += 1
        self.excess, self.arms, self.traffic_sum = Sums(), (Sums(), Sums()), 0.0
