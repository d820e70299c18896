"""The learner against the baseline in one outcome, in one period of a rollout."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from manul.actions.decision import Within
from manul.agents.rollout.confidence_bounds import Wealth, upper_end
from manul.agents.rollout.excess_terms import Outcomes, excess_bounds, excess_terms, unknown_terms
from manul.utils.validation import Floats

_FARTHEST = 2.0**40  # decisions: a longer forecast says nothing


@dataclass
class Tally:
    """The number of losses and their sum."""

    count: int = 0
    total: float = 0.0

    def add(self, losses: Floats) -> None:
        self.count += len(losses)
        self.total += float(losses.sum())

    @property
    def mean(self) -> float | None:
        return self.total / self.count if self.count else None


@dataclass
class Side:
    """Terms divided by their bounds on one side, and the sum of the shares divided by them.

    A decision counts the more, the closer the bound of its term is. The bound depends on the share, not on the context.
    """

    terms: Wealth = field(default_factory=Wealth)
    weight: float = 0.0

    def add(self, terms: Floats, shares: Floats, bounds: Floats) -> None:
        self.terms.add(terms / bounds)
        self.weight += float((shares / bounds).sum())

    def add_unknown(self, terms: Within, share: float, bound: float) -> None:
        """Add the term of a decision whose loss never came, with the lowest and the highest loss."""
        self.terms.add_unknown(*(term / bound for term in terms))
        self.weight += share / bound

    def end(self, chance: float) -> float:
        """An upper bound of the mean of the expected terms per share."""
        return self.terms.upper(chance) / self.weight

    def factor_needed(self, chance: float) -> float | None:
        """How many times as many terms like these prove that the expected ones are below 0; None if they never do."""
        logs = max(self.terms.cases, key=lambda case: upper_end(case, chance))
        if max(logs) <= 0:
            return None
        low, high = 0.0, 1.0
        while upper_end([each * high for each in logs], chance) >= 0:
            low, high = high, high * 2
            if high * max(self.terms.count, 1) > _FARTHEST:
                return None
        for _ in range(30):
            middle = (low + high) / 2
            proven = upper_end([each * middle for each in logs], chance) < 0
            low, high = (low, middle) if proven else (middle, high)
        return high


@dataclass
class Comparison:
    """The terms of a period on both sides, and the losses of learner and baseline; `losses` is the range of losses in widths of it.

    >>> comparison = Comparison(tolerance=0.05, losses=(0.0, 1.0))
    >>> learner = np.arange(400) % 2 == 0
    >>> comparison.add(Outcomes(learner, np.full(400, 0.5), np.where(learner, 0.1, 0.9)), 0.5, (0.5, 0.5))
    >>> comparison.bounds(worse=0.05, not_worse=0.05)[1] < 0
    True
    """

    tolerance: float
    losses: Within
    below: Side = field(default_factory=Side)
    above: Side = field(default_factory=Side)
    arms: tuple[Tally, Tally] = field(default_factory=lambda: (Tally(), Tally()))

    def begin(self) -> None:
        """Begin a new period."""
        self.below, self.above, self.arms = Side(), Side(), (Tally(), Tally())

    def add(self, outcomes: Outcomes, centre: float | Floats, centres: Within) -> None:
        """Add decisions in which both arms could decide; their centres are between two numbers."""
        terms = excess_terms(outcomes, centre, self.tolerance)
        below, above = excess_bounds(outcomes.shares, centres, self.tolerance, self.losses)
        self.below.add(-terms, outcomes.shares, below)
        self.above.add(terms, outcomes.shares, above)
        for arm, rows in zip(self.arms, (outcomes.learner, ~outcomes.learner), strict=True):
            arm.add(outcomes.losses[rows])

    def leave_out(self, *, learner: bool, share: float, centre: float, centres: Within) -> None:
        """Add a decision whose loss never came."""
        shared = {"tolerance": self.tolerance, "losses": self.losses}
        lowest, highest = unknown_terms(learner=learner, share=share, centre=centre, **shared).excess  # type: ignore[arg-type]
        below, above = excess_bounds(np.array([share]), centres, self.tolerance, self.losses)
        self.below.add_unknown((-lowest, -highest), share, float(below[0]))
        self.above.add_unknown((lowest, highest), share, float(above[0]))

    @property
    def count(self) -> int:
        """The number of decisions with losses."""
        return self.above.terms.count

    @property
    def mean_loss(self) -> float | None:
        """The mean loss of both arms together."""
        count = sum(arm.count for arm in self.arms)
        if not count:
            return None
        mean = sum(arm.total for arm in self.arms) / count
        return min(max(mean, self.losses[0]), self.losses[1])  # rounding can put it just outside

    def bounds(self, *, worse: float, not_worse: float) -> Within:
        """The bounds of the learner's mean excess over what is tolerated. The lower one, which proves "worse", and the upper one,
        which proves "not worse", are wrong with these probabilities."""
        if not self.above.weight > 0:
            return -math.inf, math.inf
        return -self.below.end(worse), self.above.end(not_worse)
