"""The progress of a rollout: a function of its plan and of the outcomes of its decisions, in order.

Each step is tested in periods. In a period, the learner's excess over what is tolerated is bounded from both sides, as a
mean in which a decision counts the more, the closer the bounds of its term are. If the upper bound falls below 0, "not
worse" is proven, and the learner moves up a step, or a new period begins if there is none; if the lower bound rises above
0, "worse" is proven, and it moves down. The chance of error of the plan is divided evenly between the steps; of its part,
the n-th trial of a step gets 6 / (pi n)^2, which sum to 1.

The guarantee limits the traffic at all times: an upper bound of what the learner has cost beyond the tolerance stays within
the budget. There are two such bounds, and the lower one counts. The first bounds the expected values of the judged decisions
and adds the most that the expected values of all others can be, their shares. The second bounds the expected values of all
decisions, with the largest terms that those without a loss can still get. It uses the losses that have come, so decisions
that wait for an earlier one cost little.

Losses may come in any order. Decisions are judged in the order of their numbers: one without a loss holds up the others
until it is left out. Decisions that are left out count in all bounds, as if their losses were all as low as possible, and as
if they were all as high as possible. So they cancel out if both arms are left out equally often, and if the learner is left out
more often, the surplus counts as the worst possible. While the rates are proven to differ, the learner does not move up.

A new model starts at the first step. What earlier models saved does not count for it; what they cost does.

All sums are in widths of the range of losses, so that no range is too wide for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from typing import Any, Literal, NamedTuple

import numpy as np

from manul.actions.decision import Within
from manul.agents.rollout.confidence_bounds import Sums, WholeSums, radius
from manul.agents.rollout.excess_terms import (
    Outcomes,
    excess_bounds,
    excess_terms,
    guarantee_bound,
    guarantee_term,
    guarantee_terms,
    unknown_terms,
)
from manul.agents.rollout.left_out import LeftOut
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.utils.validation import Floats

COHORT = 50  # judged decisions between two looks at the evidence
_FARTHEST = 2.0**40  # decisions: a longer forecast says nothing
SMALLEST = 1e-9  # of the share of a step: less is nothing, so that a budget is used up at some time

Reason = Literal["not worse", "worse", "aborted", "model replaced"]


class Move(NamedTuple):
    """A change of the step: after how many judged decisions, from and to which step (0 is the baseline), why, and the
    bounds of the learner's excess over what is tolerated, per decision; None if nothing is known."""

    judged: int
    origin: int
    target: int
    reason: Reason
    low: float | None
    high: float | None


class Ticket(NamedTuple):
    """What the evidence needs to know of a decision: its arm, the learner's share, and its step and period."""

    learner: bool
    share: float
    level: int
    period: int


WorstCase = Callable[["Progress"], Mapping[int, WholeSums] | None]


@dataclass
class Side:
    """The terms of a period divided by their bounds on one side, and the sum of the shares divided by them."""

    terms: Sums = field(default_factory=Sums)
    weight: float = 0.0

    def add(self, terms: Floats, shares: Floats, bounds: Floats) -> None:
        self.terms.add(terms / bounds)
        self.weight += float((shares / bounds).sum())

    def add_unknown(self, terms: Within, share: float, bound: float) -> None:
        """Add the term of a decision whose loss never came, with the lowest and the highest loss."""
        self.terms.add_unknown(*(term / bound for term in terms))
        self.weight += share / bound


@dataclass
class Progress:
    """The state of a rollout; `level` is the number of its step, from 0, or -1 after it went back to the baseline.

    `spent` is an upper bound of what the learner has cost beyond the tolerance in complete cohorts, in widths of the
    range of losses. `next` is the lowest number of a decision that is not judged, `arrived` the losses of later ones, None if
    one is left out, and `latest` the highest number with a loss. `known` are the terms of losses that are not in a complete
    cohort. A rollout that is `held` moves down, but not up. `began` is the first period of the present model, `guarantee` has
    the terms of its decisions by step, and `earlier` those of earlier models; `owed` is what the rollout began with.
    `proven` says whether the learner was proven not to be worse in the last step, or to reach it. `beyond` counts the losses that
    were beyond the range, and count as its ends.

    >>> progress = Progress(RolloutPlan(steps=(0.5, 1)), losses=(0.0, 1.0))
    >>> for number in range(1000):
    ...     ticket = progress.ticket(learner=number % 2 == 0, share=progress.share())
    ...     progress.add(number, ticket, 0.1 if ticket.learner else 0.9)
    >>> progress.moves[0].reason, progress.share()
    ('not worse', 0.98)
    """

    plan: RolloutPlan
    losses: Within
    level: int = 0
    period: int = 0
    judged: int = 0
    spent: float = 0.0
    next: int = 0
    latest: int = -1
    held: bool = False
    began: int = 0
    owed: float = 0.0
    proven: bool = False
    below: Side = field(default_factory=Side)
    above: Side = field(default_factory=Side)
    arms: tuple[Sums, Sums] = field(default_factory=lambda: (Sums(), Sums()))
    trials: list[int] = field(default_factory=list)
    centres: list[float] = field(default_factory=list)
    guarantee: list[Sums] = field(default_factory=list)
    earlier: list[Sums] = field(default_factory=list)
    known: dict[int, WholeSums] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)
    moves: list[Move] = field(default_factory=list)
    cohort: list[tuple[Ticket, float]] = field(default_factory=list)
    cohort_shares: float = 0.0
    left_shares: float = 0.0
    beyond: int = 0
    arrived: dict[int, tuple[Ticket | None, float | None]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.trials:
            self.trials, self.centres, self.guarantee = [1], [sum(self.scaled) / 2], [Sums()]
            self.spent = self.owed
        self.count_known()

    @property
    def width(self) -> float:
        return self.losses[1] - self.losses[0]

    @property
    def scaled(self) -> Within:
        """The range of losses in widths of it."""
        return self.losses[0] / self.width, self.losses[1] / self.width

    def allowed(self, in_flight: float = 0.0, worst: WorstCase | None = None) -> float:
        """The share that the guarantee allows: a cohort of the worst decisions would not break it.

        `in_flight` is the sum of the learner's shares in the decisions from `next` on, the most that they can cost. `worst`
        returns, for each slot, the sums of the largest terms that decisions without a loss can get; None if not known.
        """
        spent = self.spent + self.cohort_shares + self.left_shares + in_flight
        needed = COHORT * self.plan.shares[max(self.level, 0)]
        if worst is not None and in_flight > 0 and self.judged >= COHORT and self.plan.budget - spent < needed:
            missing = worst(self)
            spent = spent if missing is None else min(spent, self._spent_in_all(missing))
        return (self.plan.budget - spent) / COHORT

    def share(self, in_flight: float = 0.0, worst: WorstCase | None = None) -> float:
        """The share of the learner in the next decision."""
        if self.level < 0:
            return 0.0
        share = min(step := self.plan.shares[self.level], self.allowed(in_flight, worst))
        return share if share >= SMALLEST * step else 0.0

    def worst_term(self, ticket: Ticket) -> tuple[float, float]:
        """The largest guarantee term that a decision without a loss can get, and its largest square."""
        low, high = self.scaled
        terms = [self._guarantee_term(ticket, loss) for loss in (low, high, min(max(0.0, low), high))]
        return max(terms), max(term**2 for term in terms)

    def _guarantee_term(self, ticket: Ticket, loss: float) -> float:
        given: Any = {"learner": ticket.learner, "share": ticket.share, "tolerance": self.plan.tolerance}
        return guarantee_term(loss=loss, centre=self.centres[ticket.level], **given)

    def slot(self, ticket: Ticket) -> int:
        """Where the guarantee terms of a decision are added up: its step, or beyond the steps if an earlier model made it."""
        return ticket.level + (0 if ticket.period >= self.began else len(self.plan.steps))

    def _spent_in_all(self, missing: Mapping[int, WholeSums]) -> float:
        """An upper bound of what the learner has cost beyond the tolerance, also in decisions that are not in a complete cohort."""
        nothing, steps = WholeSums(), len(self.plan.steps)
        present, earlier = (
            [sums.plus(self.known[slot], missing.get(slot, nothing)) for slot, sums in enumerate(models, start)]
            for start, models in ((0, self.guarantee), (steps, self.earlier))
        )
        return self._spent_by(present, earlier)

    def _spent_by(self, present: Sequence[Sums], earlier: Sequence[Sums]) -> float:
        """What the present model and earlier ones have cost; what earlier models saved does not count."""
        before = sum(self._spent(step, sums) for step, sums in enumerate(earlier) if sums != Sums())
        return self.owed + max(before, 0.0) + sum(self._spent(step, sums) for step, sums in enumerate(present))

    def count_known(self) -> None:
        """Add up the terms of losses that are not in a complete cohort; before the first cohort, no centre is final."""
        slots = [*range(len(self.guarantee)), *(len(self.plan.steps) + step for step in range(len(self.earlier)))]
        self.known = {slot: WholeSums() for slot in slots}
        if self.judged >= COHORT:
            for ticket, loss in (*self.cohort, *self.arrived.values()):
                self._count_loss(ticket, loss)

    def _count_loss(self, ticket: Ticket | None, loss: float | None, times: int = 1) -> None:
        if ticket is not None and loss is not None:
            term = self._guarantee_term(ticket, loss / self.width)
            self.known[self.slot(ticket)].add(term, term**2, times)

    def ticket(self, *, learner: bool, share: float) -> Ticket:
        """The ticket of a decision that is made now, with a share, by the learner or the baseline."""
        return Ticket(learner, share, max(self.level, 0), self.period)

    def add(self, number: int, ticket: Ticket | None, loss: float | None) -> None:
        """Add the loss of a decision, once, or None if it is left out. A decision without a ticket is not part of the rollout."""
        if number < self.next or number in self.arrived:
            return
        if loss is not None:
            given, loss = loss, min(max(loss, self.losses[0]), self.losses[1])
            self.beyond += ticket is not None and loss != given
        self.arrived[number] = ticket, loss
        if ticket is not None and loss is not None:
            if self.judged >= COHORT:
                self._count_loss(ticket, loss)
            self.latest = max(self.latest, number)
        while self.next in self.arrived:
            ticket, loss = self.arrived.pop(self.next)
            self.next += 1
            if ticket is not None and loss is not None:
                self._judge(ticket, loss)
            elif ticket is not None:
                self._leave_out(ticket)

    def overdue(self, most: int) -> list[int]:
        """The first numbers without a loss that are not waited for any more: a decision that is `patience` later has its loss."""
        return self.waiting(self.latest - self.plan.later_decisions + 1, most)

    def waiting(self, end: int, most: int) -> list[int]:
        """The first numbers below `end` without a loss that are not left out."""
        return list(islice((number for number in range(self.next, end) if number not in self.arrived), most))

    @property
    def missing(self) -> range:
        """The numbers without a loss for which later losses wait."""
        return range(self.next, min(self.arrived, default=self.next))

    def go_back(self, reason: Reason = "aborted") -> None:
        """Go back to the baseline, because the owner says so."""
        if self.level >= 0:
            self._go(-1, reason, *self.bounds())

    def restart(self) -> None:
        """Begin again at the first step with what is left of the budget, because the learner was replaced by another one."""
        if self.level < 0:
            return
        pairs = zip_longest(self.earlier, self.guarantee, fillvalue=Sums())
        self.earlier = [one.merged(other) for one, other in pairs]
        self.guarantee, self.left_out = [Sums()], LeftOut()
        self._go(0, "model replaced", -math.inf, math.inf)
        self.began = self.period
        self.spent = self._spent_by([], self.earlier)
        self.count_known()

    def _judge(self, ticket: Ticket, loss: float) -> None:
        """The evidence is looked at once per cohort."""
        self.cohort.append((ticket, loss))
        self.cohort_shares += ticket.share
        self.judged += 1
        if ticket.period >= self.began:
            self.left_out.count(learner=ticket.learner, share=ticket.share)
        if len(self.cohort) == COHORT:
            tickets, losses = zip(*self.cohort, strict=True)
            for counted in self.cohort if self.judged > COHORT else ():
                self._count_loss(*counted, times=-1)
            self.cohort, self.cohort_shares = [], 0.0
            self._add(tickets, np.array(losses) / self.width)
            self._review()

    def _leave_out(self, ticket: Ticket) -> None:
        """Add a decision whose loss never came. Until the next review, it counts as the worst possible."""
        self.left_shares += ticket.share
        if ticket.period >= self.began:
            self.left_out.add(learner=ticket.learner, share=ticket.share)
        given: Any = {"learner": ticket.learner, "share": ticket.share, "tolerance": self.plan.tolerance}
        terms = unknown_terms(centre=self.centres[ticket.level], losses=self.scaled, **given)
        self._sums(ticket).add_unknown(*terms.guarantee)
        if self.level >= 0 and ticket.period == self.period and ticket.share > 0:
            settings = self.centres[self.level], self.plan.tolerance, self.scaled
            bounds = excess_bounds(np.array([ticket.share]), *settings)
            for side, bound in zip((self.below, self.above), bounds, strict=True):
                side.add_unknown(terms.excess, ticket.share, float(bound[0]))

    def _sums(self, ticket: Ticket) -> Sums:
        """The sums of the guarantee that a decision belongs to."""
        return (self.guarantee if ticket.period >= self.began else self.earlier)[ticket.level]

    def _add(self, tickets: Sequence[Ticket], losses: Floats) -> None:
        learner, shares, levels, periods = (np.array(column) for column in zip(*tickets, strict=True))
        for models, made in ((self.guarantee, periods >= self.began), (self.earlier, periods < self.began)):
            for level in set(levels[made].tolist()):
                outcomes = Outcomes(*(column[made & (levels == level)] for column in (learner, shares, losses)))
                models[level].add(guarantee_terms(outcomes, self.centres[level], self.plan.tolerance))
        current = (periods == self.period) & (shares > 0)  # without traffic there is nothing to compare
        if self.level >= 0 and current.any():
            outcomes = Outcomes(*(column[current] for column in (learner, shares, losses)))
            settings = self.centres[self.level], self.plan.tolerance
            terms, bounds = excess_terms(outcomes, *settings), excess_bounds(outcomes.shares, *settings, self.scaled)
            for side, bound in zip((self.below, self.above), bounds, strict=True):
                side.add(terms, outcomes.shares, bound)
            for arm, rows in zip(self.arms, (outcomes.learner, ~outcomes.learner), strict=True):
                arm.add(outcomes.losses[rows])

    def _review(self) -> None:
        self.spent, self.left_shares = self._spent_by(self.guarantee, self.earlier), 0.0
        if self.judged == COHORT:  # the first losses only show how large losses are
            if self.tested:  # none of them counts if the owner aborted the rollout or replaced the model before
                self.centres[0] = self._mean_loss
            self.count_known()
            self._begin_period()
        elif self.level >= 0:
            self._move()

    def _spent(self, level: int, sums: Sums) -> float:
        """An upper bound of what the learner has cost beyond the tolerance in the decisions of a step."""
        centre = self.centres[level] if level < len(self.centres) else self._mean_loss
        ends = self.scaled if level == 0 else (centre,)  # the centre of the first step changes once
        share, tolerance = self.plan.shares[level], self.plan.tolerance
        bound = max(guarantee_bound(share, end, tolerance, self.scaled) for end in ends)
        return sums.upper(bound, self.plan.error / len(self.plan.steps))

    def _missing_room(self, level: int) -> float:
        """How much less must be spent before a higher step gets more traffic; nothing is known of a new step at first."""
        unknown = self._spent(level, Sums()) if level == len(self.guarantee) else 0.0
        needed = COHORT * self.plan.shares[level - 1]
        waiting = self.cohort_shares + self.left_shares
        waiting += math.fsum(each.share for each, _ in self.arrived.values() if each is not None)
        return min(self.spent + waiting, self._spent_in_all({})) + unknown + needed - self.plan.budget

    @property
    def _mean_loss(self) -> float:
        mean = sum(arm.total for arm in self.arms) / sum(arm.count for arm in self.arms)
        return min(max(mean, self.scaled[0]), self.scaled[1])  # rounding can put it just outside

    def _move(self) -> None:
        (low, high), level = self.bounds(), self.level
        if low > 0:
            self._go(level - 1, "worse", low, high)
        elif high < 0 and not self.held and not self.uneven and self.tested >= self.plan.least_decisions:
            if level == len(self.plan.steps) - 1:
                self.proven = True
                self._begin_trial()
            elif self._missing_room(level + 1) < 0:
                self._go(level + 1, "not worse", low, high)

    @property
    def uneven(self) -> bool:
        """Whether the arms are proven to be left out at different rates."""
        return self.left_out.differ(self.plan.error)

    @property
    def tested(self) -> int:
        """The number of decisions of this period with losses."""
        return self.above.terms.count

    def bounds(self) -> Within:
        """The bounds, in this period, of the learner's mean excess over what is tolerated."""
        if not (self.above.weight > 0 and self.level >= 0):
            return -math.inf, math.inf
        low = self.below.terms.lower(1.0, self._chance) / self.below.weight
        high = self.above.terms.upper(1.0, self._chance) / self.above.weight
        return low * self.width, high * self.width

    def decisions_needed(self) -> int | None:
        """About how many more decisions the next step takes, if all goes on as in this period; None if it never comes."""
        terms, level = self.above.terms, self.level
        if not 0 <= level < len(self.plan.steps) - 1 or terms.total >= 0 or self.uneven:
            return None
        chance, low, high = self._chance, 1.0, 1.0
        total, squares = max(terms.cases, key=lambda case: case[0] + radius(case[1], 1.0, chance))
        if total >= 0:
            return None
        while total * high + radius(squares * high, 1.0, chance) >= 0:
            low, high = high, high * 2
            if high * terms.count > _FARTHEST:
                return None
        for _ in range(30):
            middle = (low + high) / 2
            proven = total * middle + radius(squares * middle, 1.0, chance) < 0
            low, high = (low, middle) if proven else (middle, high)
        missing, spent = self._missing_room(level + 1), self.guarantee[level]
        if missing >= 0 and spent.total >= 0:
            return None
        for_room = math.ceil(max(missing, 0.0) * spent.count / -spent.total) if missing >= 0 else 0
        return max(math.ceil(terms.count * high) - terms.count, self.plan.least_decisions - terms.count, for_room)

    @property
    def _chance(self) -> float:
        """The chance of error of this period on either side."""
        return self.plan.error / len(self.plan.steps) * 6 / (math.pi * self.trials[self.level]) ** 2

    def _go(self, level: int, reason: Reason, low: float, high: float) -> None:
        known = [end if math.isfinite(end) else None for end in (low, high)]
        self.moves.append(Move(self.judged, self.level + 1, level + 1, reason, *known))
        if level == len(self.trials):
            self.trials.append(0)
            self.centres.append(self._mean_loss)
        if level == len(self.guarantee):
            self.guarantee.append(Sums())
            self.known[level] = WholeSums()
        self.level, self.proven = level, reason == "not worse" and level == len(self.plan.steps) - 1
        self._begin_trial()

    def _begin_trial(self) -> None:
        if self.level >= 0:
            self.trials[self.level] += 1
        self._begin_period()

    def _begin_period(self) -> None:
        self.period += 1
        self.below, self.above, self.arms = Side(), Side(), (Sums(), Sums())
