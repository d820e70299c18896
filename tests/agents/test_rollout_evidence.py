"""The evidence of a rollout: expected values of its terms, bounds that hold at all times, moves."""

import math
from dataclasses import replace

import numpy as np
import pytest

from manul.agents.rollout import rollout_files
from manul.agents.rollout.confidence_bounds import BETS, LOG_WEIGHTS, Wealth, WholeLogs, upper_end
from manul.agents.rollout.excess_terms import (
    Outcomes,
    excess_bounds,
    excess_terms,
    guarantee_bound,
    guarantee_terms,
)
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import COHORT, Progress, Ticket

RANGES = [(0.0, 1.0), (-100.0, 0.0), (-2.0, 5.0), (3.0, 4.0)]


def both_arms(share: float, learner: float, baseline: float) -> Outcomes:
    """The two outcomes of a decision, as if each arm had made it."""
    return Outcomes(np.array([True, False]), np.full(2, share), np.array([learner, baseline]))


def cases(seed: int) -> tuple[float, float, float, float, float, tuple[float, float]]:
    rng = np.random.default_rng(seed)
    low, high = losses = RANGES[seed % len(RANGES)]
    learner, baseline, centre = rng.uniform(low, high, 3)
    return rng.uniform(0.001, 0.98), rng.uniform(0, 0.9), learner, baseline, centre, losses


@pytest.mark.parametrize("seed", range(40))
def test_the_expected_terms_are_the_excess_over_what_is_tolerated(seed):
    share, tolerance, learner, baseline, centre, _ = cases(seed)
    chances = np.array([share, 1 - share])
    outcomes = both_arms(share, learner, baseline)
    tolerated = baseline + tolerance * abs(baseline)
    assert chances @ excess_terms(outcomes, centre, tolerance) == pytest.approx(share * (learner - tolerated))
    spent = share * (learner - baseline) - tolerance * abs(baseline)
    assert chances @ guarantee_terms(outcomes, centre, tolerance) == pytest.approx(spent)


@pytest.mark.parametrize("seed", range(40))
def test_no_term_lies_outside_its_bounds(seed):
    share, tolerance, _, _, centre, losses = cases(seed)
    rng = np.random.default_rng(seed)
    ends = np.concatenate([rng.uniform(*losses, 200), [*losses, np.clip(0.0, *losses)]])
    for arm in (True, False):
        outcomes = Outcomes(np.full(len(ends), arm), rng.uniform(0, share, len(ends)), ends)
        outcomes.shares[-3:] = share
        below, above = excess_bounds(outcomes.shares, (centre, centre), tolerance, losses)
        terms = excess_terms(outcomes, centre, tolerance)
        assert (-below - 1e-9 <= terms).all()
        assert (terms <= above + 1e-9).all()
        assert (
            guarantee_terms(outcomes, centre, tolerance).max()
            <= guarantee_bound(share, (centre, centre), tolerance, losses) + 1e-9
        )


@pytest.mark.parametrize("seed", range(40))
def test_no_term_lies_outside_the_bounds_of_centres_between_two(seed):
    share, tolerance, _, _, _, losses = cases(seed)
    rng = np.random.default_rng(seed)
    low, high = centres = tuple(sorted(rng.uniform(*losses, 2)))
    for arm in (True, False):
        every = np.repeat([low, high, np.clip(0.0, low, high), *rng.uniform(low, high, 40)], 50)
        reported = rng.choice([*losses, np.clip(0.0, *losses), *rng.uniform(*losses, 9)], len(every))
        outcomes = Outcomes(np.full(len(every), arm), np.full(len(every), share), reported)
        below, above = excess_bounds(outcomes.shares, centres, tolerance, losses)
        terms = excess_terms(outcomes, every, tolerance)
        assert (-below - 1e-9 <= terms).all()
        assert (terms <= above + 1e-9).all()
        most = guarantee_bound(share, centres, tolerance, losses)
        assert guarantee_terms(outcomes, every, tolerance).max() <= most + 1e-9


def test_the_bounds_hold_at_all_times_even_if_the_expected_values_change():
    rng, outside = np.random.default_rng(0), 0
    for _ in range(400):
        low, high, expected, missed = Wealth(), Wealth(), 0.0, False
        for block in range(40):
            mean = 0.02 if block % 3 else 0.6  # rare large terms, then many
            terms = (rng.random(20) < mean).astype(float) * 1.0 - 0.1
            low.add(-terms / 0.1)
            high.add(terms / 0.9)
            expected += 20 * (mean - 0.1)
            missed |= not -0.1 * low.upper(0.1) <= expected <= 0.9 * high.upper(0.1)
        outside += missed
    assert outside / 400 <= 0.2  # two sides, 0.1 each


def literal_end(terms, chance):
    """The end at which the mean of the products is 1 / chance, by bisection of the definition."""
    low, high = -300.0, 300.0
    for _ in range(100):
        middle = (low + high) / 2
        products = [math.prod((1 - bet * term) * math.exp(bet * middle / len(terms)) for term in terms) for bet in BETS]
        mean = sum(math.exp(weight) * each for weight, each in zip(LOG_WEIGHTS, products, strict=True))
        low, high = (middle, high) if mean < 1 / chance else (low, middle)
    return high


@pytest.mark.parametrize("seed", range(20))
def test_the_upper_end_is_that_of_the_definition(seed):
    rng = np.random.default_rng(seed)
    terms = rng.uniform(-rng.uniform(0, 3), 1, rng.integers(1, 60))
    wealth, chance = Wealth(), 10 ** rng.uniform(-6, -0.5)
    wealth.add(terms)
    assert wealth.upper(chance) == pytest.approx(literal_end(terms.tolist(), chance), abs=1e-6)
    whole = WholeLogs()
    for term in terms.tolist():
        whole.add(WholeLogs.of(term))
    rounded = Wealth().plus(whole).upper(chance)
    assert 0 <= rounded - wealth.upper(chance) < 1e-4


def test_the_upper_end_is_below_that_of_any_bet_alone_but_for_its_weight():
    wealth = Wealth()
    wealth.add(np.random.default_rng(0).uniform(-1, 0.9, 500))
    bets = zip(wealth.logs, LOG_WEIGHTS, BETS, strict=True)
    alone = [(-math.log(0.05) - weight - log) / bet for log, weight, bet in bets]
    assert sum(map(math.exp, LOG_WEIGHTS)) == pytest.approx(1)
    assert upper_end(wealth.logs, 0.05) <= min(alone)


def decide(progress: Progress, *, learner: bool, in_flight: float = 0.0) -> Ticket:
    return progress.ticket(learner=learner, share=progress.share(in_flight))


def run(progress: Progress, learner: float, baseline: float, decisions: int, seed: int = 0) -> None:
    rng = np.random.default_rng(seed)
    for number in range(progress.next, progress.next + decisions):
        ticket = decide(progress, learner=bool(rng.random() < progress.share()))
        progress.add(number, ticket, float(rng.random() < (learner if ticket.learner else baseline)))


def test_a_better_learner_moves_up_step_by_step():
    progress = Progress(RolloutPlan(), (0.0, 1.0))
    run(progress, 0.1, 0.6, 6000)
    assert [move.target for move in progress.moves] == [2, 3]
    assert all(move.reason == "not worse" and move.high < 0 for move in progress.moves)


def test_a_worse_learner_goes_back_to_the_baseline_and_stays_there():
    progress = Progress(RolloutPlan(), (0.0, 1.0))
    run(progress, 0.9, 0.3, 4000)
    assert (progress.level, progress.share(), progress.moves[-1].reason) == (-1, 0.0, "worse")


def test_a_learner_that_gets_worse_at_full_traffic_goes_down_and_the_guarantee_holds():
    progress = Progress(RolloutPlan(), (0.0, 1.0))
    run(progress, 0.1, 0.6, 6000)
    spent = progress.spent
    run(progress, 1.0, 0.6, 6000, seed=1)
    assert progress.level < 2
    assert spent < progress.spent <= progress.plan.budget


def test_a_small_budget_limits_the_traffic():
    progress = Progress(RolloutPlan(budget=1.0), (0.0, 1.0))
    assert progress.share() == pytest.approx(1.0 / COHORT)
    run(progress, 0.9, 0.3, 2 * COHORT)
    assert progress.share() == 0.0  # the bound of what nothing is known about is above 1


def test_the_forecast_of_the_next_step_comes_true():
    progress = Progress(RolloutPlan(steps=(0.5, 1)), (0.0, 1.0))
    run(progress, 0.35, 0.5, 500)
    needed = progress.decisions_needed()
    assert needed is not None
    assert progress.level == 0
    run(progress, 0.35, 0.5, 3 * needed, seed=1)
    assert progress.level == 1


def test_a_trial_that_is_repeated_is_stricter():
    progress = Progress(RolloutPlan(), (0.0, 1.0))
    run(progress, 0.1, 0.6, 6000)
    trials, error = progress.trials[2], RolloutPlan().error
    assert trials > 1
    assert progress._chance_up == pytest.approx(error * 0.1 * 0.1 * 6 / (math.pi * (trials - 1)) ** 2)
    assert progress._chance_down == pytest.approx(error / 3 * 6 / (math.pi * trials) ** 2)


@pytest.mark.parametrize("steps", [(1,), (0.5, 1), (0.1, 0.2, 0.5, 1)])
def test_the_chances_of_all_trials_of_all_steps_are_at_most_those_of_the_plan(steps):
    progress, up, down = Progress(RolloutPlan(steps=steps), (0.0, 1.0)), 0.0, 0.0
    progress.trials = [1] * len(steps)
    for progress.level in range(len(steps)):
        for trial in range(1, 2000):
            progress.trials[progress.level] = trial
            up, down = up + progress._chance_up, down + progress._chance_down
    assert up == pytest.approx(progress.plan.error, rel=1e-3)
    assert down == pytest.approx(progress.plan.error, rel=1e-3)


def test_the_guarantee_holds_if_the_learner_gets_worse_while_losses_are_late():
    progress, in_flight, excess, worst = Progress(RolloutPlan(), (0.0, 1.0)), InFlight(), 0.0, 0.0
    losses = {}
    rng = np.random.default_rng(0)
    for number in range(9000):
        learner, baseline = 0.1 if number < 6000 else 1.0, 0.4
        share = in_flight.share(progress)
        excess += share * (learner - baseline) - 0.05 * baseline
        worst = max(worst, excess)
        in_flight.add(number, progress.ticket(learner=bool(rng.random() < share), share=share))
        losses[number] = float(rng.random() < (learner if in_flight.tickets[number].learner else baseline))
        if number >= 2000:
            progress.add(number - 2000, in_flight.tickets[number - 2000], losses[number - 2000])
            in_flight.arrive(number - 2000)
            in_flight.forget_before(progress.next)
    assert progress.moves[0].reason == "not worse"
    assert worst <= progress.plan.budget


def test_the_worst_of_decisions_without_losses_is_within_the_budget():
    progress, in_flight = Progress(RolloutPlan(steps=(0.5, 1), budget=20.0), (0.0, 1.0)), InFlight()
    for number in range(1000):
        in_flight.add(number, decide(progress, learner=False, in_flight=in_flight.total))
    assert in_flight.total == pytest.approx(20.0)
    in_flight.forget_before(1000)
    assert progress.share(in_flight.total) == pytest.approx(20.0 / COHORT)


def test_decisions_outside_the_rollout_and_repeated_losses_change_nothing():
    progress = Progress(RolloutPlan(), (0.0, 1.0))
    ticket = decide(progress, learner=True)
    progress.add(1, None, 0.5)
    progress.add(0, ticket, 0.5)
    before = replace(progress, cohort=list(progress.cohort))
    for number in (0, 1):
        progress.add(number, ticket, 0.7)
    assert progress == before
    assert (progress.next, progress.judged) == (2, 1)


def test_a_decision_is_overdue_once_one_that_is_patience_later_has_its_loss():
    progress = Progress(RolloutPlan(patience=10), (0.0, 1.0))
    ticket = decide(progress, learner=True)
    progress.add(12, ticket, 0.5)
    assert progress.overdue(100) == [0, 1, 2]
    for number in progress.overdue(100):
        progress.add(number, ticket, None)
    assert (progress.next, progress.judged, progress.left_out.left_out) == (3, 0, [3, 0])


def test_a_number_far_away_that_no_decision_has_leaves_nothing_out():
    progress = Progress(RolloutPlan(patience=10), (0.0, 1.0))
    progress.add(10**15, None, 0.5)
    assert progress.overdue(100) == []


def test_the_owner_can_go_back_and_hold_the_steps():
    held, aborted = (Progress(RolloutPlan(), (0.0, 1.0)) for _ in range(2))
    held.held = True
    run(held, 0.1, 0.6, 6000)
    assert held.level == 0
    held.held = False
    run(held, 0.1, 0.6, 200)
    assert held.level == 1
    aborted.go_back()
    assert (aborted.share(), aborted.moves[-1].reason, aborted.moves[-1].low) == (0.0, "aborted", None)


def test_a_period_without_traffic_and_with_a_centre_at_the_end_of_the_range_adds_nothing():
    progress = Progress(RolloutPlan(budget=1.0), (0.0, 1.0))
    for number in range(3 * COHORT):
        progress.add(number, decide(progress, learner=False), 0.0)
    assert progress.share() == 0.0
    assert progress.bounds() == (-math.inf, math.inf)


@pytest.mark.parametrize("losses", [(0.0, 1e300), (0.0, 1e-300), (-1e300, 0.0)])
def test_any_range_of_losses_gives_the_same_moves(losses):
    progress, unit = Progress(RolloutPlan(), losses), Progress(RolloutPlan(), (np.sign(losses[0]), np.sign(losses[1])))
    rng = np.random.default_rng(0)
    for number in range(3000):
        learner = bool(rng.random() < progress.share())
        share = 0.25 if learner else 0.75
        for each in (progress, unit):
            loss = share * each.losses[1] + (1 - share) * each.losses[0]
            each.add(number, decide(each, learner=learner), loss)
    assert [move[:4] for move in progress.moves] == [move[:4] for move in unit.moves]
    assert progress.moves


@pytest.mark.parametrize("seed", range(10))
def test_sums_of_squares_of_earlier_versions_give_at_least_the_upper_end_of_the_terms(seed):
    rng = np.random.default_rng(seed)
    bound, terms, wealth = rng.uniform(0.5, 30), rng.uniform(-2, 1, 300), Wealth()
    unknown = rng.uniform(-1, 0.9, 2)
    wealth.add(terms)
    wealth.add_unknown(*unknown)
    scaled, (low, high) = bound * terms, bound * unknown
    old = [300, scaled.sum(), (scaled**2).sum(), low, low**2, high, high**2]
    restored = rollout_files._wealth([old[0], *map(float, old[1:])], bound)
    assert (restored.count, restored.total) == (300, pytest.approx(wealth.total))
    assert wealth.upper(0.05) <= restored.upper(0.05) < wealth.upper(0.05) + 60
