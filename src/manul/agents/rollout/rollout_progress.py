"""The progress of a rollout: a function of its plan and of the outcomes of its decisions, in order.

Each step is tested in periods. In a period, the learner's excess over what is tolerated is bounded from both sides, as a
mean in which a decision counts the more, the closer the bounds of its term are. If the upper bound falls below 0, "not
worse" is proven, and the learner moves up a step, or a new period begins if there is none; if the lower bound rises above
0, "worse" is proven, and it moves down. The chance of a wrong step down is divided evenly between the steps, and of its part the
n-th trial of a step gets 6 / (pi n)^2, which sum to 1. Of the chance of a wrong step up, the last step gets a tenth, because there is
none above it, and the others the rest; of its part, the first trial gets nine tenths, and the n-th one after it 6 / (pi n)^2 of the rest.

Guards are compared in the same way, in parts of the outcome. A step up needs "not worse" of the loss and of all guards. It is wrong
if one of them is worse, and then its own proof must be wrong, so each is tested with the whole chance. A step down needs "worse" of
any, so each of them gets an equal part of the chance.

The guarantee limits the traffic at all times: an upper bound of what the learner has cost beyond the tolerance stays within
the budget. There are two such bounds, and the lower one counts. The first bounds the expected values of the judged decisions
and adds the most that the expected values of all others can be, their shares. The second bounds the expected values of all
decisions, with the largest terms that those without a loss can still get. It uses the losses that have come, so decisions
that wait for an earlier one cost little.

Losses may come in any order. Decisions are judged in the order of their numbers: one without a loss holds up the others
until it is left out. Decisions that are left out count in all bounds, as if their losses were all as low as possible, and as
if they were all as high as possible. So they cancel out if both arms are left out equally often, and if the learner is left out
more often, the surplus counts as the worst possible. While the rates are proven to differ, the learner does not move up. Values of
guards that are missing count in the same way.

A decision may come with the loss that the learner's model predicts for it. The closer predictions have been to the losses lately, the
closer to its prediction is the centre of its terms in the comparison, within a band around the mean loss, by which the terms are
bounded for all contexts alike. The guarantee has one centre per step: the bounds of its terms matter more than their variance.

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
from manul.agents.rollout.comparison import Comparison
from manul.agents.rollout.confidence_bounds import Wealth, WholeLogs
from manul.agents.rollout.excess_terms import (
    Outcomes,
    guarantee_bound,
    guarantee_term,
    guarantee_terms,
    unknown_terms,
)
from manul.agents.rollout.guards import Guard
from manul.agents.rollout.left_out import LeftOut
from manul.agents.rollout.rollout_plan import RolloutPlan

COHORT = 50  # judged decisions between two looks at the evidence
FIRST_TRIAL = 0.9  # of the chance of a wrong step up: most steps are tried once
LAST_STEP = 0.1  # of the chance of a wrong step up
_BAND = 2.0  # how far centres may be from the mean loss, as a multiple of its distance to the nearer end of the range
_MEMORY = 0.98  # of the fit of predictions, per cohort: it remembers about 2,500 decisions
SMALLEST = 1e-9  # of the share of a step: less is nothing, so that a budget is used up at some time

Reason = Literal["not worse", "worse", "aborted", "model replaced"]


class Move(NamedTuple):
    """A change of the step: after how many judged decisions, from and to which step (0 is the baseline), why, and the
    bounds of the learner's excess over what is tolerated, per decision; None if nothing is known. `guard` is the part in which the
    learner was worse, if it was not the loss, and the bounds are those of the part."""

    judged: int
    origin: int
    target: int
    reason: Reason
    low: float | None
    high: float | None
    guard: str | None = None


class Ticket(NamedTuple):
    """What the evidence needs to know of a decision: its arm, the learner's share, its step and period, its predicted loss, and the
    centre of its terms in the comparison, both in widths of the range; None without a prediction, and if it is that of the step."""

    learner: bool
    share: float
    level: int
    period: int
    predicted: float | None = None
    centre: float | None = None


class Missing(NamedTuple):
    """What is not known of decisions: by slot, the sums of the largest terms of those without a loss, and the sum of the learner's
    shares in those whose terms cannot be counted."""

    terms: Mapping[int, WholeLogs]
    shares: float = 0.0


WorstCase = Callable[["Progress"], Missing]
Watched = tuple[float | None, ...]  # by guard, as losses in widths of their ranges; None if a value is missing


class Judged(NamedTuple):
    """A decision with a loss, and what the guards watch."""

    ticket: Ticket
    loss: float
    watched: Watched = ()


class Arrived(NamedTuple):
    """The same before it is judged. A decision without a ticket is not part of the rollout; one without a loss is left out."""

    ticket: Ticket | None
    loss: float | None
    watched: Watched = ()


@dataclass
class GuardProgress:
    """What is known of a guard: the comparison of this period, the centre of its terms, the values that never came and how many were
    beyond the range."""

    guard: Guard
    comparison: Comparison
    centre: float
    left_out: LeftOut = field(default_factory=LeftOut)
    beyond: int = 0

    @classmethod
    def of(cls, guard: Guard) -> GuardProgress:
        return cls(guard, Comparison(guard.tolerance, guard.losses), sum(guard.losses) / 2)

    def begin(self) -> None:
        """Begin a new period, with the mean of the last one as the centre."""
        mean = self.comparison.mean_loss
        self.centre = self.centre if mean is None else mean
        self.comparison.begin()


@dataclass
class Progress:
    """The state of a rollout; `level` is the number of its step, from 0, or -1 after it went back to the baseline.

    `spent` is an upper bound of what the learner has cost beyond the tolerance in complete cohorts, in widths of the
    range of losses. `next` is the lowest number of a decision that is not judged, `arrived` the losses of later ones, None if
    one is left out, and `latest` the highest number with a loss. `known` are the terms of losses that are not in a complete
    cohort. A rollout that is `held` moves down, but not up. `began` is the first period of the present model, `guarantee` has
    the terms of its decisions by step, and `earlier` those of earlier models; `owed` is what the rollout began with.
    `proven` says whether the learner was proven not to be worse in the last step, or to reach it. `beyond` counts the losses that
    were beyond the range, and count as its ends. `centres` and `bands` are those of terms, by step, and `fit` the covariance of
    predictions and losses and the variance of predictions. `watches` are the `guards` with what is known of them.

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
    guards: tuple[Guard, ...] = ()
    comparison: Comparison = field(init=False)
    watches: list[GuardProgress] = field(init=False)
    trials: list[int] = field(default_factory=list)
    centres: list[float] = field(default_factory=list)
    bands: list[Within] = field(default_factory=list)
    fit: tuple[float, float] = (0.0, 0.0)
    guarantee: list[Wealth] = field(default_factory=list)
    earlier: list[Wealth] = field(default_factory=list)
    known: dict[int, WholeLogs] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)
    moves: list[Move] = field(default_factory=list)
    cohort: list[Judged] = field(default_factory=list)
    cohort_shares: float = 0.0
    left_shares: float = 0.0
    beyond: int = 0
    arrived: dict[int, Arrived] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.comparison = Comparison(self.plan.tolerance, self.scaled)
        self.watches = [GuardProgress.of(guard) for guard in self.guards]
        if not self.trials:
            self.trials, self.centres, self.guarantee = [1], [sum(self.scaled) / 2], [Wealth()]
            self.spent = self.owed
        if not self.bands:
            self.bands = [(centre, centre) for centre in self.centres]
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
        returns what is not known of them.
        """
        spent = self.spent + self.cohort_shares + self.left_shares + in_flight
        needed = COHORT * self.plan.shares[max(self.level, 0)]
        if worst is not None and in_flight > 0 and self.judged >= COHORT and self.plan.budget - spent < needed:
            missing = worst(self)
            spent = min(spent, self._spent_in_all(missing.terms) + missing.shares)
        return (self.plan.budget - spent) / COHORT

    def share(self, in_flight: float = 0.0, worst: WorstCase | None = None) -> float:
        """The share of the learner in the next decision."""
        if self.level < 0:
            return 0.0
        share = min(step := self.plan.shares[self.level], self.allowed(in_flight, worst))
        return share if share >= SMALLEST * step else 0.0

    def worst_term(self, ticket: Ticket) -> float:
        """The largest guarantee term that a decision without a loss can get, divided by the bound of its step."""
        low, high = self.scaled
        return max(self._guarantee_term(ticket, loss) for loss in (low, high, min(max(0.0, low), high)))

    def _guarantee_term(self, ticket: Ticket, loss: float) -> float:
        given: Any = {"learner": ticket.learner, "share": ticket.share, "tolerance": self.plan.tolerance}
        return guarantee_term(loss=loss, centre=self.centres[ticket.level], **given) / self.bound(ticket.level)

    def slot(self, ticket: Ticket) -> int:
        """Where the guarantee terms of a decision are added up: its step, or beyond the steps if an earlier model made it."""
        return ticket.level + (0 if ticket.period >= self.began else len(self.plan.steps))

    def _spent_in_all(self, missing: Mapping[int, WholeLogs]) -> float:
        """An upper bound of what the learner has cost beyond the tolerance, also in decisions that are not in a complete cohort."""
        nothing, steps = WholeLogs(), len(self.plan.steps)
        present, earlier = (
            [wealth.plus(self.known[slot], missing.get(slot, nothing)) for slot, wealth in enumerate(models, start)]
            for start, models in ((0, self.guarantee), (steps, self.earlier))
        )
        return self._spent_by(present, earlier)

    def _spent_by(self, present: Sequence[Wealth], earlier: Sequence[Wealth]) -> float:
        """What the present model and earlier ones have cost; what earlier models saved does not count."""
        before = sum(self._spent(step, wealth) for step, wealth in enumerate(earlier) if wealth != Wealth())
        return self.owed + max(before, 0.0) + sum(self._spent(step, wealth) for step, wealth in enumerate(present))

    def count_known(self) -> None:
        """Add up the terms of losses that are not in a complete cohort; before the first cohort, no centre is final."""
        slots = [*range(len(self.guarantee)), *(len(self.plan.steps) + step for step in range(len(self.earlier)))]
        self.known = {slot: WholeLogs() for slot in slots}
        if self.judged >= COHORT:
            for ticket, loss, _ in (*self.cohort, *self.arrived.values()):
                if ticket is not None and loss is not None:
                    self.known[self.slot(ticket)].add(self.known_terms(ticket, loss))

    def known_terms(self, ticket: Ticket, loss: float) -> WholeLogs:
        """What a decision with a loss adds to the known terms of its slot."""
        return WholeLogs.of(self._guarantee_term(ticket, loss / self.width))

    def ticket(self, *, learner: bool, share: float, predicted: float | None = None) -> Ticket:
        """The ticket of a decision that is made now, with a share, by the learner or the baseline.

        `predicted` is its predicted loss, which must not depend on the arm.
        """
        level = max(self.level, 0)
        if predicted is None or math.isnan(predicted):
            return Ticket(learner, share, level, self.period)
        own, centre, (lowest, highest) = (
            _clip(predicted / self.width, *self.scaled),
            self.centres[level],
            self.bands[level],
        )
        covariance, variance = self.fit
        slope = _clip(covariance / variance, 0.0, 1.0) if variance > 0 else 0.0
        if slope == 0 or lowest == highest:
            return Ticket(learner, share, level, self.period, own)
        return Ticket(learner, share, level, self.period, own, _clip(centre + slope * (own - centre), lowest, highest))

    def add(
        self, number: int, ticket: Ticket | None, loss: float | None, parts: Mapping[str, float] | None = None
    ) -> None:
        """Add the loss of a decision, once, or None if it is left out. A decision without a ticket is not part of the rollout.

        `parts` are those of the outcome by name; the guards watch them.
        """
        if number < self.next or number in self.arrived:
            return
        watched: Watched = ()
        if ticket is not None and loss is not None:
            given, loss = loss, min(max(loss, self.losses[0]), self.losses[1])
            self.beyond += loss != given
            watched = tuple(self._watch(each, (parts or {}).get(each.guard.name)) for each in self.watches)
        self.arrived[number] = Arrived(ticket, loss, watched)
        if ticket is not None and loss is not None:
            if self.judged >= COHORT:
                self.known[self.slot(ticket)].add(self.known_terms(ticket, loss))
            self.latest = max(self.latest, number)
        while self.next in self.arrived:
            ticket, loss, watched = self.arrived.pop(self.next)
            self.next += 1
            if ticket is not None and loss is not None:
                self._judge(Judged(ticket, loss, watched))
            elif ticket is not None:
                self._leave_out(ticket)

    def _watch(self, watch: GuardProgress, value: float | None) -> float | None:
        if value is None or math.isnan(value):
            return None
        watch.beyond += watch.guard.is_beyond(value)
        return watch.guard.loss(value)

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
        pairs = zip_longest(self.earlier, self.guarantee, fillvalue=Wealth())
        self.earlier = [one.merged(other) for one, other in pairs]
        self.guarantee, self.left_out, self.fit = [Wealth()], LeftOut(), (0.0, 0.0)
        for watch in self.watches:
            watch.left_out = LeftOut()
        self._go(0, "model replaced", -math.inf, math.inf)
        self.began = self.period
        self.spent = self._spent_by([], self.earlier)
        self.count_known()

    def _judge(self, judged: Judged) -> None:
        """The evidence is looked at once per cohort."""
        ticket = judged.ticket
        self.cohort.append(judged)
        self.cohort_shares += ticket.share
        self.judged += 1
        if ticket.period >= self.began:
            self.left_out.count(learner=ticket.learner, share=ticket.share)
            for watch, value in zip(self.watches, judged.watched, strict=True):
                note = watch.left_out.add if value is None else watch.left_out.count
                note(learner=ticket.learner, share=ticket.share)
        if len(self.cohort) == COHORT:
            cohort = self.cohort
            for counted in cohort if self.judged > COHORT else ():
                self.known[self.slot(counted.ticket)].remove(self.known_terms(counted.ticket, counted.loss))
            self.cohort, self.cohort_shares = [], 0.0
            self._add(cohort)
            self._review()

    def _leave_out(self, ticket: Ticket) -> None:
        """Add a decision whose loss never came. Until the next review, it counts as the worst possible."""
        self.left_shares += ticket.share
        arm: Any = {"learner": ticket.learner, "share": ticket.share}
        if ticket.period >= self.began:
            for left_out in (self.left_out, *(watch.left_out for watch in self.watches)):
                left_out.add(**arm)
        centre, bound = self.centres[ticket.level], self.bound(ticket.level)
        terms = unknown_terms(centre=centre, losses=self.scaled, tolerance=self.plan.tolerance, **arm)
        self._wealth(ticket).add_unknown(*(term / bound for term in terms.guarantee))
        if self.level >= 0 and ticket.period == self.period and ticket.share > 0:
            centre = centre if ticket.centre is None else ticket.centre
            self.comparison.leave_out(**arm, centre=centre, centres=self.bands[self.level])
            for watch in self.watches:
                watch.comparison.leave_out(**arm, centre=watch.centre, centres=(watch.centre, watch.centre))

    def _wealth(self, ticket: Ticket) -> Wealth:
        """The wealth of the guarantee that a decision belongs to."""
        return (self.guarantee if ticket.period >= self.began else self.earlier)[ticket.level]

    def _add(self, cohort: Sequence[Judged]) -> None:
        columns = zip(*(each.ticket[:4] for each in cohort), strict=True)
        learner, shares, levels, periods = (np.array(column) for column in columns)
        losses = np.array([each.loss for each in cohort]) / self.width
        for models, made in ((self.guarantee, periods >= self.began), (self.earlier, periods < self.began)):
            for level in set(levels[made].tolist()):
                outcomes = Outcomes(*(column[made & (levels == level)] for column in (learner, shares, losses)))
                terms = guarantee_terms(outcomes, self.centres[level], self.plan.tolerance)
                models[level].add(terms / self.bound(level))
        current = (periods == self.period) & (shares > 0)  # without traffic there is nothing to compare
        if self.level < 0 or not current.any():
            return
        outcomes = Outcomes(*(column[current] for column in (learner, shares, losses)))
        compared = [cohort[row] for row in np.flatnonzero(current).tolist()]
        centre = self.centres[self.level]
        own = [centre if each.ticket.centre is None else each.ticket.centre for each in compared]
        self.comparison.add(outcomes, np.array(own), self.bands[self.level])
        self._fit(compared)
        for place, watch in enumerate(self.watches):
            self._add_watched(watch, [(each.ticket, each.watched[place]) for each in compared])

    def _fit(self, compared: Sequence[Judged]) -> None:
        """Fit losses by predictions; a loss of the baseline counts by its odds, so that both arms count about equally."""
        centre, covariance, variance = self.centres[self.level], 0.0, 0.0
        for ticket, loss, _ in compared:
            if ticket.predicted is not None:
                weight = 1.0 if ticket.learner else ticket.share / (1 - ticket.share)
                predicted = ticket.predicted - centre
                covariance += weight * predicted * (loss / self.width - centre)
                variance += weight * predicted**2
        if variance > 0:
            self.fit = _MEMORY * self.fit[0] + covariance, _MEMORY * self.fit[1] + variance

    def _add_watched(self, watch: GuardProgress, values: Sequence[tuple[Ticket, float | None]]) -> None:
        """Add what a guard watches; a missing value counts like a loss that never came."""
        centre = watch.centre
        known = [(ticket.learner, ticket.share, value) for ticket, value in values if value is not None]
        if known:
            watch.comparison.add(Outcomes(*map(np.array, zip(*known, strict=True))), centre, (centre, centre))
        for ticket, value in values:
            if value is None:
                arm: Any = {"learner": ticket.learner, "share": ticket.share}
                watch.comparison.leave_out(**arm, centre=centre, centres=(centre, centre))

    def _review(self) -> None:
        self.spent, self.left_shares = self._spent_by(self.guarantee, self.earlier), 0.0
        if self.judged == COHORT:  # the first losses only show how large losses are
            if self.tested:  # none of them counts if the owner aborted the rollout or replaced the model before
                self.centres[0], self.bands[0] = self._mean_loss, self._band(self._mean_loss)
            self.count_known()
            self._begin_period()
        elif self.level >= 0:
            self._move()

    def bound(self, level: int) -> float:
        """The largest term of the guarantee in a step; the centre of the first step changes once."""
        centre = self.centres[level] if level < len(self.centres) else self._mean_loss
        centres = self.scaled if level == 0 else (centre, centre)
        return guarantee_bound(self.plan.shares[level], centres, self.plan.tolerance, self.scaled)

    def _band(self, centre: float) -> Within:
        """Where the centres of terms may be in a step, around the mean loss; without predictions, there is only one."""
        low, high = self.scaled
        reach = _BAND * min(centre - low, high - centre) if self.fit[1] > 0 else 0.0
        return max(low, centre - reach), min(high, centre + reach)

    def _spent(self, level: int, wealth: Wealth) -> float:
        """An upper bound of what the learner has cost beyond the tolerance in the decisions of a step."""
        return self.bound(level) * wealth.upper(self.plan.error / len(self.plan.steps))

    def _missing_room(self, level: int) -> float:
        """How much less must be spent before a higher step gets more traffic; nothing is known of a new step at first."""
        unknown = self._spent(level, Wealth()) if level == len(self.guarantee) else 0.0
        needed = COHORT * self.plan.shares[level - 1]
        waiting = self.cohort_shares + self.left_shares
        waiting += math.fsum(each.ticket.share for each in self.arrived.values() if each.ticket is not None)
        return min(self.spent + waiting, self._spent_in_all({})) + unknown + needed - self.plan.budget

    @property
    def _mean_loss(self) -> float:
        mean = self.comparison.mean_loss
        return self.centres[-1] if mean is None else mean

    def _move(self) -> None:
        (low, high), level = self.bounds(), self.level
        watched = [self.guard_bounds(watch) for watch in self.watches]
        worse = next((place for place, (least, _) in enumerate(watched) if least > 0), None)
        if low > 0:
            self._go(level - 1, "worse", low, high)
        elif worse is not None:
            self._go(level - 1, "worse", *watched[worse], self.guards[worse].name)
        elif all(most < 0 for most in (high, *(each for _, each in watched))) and self._may_rise:
            if level == len(self.plan.steps) - 1:
                self.proven = True
                self._begin_trial()
            elif self._missing_room(level + 1) < 0:
                self._go(level + 1, "not worse", low, high)

    @property
    def _may_rise(self) -> bool:
        return not self.held and not self.uneven and self.tested >= self.plan.least_decisions

    @property
    def uneven(self) -> bool:
        """Whether the arms are proven to be left out at different rates, by the loss or by what a guard watches."""
        every = [self.left_out, *(watch.left_out for watch in self.watches)]
        return any(each.differ(self.plan.error / len(every)) for each in every)

    @property
    def tested(self) -> int:
        """The number of decisions of this period with losses."""
        return self.comparison.count

    def bounds(self) -> Within:
        """The bounds, in this period, of the learner's mean excess over what is tolerated."""
        low, high = self._bounds(self.comparison)
        return low * self.width, high * self.width

    def guard_bounds(self, watch: GuardProgress) -> Within:
        """The same for a guard, in units of the part: the learner is not worse if both are below 0."""
        low, high = self._bounds(watch.comparison)
        return low * watch.guard.width, high * watch.guard.width

    def _bounds(self, comparison: Comparison) -> Within:
        if self.level < 0:
            return -math.inf, math.inf
        return comparison.bounds(worse=self._chance_down / (1 + len(self.watches)), not_worse=self._chance_up)

    def decisions_needed(self) -> int | None:
        """About how many more decisions the next step takes, if all goes on as in this period; None if it never comes."""
        level, count = self.level, self.tested
        if not 0 <= level < len(self.plan.steps) - 1 or not count or self.uneven:
            return None
        every = [self.comparison, *(watch.comparison for watch in self.watches)]
        factors = [each.above.factor_needed(self._chance_up) for each in every]
        if None in factors:
            return None
        needed = max(factor for factor in factors if factor is not None)
        missing, spent = self._missing_room(level + 1), self.guarantee[level]
        if missing >= 0 and spent.total >= 0:
            return None
        for_room = 0
        if missing >= 0:
            for_room = math.ceil(missing * spent.count / (-spent.total * self.bound(level)))
        return max(math.ceil(count * needed) - count, self.plan.least_decisions - count, for_room)

    @property
    def _chance_down(self) -> float:
        """The chance that "worse" is proven wrongly in this period."""
        return self.plan.error / len(self.plan.steps) * 6 / (math.pi * self.trials[self.level]) ** 2

    @property
    def _chance_up(self) -> float:
        """The chance that "not worse" is proven wrongly in this period."""
        below, later = len(self.plan.steps) - 1, self.trials[self.level] - 1
        part = LAST_STEP if self.level == below else (1 - LAST_STEP) / below
        trial = (1 - FIRST_TRIAL) * 6 / (math.pi * later) ** 2 if later else FIRST_TRIAL
        return self.plan.error * (part if below else 1.0) * trial

    def _go(self, level: int, reason: Reason, low: float, high: float, guard: str | None = None) -> None:
        least, most = (end if math.isfinite(end) else None for end in (low, high))
        self.moves.append(Move(self.judged, self.level + 1, level + 1, reason, least, most, guard))
        if level == len(self.trials):
            self.trials.append(0)
            self.centres.append(self._mean_loss)
            self.bands.append(self._band(self._mean_loss))
        if level == len(self.guarantee):
            self.guarantee.append(Wealth())
            self.known[level] = WholeLogs()
        self.level, self.proven = level, reason == "not worse" and level == len(self.plan.steps) - 1
        self._begin_trial()

    def _begin_trial(self) -> None:
        if self.level >= 0:
            self.trials[self.level] += 1
        self._begin_period()

    def _begin_period(self) -> None:
        self.period += 1
        self.comparison.begin()
        for watch in self.watches:
            watch.begin()


def _clip(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)
