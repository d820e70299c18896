"""Guards of a rollout: parts of the outcome that the learner must not make worse."""

import json

import numpy as np
import pytest

import manul
from manul.agents.rollout import rollout_files
from manul.agents.rollout.comparison import Comparison
from manul.agents.rollout.excess_terms import Outcomes
from manul.agents.rollout.guards import Guard
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import Progress
from manul.errors import ParameterError

RETURNED = manul.Outcome(parts={"returned": "yes/no", "latency": "amount"})


def live(learner, baseline, guards, *, seed=0, decisions=6000, missing=None, **plan):
    """A rollout with immediate losses: the mean loss of each arm and the means of its parts."""
    rng = np.random.default_rng(seed)
    progress = Progress(RolloutPlan(steps=(0.5, 1), **plan), (0.0, 1.0), guards=guards)
    for number in range(decisions):
        ticket = progress.ticket(learner=bool(rng.random() < progress.share()), share=progress.share())
        loss, *values = learner if ticket.learner else baseline
        parts = {
            guard.name: float(rng.random() < value) * guard.ends[1] for guard, value in zip(guards, values, strict=True)
        }
        lost = missing is not None and missing(rng, ticket, parts)
        progress.add(number, ticket, float(rng.random() < loss), {} if lost else parts)
    return progress


RULE = Guard("returned", "<=", 1.1, (0.0, 1.0))
KEPT = Guard("bought", ">=", 0.9, (0.0, 1.0))
SLOW = Guard("latency", "<=", 1.1, (0.0, 5.0))


def test_a_learner_that_is_better_in_the_loss_and_keeps_its_guards_moves_up():
    progress = live((0.2, 0.3, 0.5), (0.4, 0.4, 0.5), (RULE, KEPT))
    assert [move.reason for move in progress.moves] == ["not worse"]


@pytest.mark.parametrize(("guard", "value"), [(RULE, 0.6), (KEPT, 0.3), (SLOW, 0.6)])
def test_a_learner_that_breaks_a_guard_goes_down_whatever_it_saves(guard, value):
    progress = live((0.1, value), (0.6, 0.45), (guard,))
    assert (progress.level, progress.moves[-1].reason, progress.moves[-1].guard) == (-1, "worse", guard.name)
    assert progress.moves[-1].low > 0


def test_a_learner_whose_guard_is_not_proven_waits():
    progress = live((0.1, 0.5), (0.6, 0.5), (Guard("returned", "<=", 1.0, (0.0, 1.0)),), decisions=2000)
    assert progress.moves == []
    assert progress.bounds()[1] < 0 < progress.guard_bounds(progress.watches[0])[1]


def test_a_step_up_has_the_whole_chance_of_error_and_a_step_down_shares_it():
    guarded, plain = (Progress(RolloutPlan(), (0.0, 1.0), guards=guards) for guards in ((RULE, KEPT), ()))
    outcomes = Outcomes(np.arange(400) % 2 == 0, np.full(400, 0.5), np.arange(400) % 3 / 2)
    for progress in (guarded, plain):
        progress.comparison.add(outcomes, 0.5, (0.5, 0.5))
    assert guarded.bounds()[1] == plain.bounds()[1]
    alone = plain.comparison.bounds(worse=plain._chance_down / 3, not_worse=plain._chance_up)
    assert guarded.bounds() == alone


def test_missing_values_of_a_guard_count_at_both_extremes():
    lost = live((0.2, 0.2), (0.4, 0.4), (RULE,), decisions=900, missing=lambda rng, *_: rng.random() < 0.3)
    known = live((0.2, 0.2), (0.4, 0.4), (RULE,), decisions=900)
    assert sum(lost.watches[0].left_out.left_out) > 200
    assert lost.watches[0].comparison.count < known.watches[0].comparison.count
    assert lost.watches[0].comparison.below.terms.unknown is not None


@pytest.mark.parametrize("seed", range(3))
def test_a_learner_whose_bad_values_are_not_reported_does_not_move_up(seed):
    hide = lambda _rng, ticket, parts: ticket.learner and parts["returned"] == 1  # noqa: E731
    progress = live((0.2, 0.6), (0.4, 0.4), (RULE,), seed=seed, missing=hide)
    assert "not worse" not in [move.reason for move in progress.moves]
    assert progress.uneven


def test_more_is_better_mirrors_less_is_better():
    values = np.random.default_rng(0).random(400)
    less, more = (Guard("x", relation, ratio, (0.0, 2.0)) for relation, ratio in (("<=", 1.05), (">=", 0.95)))
    bounds = []
    for guard in (less, more):
        losses = np.array([guard.loss(value) for value in values])
        comparison = Comparison(guard.tolerance, guard.losses)
        comparison.add(Outcomes(np.arange(400) % 2 == 0, np.full(400, 0.5), losses), 0.0, (0.0, 0.0))
        bounds.append(comparison.bounds(worse=0.05, not_worse=0.05))
    assert guard.value(guard.loss(0.7)) == pytest.approx(0.7)
    assert bounds[0][0] < 0 < bounds[0][1]
    assert bounds[1][0] < 0 < bounds[1][1]


def test_a_rollout_with_guards_is_the_same_after_it_was_saved():
    progress = live(
        (0.2, 0.3, 0.5), (0.4, 0.4, 0.5), (RULE, SLOW), decisions=777, missing=lambda rng, *_: rng.random() < 0.1
    )
    described = json.loads(json.dumps(rollout_files.describe(progress)))
    assert rollout_files.restore(progress.plan, (0.0, 1.0), described, (RULE, SLOW)) == progress


def test_a_rollout_watches_the_parts_that_learn_is_told():
    plan = {"guard": {"returned": ("<=", 1.1), "latency": ("<=", 1.2, (0, 5))}, "steps": (0.5, 1)}
    rollout = manul.Rollout(manul.Auto(outcome=RETURNED, seed=1), baseline=0.5, **plan)
    for number in range(300):
        decision = rollout.decide([0.3])
        parts = {"returned": number % 3 == 0, "latency": 7.0 if number % 10 == 0 else 1.0}
        rollout.learn([0.3], decision, loss=0.5, parts=parts if number % 20 else None)
    latency, returned = rollout.evidence.guards
    assert (returned.baseline, latency.baseline) == (pytest.approx(1 / 3, abs=0.15), pytest.approx(1.4, abs=0.4))
    assert (latency.beyond, sum(latency.left_out)) == (15, 15)
    assert "Guard 'returned' (at most 1.1 times the baseline's): not proven yet" in str(rollout.evidence)
    again = manul.loads(manul.dumps(rollout))
    assert (again.evidence, again.decide([0.3])) == (rollout.evidence, rollout.decide([0.3]))


def test_batches_are_watched_like_single_decisions():
    one, many = (
        manul.Rollout(manul.Auto(outcome=RETURNED, seed=1), baseline=0.5, guard={"returned": ("<=", 1.1)}) for _ in "ab"
    )
    rows = np.full((120, 1), 0.3)
    decisions = many.decide_many(rows)
    returned = [None if number % 5 == 0 else number % 2 == 0 for number in range(120)]
    singles = [one.decide([0.3]) for _ in rows]
    for decision, value in zip(singles, returned, strict=True):
        one.learn([0.3], decision, loss=0.5, parts={"returned": value})
    many.learn_many(rows, decisions, np.full(120, 0.5), parts={"returned": returned})
    assert one.progress.watches == many.progress.watches


@pytest.mark.parametrize(
    ("guard", "message"),
    [
        ({}, "guard must be 1 to 8 rules by part"),
        ({"returned": "<= 1"}, "guard of 'returned' must be"),
        ({"returned": ("<", 1.0)}, "must begin with '<=' or '>=', got '<'"),
        ({"returned": ("<=", 0.9)}, r"guard must be in \[1, 2\), got 0.9"),
        ({"returned": (">=", 1.1)}, r"guard must be in \(0, 1\], got 1.1"),
        ({"latency": ("<=", 1.0)}, "guard 'latency' is an amount and needs a range"),
        ({"retuned": ("<=", 1.0)}, "guard 'retuned' must be a part of the outcome. Did you mean returned?"),
    ],
)
def test_a_guard_that_cannot_be_watched_is_refused(guard, message):
    with pytest.raises(ParameterError, match=message) as raised:
        manul.Rollout(manul.Auto(outcome=RETURNED), baseline=0.5, guard=guard)
    assert raised.value.field == "guard"
