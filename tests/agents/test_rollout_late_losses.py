"""What decisions without losses can have cost: the guarantee counts those that have losses by these."""

import json
from heapq import heappop, heappush

import numpy as np
import pytest

from manul.agents.rollout import rollout_files
from manul.agents.rollout.confidence_bounds import WholeLogs
from manul.agents.rollout.excess_terms import Outcomes, guarantee_term, guarantee_terms
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import COHORT, Progress, Ticket

RANGES = [(0.0, 1.0), (-100.0, 0.0), (-2.0, 5.0), (3.0, 4.0)]


class Play:
    """A rollout whose losses come late, large ones later; some never come."""

    def __init__(self, seed, losses=(0.0, 1.0), never=0.0, **plan):
        self.rng, self.ends, self.never = np.random.default_rng(seed), losses, never
        self.progress, self.in_flight, self.due = Progress(RolloutPlan(**plan), losses), InFlight(), []
        self.number, self.excess, self.worst = 0, 0.0, 0.0

    def step(self, learner, baseline):
        """A decision; the arms' losses have these means, in shares of the range."""
        progress, (low, high) = self.progress, self.ends
        share = self.in_flight.share(progress)
        ticket = progress.ticket(learner=bool(self.rng.random() < share), share=share)
        self.in_flight.add(self.number, ticket)
        self.excess += share * (learner - baseline) - progress.plan.tolerance * baseline
        self.worst = max(self.worst, self.excess)
        loss = float(self.rng.random() < (learner if ticket.learner else baseline))
        if self.rng.random() >= self.never:
            heappush(self.due, (self.number + self.rng.geometric(1 / 200) * (0.5 + loss), self.number, loss))
        while self.due and self.due[0][0] <= self.number:
            _, arrived, loss = heappop(self.due)
            if arrived in self.in_flight.tickets:
                progress.add(arrived, self.in_flight.tickets[arrived], low + loss * (high - low))
                self.in_flight.arrive(arrived)
                for overdue in progress.overdue(self.number):
                    progress.add(overdue, self.in_flight.tickets[overdue], None)
                self.in_flight.forget_before(progress.next)
        self.number += 1
        return share


@pytest.mark.parametrize("seed", range(20))
def test_one_term_is_that_of_many(seed):
    rng = np.random.default_rng(seed)
    share, loss, centre, tolerance = rng.uniform(0, 0.98), *rng.uniform(-2, 2, 2), rng.uniform(0, 0.9)
    for learner in (True, False):
        many = guarantee_terms(Outcomes(np.array([learner]), np.array([share]), np.array([loss])), centre, tolerance)
        one = guarantee_term(learner=learner, share=share, loss=loss, centre=centre, tolerance=tolerance)
        assert many.tolist() == [one]


@pytest.mark.parametrize("losses", RANGES)
@pytest.mark.parametrize("learner", [True, False])
def test_no_loss_gives_a_larger_term_than_the_largest(losses, learner):
    progress = Progress(RolloutPlan(tolerance=0.3), losses)
    for share in (0.0, 0.04, 0.05):
        ticket = Ticket(learner, share, 0, 0)
        terms = [progress._guarantee_term(ticket, loss) for loss in np.linspace(*progress.scaled, 701)]
        assert max(terms) == pytest.approx(progress.worst_term(ticket))


@pytest.mark.whole
@pytest.mark.parametrize("losses", RANGES)
def test_sums_that_are_kept_up_are_those_of_a_count_from_nothing(losses):
    play = Play(1, losses, never=0.01, patience=1500, steps=(0.2, 0.6, 1), budget=60)
    for number in range(6000):
        play.step(0.1, 0.6)
        if number % 500 == 499:
            described = json.loads(json.dumps(rollout_files.describe(play.progress)))
            restored = rollout_files.restore(play.progress.plan, losses, described)
            missing = {n: each for n, each in play.in_flight.tickets.items() if n not in restored.arrived}
            largest = play.in_flight.worst(play.progress).terms
            nonzero = {level: sums for level, sums in largest.items() if sums != WholeLogs()}
            assert InFlight(missing).worst(restored).terms == nonzero
            assert restored == play.progress
    assert len(play.progress.moves) > 1


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("after", [0.5, 1.0])
def test_the_guarantee_holds_if_the_learner_gets_worse_while_large_losses_come_late(seed, after):
    play = Play(seed, steps=(0.2, 1), budget=40)
    for number in range(6000):
        play.step(0.1 if number < 3000 else after, 0.4)
    assert play.progress.moves[0].reason == "not worse"
    assert play.worst <= 40


def test_a_learner_whose_losses_stop_coming_loses_its_traffic_within_the_budget():
    play = Play(0, steps=(0.2, 1), budget=40)
    for _ in range(3000):
        play.step(0.1, 0.4)
    gained = play.excess
    play.due, play.never = [], 1.0
    shares = [play.step(1.0, 0.4) for _ in range(2000)]
    assert (play.progress.level, shares[-1]) == (1, 0)
    assert 0.6 * sum(shares) + gained <= 40
    assert play.worst <= 40


def test_losses_that_have_come_take_less_of_the_budget_than_the_worst():
    play = Play(0, steps=(0.5, 1), budget=40)
    while play.progress.judged < COHORT or play.in_flight.total < 100:
        play.step(0.3, 0.4)
    assert play.progress.share(play.in_flight.total) == 0
    assert play.in_flight.share(play.progress) > 0.1


@pytest.mark.parametrize("losses", RANGES)
def test_decisions_without_traffic_need_not_be_kept(losses):
    play = Play(0, losses, steps=(0.5, 1), budget=40)
    while play.progress.judged < COHORT:
        play.step(0.3, 0.4)
    nothing = Ticket(learner=False, share=0.0, level=0, period=0)
    assert play.progress.worst_term(nothing) <= 0
    assert min(WholeLogs.of(play.progress.worst_term(nothing)).logs) >= 0
