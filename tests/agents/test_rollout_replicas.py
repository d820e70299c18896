"""Replicas that know each other's decisions only from a store keep to the guarantee together, in whatever order things happen."""

import copy
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np
import pytest

from manul.agents.rollout.confidence_bounds import WholeLogs
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import COHORT, Progress, Ticket

LOST = 400  # decisions until a number that nobody uses is given up


@dataclass
class Replica:
    """What one replica knows: a copy of the progress, or the progress itself if it learns, and the decisions in flight."""

    progress: Progress
    leads: bool = False
    in_flight: InFlight = field(init=False)

    def __post_init__(self):
        self.in_flight = InFlight(known_to=self.progress.next - 1)
        self.note_arrived()

    def note_arrived(self):
        for number, arrived in self.progress.arrived.items():
            self.note(number, arrived)
        self.in_flight.forget_before(self.progress.next)

    def note(self, number, arrived):
        if arrived.loss is not None:
            self.in_flight.arrive(number)
        elif arrived.ticket is None:
            self.in_flight.note(number)


class World:
    """Replicas that decide in any order, store late, read each other's decisions now and then, come, and are killed."""

    def __init__(self, seed, **plan):
        self.rng, self.progress = np.random.default_rng(seed), Progress(RolloutPlan(**plan), (0.0, 1.0))
        self.replicas = [Replica(self.progress, leads=True)]
        self.number, self.stored, self.tickets, self.held = 0, {}, {}, []
        self.later = []  # what happens at a number of decisions, in order
        self.excess = self.worst = 0.0
        self.snapshot = copy.deepcopy(self.progress)

    def step(self, learner, baseline):
        """One number is reserved, and used at once, later or never; other things happen between."""
        rng, replica = self.rng, self.replicas[self.rng.integers(len(self.replicas))]
        number, self.number = self.number, self.number + 1
        happens = rng.random()
        if happens < 0.05:
            self.held.append((replica, number))
        elif happens < 0.06:
            replica.in_flight.note(number)
            heappush(self.later, (self.number + 5, "void", number))
        else:
            self.draw(replica, number, learner, baseline)
        if self.held and rng.random() < 0.1:
            other, number = self.held.pop(rng.integers(len(self.held)))
            if any(other is each for each in self.replicas):
                self.draw(other, number, learner, baseline)
            else:
                heappush(self.later, (self.number + LOST, "void", number))
        while self.later and self.later[0][0] <= self.number:
            _, what, number = heappop(self.later)
            getattr(self, what)(number)
        if rng.random() < 0.02:
            self.snapshot = copy.deepcopy(self.progress)
        for each in self.replicas:
            if rng.random() < 0.05:
                self.read(each)
            if not each.leads and rng.random() < 0.02 and self.snapshot.judged >= each.progress.judged:
                each.progress = copy.deepcopy(self.snapshot)
                each.note_arrived()
        if rng.random() < 0.003 and len(self.replicas) < 4:
            self.replicas.append(Replica(copy.deepcopy(self.snapshot)))
        if rng.random() < 0.002 and len(self.replicas) > 1:
            self.replicas.pop()  # what it has held is lost

    def draw(self, replica, number, learner, baseline):
        progress = replica.progress
        share = replica.in_flight.share(progress, number) if number >= progress.next else 0.0
        ticket = progress.ticket(learner=bool(self.rng.random() < share), share=share)
        if share > 0:
            replica.in_flight.add(number, ticket)
        else:
            replica.in_flight.note(number)
        self.check(replica, number)
        self.tickets[number] = ticket
        self.excess += share * (learner - baseline) - progress.plan.tolerance * baseline
        self.worst = max(self.worst, self.excess)
        loss = float(self.rng.random() < (learner if ticket.learner else baseline))
        delay = self.rng.integers(1, 20)
        heappush(self.later, (self.number + delay, "store", number))
        heappush(self.later, (self.number + delay + 1 + self.rng.geometric(1 / 100), f"learn_{int(loss)}", number))

    def check(self, replica, number):
        """Nothing that was decided before, and is not judged, is left out of what the replica counts."""
        progress, in_flight = replica.progress, replica.in_flight
        hidden = in_flight._unknown(number, progress) * max(progress.plan.shares)
        before = (each for each in self.tickets if progress.next <= each < number)
        assert sum(self.tickets[each].share for each in before) <= in_flight.total + hidden + 1e-6

    def store(self, number):
        self.stored[number] = self.tickets[number]

    def void(self, number):
        self.add(number, None, None)

    def learn_0(self, number):
        self.add(number, self.tickets[number], 0.0)

    def learn_1(self, number):
        self.add(number, self.tickets[number], 1.0)

    def add(self, number, ticket, loss):
        leader = self.replicas[0]
        if self.rng.random() < 0.8:  # as a rule, before it learns
            self.read(leader)
        self.progress.add(number, ticket, loss)
        if number in self.progress.arrived:
            leader.note(number, self.progress.arrived[number])
        leader.in_flight.forget_before(self.progress.next)

    def read(self, replica):
        replica.in_flight.join(self.stored, replica.progress)
        first = min(each.progress.next for each in (*self.replicas, Replica(self.snapshot)))
        self.stored = {each: ticket for each, ticket in self.stored.items() if each >= first}


def counted_from_nothing(replica):
    """By slot, the terms of all decisions up to the one up to which all are known: known ones, and the largest of the others."""
    progress, known_to = replica.progress, replica.in_flight.known_to
    sums = {slot: WholeLogs(terms.logs) for slot, terms in progress.known.items()}
    for number, arrived in progress.arrived.items():
        if number > known_to and arrived.loss is not None:
            sums[progress.slot(arrived.ticket)].remove(progress.known_terms(arrived.ticket, arrived.loss))
    shares = 0.0
    for number, ticket in replica.in_flight.tickets.items():
        if number > known_to or ticket.period > progress.period:
            shares += ticket.share
        if number <= known_to and (number not in progress.arrived or progress.arrived[number].loss is None):
            if ticket.level >= len(progress.guarantee):
                continue
            worst = progress.worst_term(ticket)
            worst = max(worst, 0.0) if ticket.period > progress.period else worst
            sums.setdefault(progress.slot(ticket), WholeLogs()).add(WholeLogs.of(worst))
    return {slot: terms.logs for slot, terms in sums.items() if terms != WholeLogs()}, shares


def kept_up(replica):
    missing = replica.in_flight.worst(replica.progress)
    sums = {slot: WholeLogs(terms.logs) for slot, terms in replica.progress.known.items()}
    for slot, terms in missing.terms.items():
        sums.setdefault(slot, WholeLogs()).add(terms)
    return {slot: terms.logs for slot, terms in sums.items() if terms != WholeLogs()}, missing.shares


@pytest.mark.parametrize("seed", range(2))
def test_sums_of_what_a_replica_knows_are_those_of_a_count_from_nothing(seed):
    world = World(seed, steps=(0.2, 0.6, 1), budget=60)
    for number in range(2000):
        world.step(0.1, 0.6)
        if number % 50 == 49 and world.progress.judged > 2 * COHORT:
            for replica in (each for each in world.replicas if each.progress.judged >= COHORT):
                sums, shares = counted_from_nothing(replica)
                assert kept_up(replica)[0] == sums
                assert kept_up(replica)[1] == pytest.approx(shares, abs=1e-6)
    assert len(world.progress.moves) > 0


@pytest.mark.parametrize("seed", range(3))
def test_the_guarantee_holds_if_the_learner_gets_worse(seed):
    world = World(seed, steps=(0.2, 1), budget=40)
    for number in range(2500):
        world.step(0.05 if number < 1700 else 1.0, 0.6)
    assert world.progress.moves[0].reason == "not worse"
    assert world.worst <= 40


@pytest.mark.parametrize("seed", range(3))
def test_without_any_losses_replicas_together_stay_within_the_budget(seed):
    world = World(seed, steps=(0.5, 1), budget=20)
    world.learn_0 = world.learn_1 = lambda _number: None
    for _ in range(1500):
        world.step(1.0, 0.0)
    assert 10 < sum(ticket.share for ticket in world.tickets.values()) <= 20


def test_decisions_of_others_that_are_not_known_count_as_the_largest_share():
    progress = Progress(RolloutPlan(steps=(0.5, 1), budget=40), (0.0, 1.0))
    in_flight = InFlight(known_to=-1)
    assert in_flight.share(progress, 0) == 0.5
    assert in_flight.share(progress, 30) == pytest.approx((40 - 30 * 0.98) / COHORT)
    assert in_flight.share(progress, 60) == 0.0
    in_flight.join({number: Ticket(False, 0.1, 0, 0) for number in range(60)}, progress)
    assert in_flight.share(progress, 60) == 0.5
