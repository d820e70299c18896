"""Losses that do not come within patience: they are counted by arm, and nothing is proven by leaving them out."""

import numpy as np
import pytest

import manul
from manul.agents.rollout.excess_terms import excess_bounds, guarantee_bound, unknown_terms
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.left_out import LeftOut
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import Progress
from manul.errors import InputError, ParameterError

RANGES = [(0.0, 1.0), (-100.0, 0.0), (-2.0, 5.0), (3.0, 4.0)]


def live(seed, learner, baseline, is_late, decisions=12_000, **plan):
    """A rollout whose losses come at once, except some that come later than patience; the arms' means, and when it is late."""
    rng = np.random.default_rng(seed)
    progress, in_flight = Progress(RolloutPlan(patience=300, **plan), (0.0, 1.0)), InFlight()
    excess, worst = 0.0, 0.0
    for number in range(decisions):
        share = in_flight.share(progress)
        arm = bool(rng.random() < share)
        in_flight.add(number, progress.ticket(learner=arm, share=share))
        excess += share * (learner - baseline) - 0.05 * baseline
        worst = max(worst, excess)
        loss = float(rng.random() < (learner if arm else baseline))
        if not is_late(rng, arm, loss):
            progress.add(number, in_flight.tickets[number], loss)
            in_flight.arrive(number)
        for overdue in progress.overdue(decisions):
            progress.add(overdue, in_flight.tickets[overdue], None)
        in_flight.forget_before(progress.next)
    return progress, worst


@pytest.mark.parametrize("seed", range(4))
def test_a_learner_whose_large_losses_come_too_late_does_not_move_up(seed):
    progress, worst = live(seed, 0.4, 0.2, lambda _, arm, loss: arm and loss == 1)
    assert "not worse" not in [move.reason for move in progress.moves]
    assert progress.uneven
    assert worst <= progress.plan.budget


@pytest.mark.whole
@pytest.mark.parametrize("seed", range(4))
def test_a_surplus_of_late_losses_that_is_not_proven_yet_counts_as_the_worst(seed):
    late = lambda rng, arm, loss: rng.random() < (0.1 if not arm else 0.1 + 0.05 * loss)  # noqa: E731
    progress, _ = live(seed, 0.21, 0.2, late, steps=(0.2, 1), tolerance=0.0)
    assert [move for move in progress.moves if move.reason == "not worse"] == []


def test_losses_that_are_missing_in_both_arms_alike_do_not_hold_up_a_better_learner():
    progress, _ = live(0, 0.1, 0.5, lambda rng, *_: rng.random() < 0.03, steps=(0.2, 1))
    assert [move.reason for move in progress.moves] == ["not worse"]
    assert not progress.uneven


def test_equal_rates_are_seldom_called_different_at_any_time():
    wrong = 0
    for seed in range(400):
        rng, late, share = np.random.default_rng(seed), LeftOut(), 0.05
        for _ in range(300):
            late.add(learner=bool(rng.random() < share), share=share)
            if late.differ(0.1):
                wrong += 1
                break
    assert wrong <= 0.1 * 400


@pytest.mark.parametrize("losses", RANGES)
def test_terms_of_losses_that_never_came_are_within_the_bounds_and_cancel_out(losses):
    for share, tolerance in ((0.05, 0.0), (0.5, 0.3), (0.98, 0.05)):
        for centre in np.linspace(*losses, 5):
            arms = [
                unknown_terms(learner=arm, share=share, centre=centre, tolerance=tolerance, losses=losses)
                for arm in (True, False)
            ]
            below, above = excess_bounds(np.array([share]), (centre, centre), tolerance, losses)
            most = guarantee_bound(share, (centre, centre), tolerance, losses)
            assert all(-below[0] - 1e-9 <= term <= above[0] + 1e-9 for each in arms for term in each.excess)
            assert all(term <= most + 1e-9 for each in arms for term in each.guarantee)
            for one, other in zip(*arms, strict=True):
                assert all(share * a + (1 - share) * b <= 1e-9 for a, b in zip(one, other, strict=True))


def test_the_evidence_says_that_one_arm_lacks_more_losses():
    rollout = manul.Rollout(manul.Auto(seed=1), baseline=0.5, patience=50, steps=(0.5, 1))
    for _ in range(400):
        decision = rollout.decide([0.2])
        if decision.arm == "baseline":
            rollout.learn([0.2], decision, loss=0.5)
    evidence = rollout.evidence
    assert (evidence.uneven, evidence.left_out[0] > 100, evidence.left_out[1]) == (True, True, 0)
    assert "Held: 100 % of the learner's decisions and 0 % of the baseline's had no loss when patience ended" in str(
        evidence
    )


def test_a_saved_rollout_knows_what_was_left_out():
    rollout = manul.Rollout(manul.Cats(leaves=8, bandwidth=1 / 8), baseline=0.5, patience=20, steps=(0.5, 1))
    for number in range(300):
        decision = rollout.decide([0.2])
        if number % 3:
            rollout.learn([0.2], decision, loss=0.5)
    copy = manul.loads(manul.dumps(rollout))
    assert copy.evidence == rollout.evidence
    assert sum(copy.evidence.left_out) > 50


def test_patience_in_seconds_ends_at_the_first_loss_after_it():
    rollout = manul.Rollout(manul.Auto(), baseline=0.5, patience_seconds=60)
    late = rollout.decide([0.2], time=0.0)
    for time in (0.0, 30.0, 59.0):
        rollout.learn([0.2], rollout.decide([0.2], time=time), loss=0.5, time=time)
    assert rollout.progress.judged == 0
    rollout = manul.loads(manul.dumps(rollout))
    rollout.learn([0.2], rollout.decide([0.2], time=60.0), loss=0.5, time=60.0)
    assert (rollout.progress.judged, sum(rollout.evidence.left_out)) == (4, 1)
    with pytest.raises(InputError, match="at most `patience` \\(60 seconds\\) old"):
        rollout.learn([0.2], late, loss=0.5, time=61.0)


def test_seconds_need_the_time_and_decisions_do_not():
    timed, counted = (manul.Rollout(manul.Auto(), baseline=0.5, patience_seconds=each) for each in (60, None))
    with pytest.raises(
        InputError, match=r"time must be seconds, such as time.time\(\), since a rollout has patience_seconds"
    ):
        timed.decide([0.2])
    with pytest.raises(InputError, match="time must be given only to a rollout with patience_seconds"):
        counted.decide([0.2], time=1.0)
    with pytest.raises(ParameterError, match="patience_seconds must be"):
        manul.Rollout(manul.Auto(), baseline=0.5, patience_seconds=0)
