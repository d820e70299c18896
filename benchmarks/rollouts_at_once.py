"""Many rollouts at once, for losses that come without delay: what `Progress` does, with a row of arrays per rollout.

Without delay, all decisions of a cohort have the same step and period, and their shares do not depend on their losses.
`tests/benchmarks/test_rollouts_at_once.py` compares the outcomes with those of `Progress`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from manul.agents.rollout.confidence_bounds import BETS, LOG_WEIGHTS
from manul.agents.rollout.excess_terms import Outcomes, excess_bounds, excess_terms, guarantee_bound, guarantee_terms
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import COHORT, FIRST_TRIAL, LAST_STEP, SMALLEST
from manul.utils.validation import Floats

LOSSES = 0.0, 1.0


class Outcome(NamedTuple):
    """When a rollout reached the last step and went back to the baseline, if it did; how far its excess rose; its share."""

    full: Floats
    back: Floats
    excess: Floats
    traffic: Floats


class Draws(NamedTuple):
    """What each arm would lose in each decision, and the number that chooses the arm, a row per rollout.

    `costs` is by how much the learner's expected loss exceeds the baseline's in each decision, and `predicted` the loss that a model
    predicts for it, if there is one.
    """

    baseline: Floats
    learner: Floats
    coins: Floats
    costs: Floats
    predicted: Floats | None = None


class Terms:
    """The number and the sum of terms, the logarithms of the products of their bets, and the shares that belong to them."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count, self.total, self.weight = np.zeros((3, *shape))
        self.logs = np.zeros((*shape, len(BETS)))

    def add(self, rows: Floats, terms: Floats, weights: Floats, counted: Floats) -> None:
        self.count[rows] += counted.sum(1)
        self.total[rows] += terms.sum(1)
        self.logs[rows] += np.log1p(-np.multiply.outer(terms, BETS)).sum(1)
        self.weight[rows] += weights.sum(1)

    def clear(self, rows: int | Floats) -> None:
        for values in (self.count, self.total, self.logs, self.weight):
            values[rows] = 0.0


def chances(plan: RolloutPlan, levels: Floats, trials: Floats) -> tuple[Floats, Floats]:
    """The chances that "worse" and "not worse" are proven wrongly."""
    below = len(plan.steps) - 1
    down = plan.error / len(plan.steps) * 6 / (math.pi * trials) ** 2
    part = np.where(levels == below, LAST_STEP if below else 1.0, (1 - LAST_STEP) / max(below, 1))
    later = (1 - FIRST_TRIAL) * 6 / (math.pi * np.maximum(trials - 1, 1)) ** 2
    return down, plan.error * part * np.where(trials <= 1, FIRST_TRIAL, later)


def upper_ends(logs: Floats, chance: Floats | float) -> Floats:
    """`confidence_bounds.upper_end` of many products."""
    bets, target, logs = np.array(BETS), -np.log(chance), logs + LOG_WEIGHTS
    ends: Floats = ((np.asarray(target)[..., None] - logs) / bets).min(-1)
    for _ in range(100):
        exponents = logs + bets * ends[..., None]
        largest = exponents.max(-1)
        weights = np.exp(exponents - largest[..., None])
        steps = (largest + np.log(weights.sum(-1)) - target) * weights.sum(-1) / (weights @ bets)
        ends = ends - steps
        if (steps <= 1e-9 * np.maximum(np.abs(ends), 1.0)).all():
            break
    return ends


class Rollouts:
    """The states of rollouts."""

    def __init__(self, plan: RolloutPlan, count: int) -> None:
        steps = len(plan.steps)
        self.plan, self.shares = plan, np.array(plan.shares)
        self.level = np.zeros(count, int)
        self.spent = np.zeros(count)
        self.trials = np.zeros((count, steps))
        self.trials[:, 0] = 1
        self.centres = np.full((count, steps), 0.5)
        self.guarantee = Terms((count, steps))
        self.guarantee_bounds = np.ones((count, steps))
        self.guarantee_bounds[:, 0] = self._guarantee_bound(0, LOSSES)
        self.below, self.above, self.losses = Terms((count,)), Terms((count,)), Terms((count,))

    def _guarantee_bound(self, level: int, centres: tuple[float, float]) -> float:
        return guarantee_bound(self.plan.shares[level], centres, self.plan.tolerance, LOSSES)

    def next_shares(self) -> Floats:
        """The shares of the learner in the decisions of the next cohort."""
        steps = np.where(self.level < 0, 0.0, self.shares[self.level])
        shares = np.repeat(steps[:, None], COHORT, 1)
        for row in np.flatnonzero(2 * COHORT * steps > self.plan.budget - self.spent):
            given = 0.0
            for place in range(COHORT):
                share = min(steps[row], (self.plan.budget - self.spent[row] - given) / COHORT)
                shares[row, place] = share if share >= SMALLEST * steps[row] else 0.0
                given += shares[row, place]
        return shares

    def add(self, learner: Floats, shares: Floats, losses: Floats) -> None:
        """Add a cohort."""
        rows, tolerance = np.arange(len(self.level)), self.plan.tolerance
        centres, running = self.centres[rows, self.level][:, None], self.level[:, None] >= 0
        outcomes, counted = Outcomes(learner, shares, losses), shares > 0
        spent = (
            running * guarantee_terms(outcomes, centres, tolerance) / self.guarantee_bounds[rows, self.level][:, None]
        )
        self.guarantee.add((rows, self.level), spent, shares, counted)
        terms = excess_terms(outcomes, centres, tolerance)
        below, above = excess_bounds(shares, (centres, centres), tolerance, LOSSES)
        self.below.add(rows, counted * -terms / below, shares / below, counted)
        self.above.add(rows, counted * terms / above, shares / above, counted)
        self.losses.add(rows, counted * losses, shares, counted)

    def review(self, *, first: bool) -> None:
        """Look at the evidence after a cohort."""
        opened = self.trials > 0
        spent = self.guarantee_bounds * upper_ends(self.guarantee.logs, self.plan.error / len(self.plan.steps))
        self.spent = np.where(opened, spent, 0.0).sum(1)
        if first:
            tested = self.losses.count > 0
            self.centres[tested, 0] = self._mean_losses()[tested]
            self._begin_period(np.arange(len(self.level)))
        else:
            self._move()

    def _mean_losses(self) -> Floats:
        return np.clip(self.losses.total / np.maximum(self.losses.count, 1), *LOSSES)

    def _move(self) -> None:
        rows = np.arange(len(self.level))
        levels = np.maximum(self.level, 0)
        down, up = chances(self.plan, levels, self.trials[rows, levels])
        known = (self.level >= 0) & (self.above.weight > 0)
        worse = known & (upper_ends(self.below.logs, down) < 0)
        better = known & ~worse & (upper_ends(self.above.logs, up) < 0)
        better &= self.above.count >= self.plan.least_decisions
        for row in np.flatnonzero(worse):
            self._go(row, self.level[row] - 1)
        for row in np.flatnonzero(better):
            self._step_up(row)

    def _step_up(self, row: int) -> None:
        level = self.level[row] + 1
        if level == len(self.plan.steps):
            self._begin_trial(row)
            return
        unknown = 0.0
        if not self.trials[row, level]:
            centre = self._mean_losses()[row]
            nothing = upper_ends(np.zeros(len(BETS)), self.plan.error / len(self.plan.steps))
            unknown = float(self._guarantee_bound(level, (centre, centre)) * nothing)
        if self.spent[row] + unknown + COHORT * self.plan.shares[level - 1] < self.plan.budget:
            self._go(row, level)

    def _go(self, row: int, level: int) -> None:
        if level >= 0 and not self.trials[row, level]:
            self.centres[row, level] = self._mean_losses()[row]
            centre = self.centres[row, level]
            self.guarantee_bounds[row, level] = self._guarantee_bound(level, (centre, centre))
        self.level[row] = level
        self._begin_trial(row)

    def _begin_trial(self, row: int) -> None:
        if self.level[row] >= 0:
            self.trials[row, self.level[row]] += 1
        self._begin_period(row)

    def _begin_period(self, rows: int | Floats) -> None:
        for terms in (self.below, self.above, self.losses):
            terms.clear(rows)


def play_at_once(draws: Draws, plan: RolloutPlan, mean: float) -> Outcome:
    """Rollouts of as many decisions as there are draws, in whole cohorts. `mean` is the expected loss of the baseline."""
    runs, decisions = draws.coins.shape
    rollouts = Rollouts(plan, runs)
    full, back = np.full((2, runs), np.inf)
    excess, worst = np.zeros((2, runs))
    for begin in range(0, decisions, COHORT):
        rows = slice(begin, begin + COHORT)
        shares, running = rollouts.next_shares(), rollouts.level >= 0
        rising = excess[:, None] + np.cumsum(shares * draws.costs[rows] - plan.tolerance * mean, axis=1)
        excess, worst = rising[:, -1], np.where(running, np.maximum(worst, rising.max(1)), worst)
        learner = draws.coins[:, rows] < shares
        rollouts.add(learner, shares, np.where(learner, draws.learner[:, rows], draws.baseline[:, rows]))
        rollouts.review(first=begin == 0)
        full[np.isinf(full) & (rollouts.level == len(plan.steps) - 1)] = begin + COHORT - 1
        back[np.isinf(back) & (rollouts.level < 0)] = begin + COHORT - 1
    return Outcome(full, back, worst, rollouts.next_shares()[:, 0])
