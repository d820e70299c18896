"""Predicted losses as centres of the terms of a rollout: the same expected values with less variance."""

import json

import numpy as np
import pytest

import manul
from manul.agents.rollout import rollout_files
from manul.agents.rollout.excess_terms import Outcomes, excess_terms
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import COHORT, Progress, Ticket

CONTEXTS = np.array([0.02, 0.6])  # probabilities of a loss


def live(decisions, *, learner=0.8, predict=lambda _, mean: mean, seed=0, losses=(0.0, 1.0), **plan):
    """A rollout of binary losses whose probability depends on the context, with predictions."""
    rng, (low, high) = np.random.default_rng(seed), losses
    progress = Progress(RolloutPlan(steps=(0.2, 1), **plan), losses)
    for number in range(decisions):
        mean, share = rng.choice(CONTEXTS), progress.share()
        predicted = predict(rng, mean)
        own = None if predicted is None else low + predicted * (high - low)
        ticket = progress.ticket(learner=bool(rng.random() < share), share=share, predicted=own)
        loss = float(rng.random() < mean * (learner if ticket.learner else 1.0))
        progress.add(number, ticket, low + loss * (high - low))
    return progress


def test_the_expected_terms_are_the_same_whatever_is_predicted():
    share, tolerance, predicted = 0.3, 0.05, np.array([0.1, 0.9])
    chances = np.array([share, 1 - share])
    outcomes = Outcomes(np.array([True, False]), np.full(2, share), np.array([0.4, 0.5]))
    for centre in predicted:
        expected = chances @ excess_terms(outcomes, np.full(2, centre), tolerance)
        assert expected == pytest.approx(share * (0.4 - 1.05 * 0.5))


@pytest.mark.parametrize("losses", [(0.0, 1.0), (-3.0, 2.0)])
def test_good_predictions_make_the_evidence_sharper(losses):
    known, unknown = (live(3000, predict=predict, losses=losses, least_decisions=10**6) for predict in (
        lambda _, mean: mean, lambda *_: None
    ))  # fmt: skip
    widths = [high - low for low, high in (known.bounds(), unknown.bounds())]
    assert widths[0] < 0.9 * widths[1]


def test_predictions_that_say_nothing_are_hardly_used():
    progress = live(6000, predict=lambda rng, _: rng.random(), least_decisions=10**6)
    covariance, variance = progress.fit
    assert covariance / variance < 0.2


def test_the_centre_of_a_decision_is_between_the_mean_loss_and_its_prediction():
    progress = live(1000, least_decisions=10**6)
    low, high = progress.bands[0]
    for predicted in (-5.0, 0.0, 0.3, 0.7, 9.0):
        ticket = progress.ticket(learner=True, share=0.2, predicted=predicted)
        clipped = min(max(predicted, 0.0), 1.0)
        ends = sorted((progress.centres[0], clipped))
        assert ticket.predicted == clipped
        assert max(low, ends[0]) <= ticket.centre <= min(high, ends[1])


def test_the_first_decisions_and_those_without_a_model_have_the_centre_of_the_step():
    progress = live(COHORT - 1)
    assert {each.ticket.centre for each in progress.cohort} == {None}
    plain = live(COHORT + 5, predict=lambda *_: None)
    assert plain.bands == [(plain.centres[0], plain.centres[0])]


def test_predictions_are_saved_and_those_of_earlier_files_are_absent():
    progress = live(333)
    described = json.loads(json.dumps(rollout_files.describe(progress)))
    assert rollout_files.restore(progress.plan, (0.0, 1.0), described) == progress
    assert rollout_files.ticket(progress, True, 0.1, 0, 0) == Ticket(True, 0.1, 0, 0)


@pytest.mark.parametrize("seed", range(3))
def test_a_learner_that_is_as_bad_as_tolerated_is_not_promoted_by_predictions(seed):
    progress = live(6000, learner=1.05, seed=seed)
    assert "not worse" not in [move.reason for move in progress.moves]


def test_auto_predicts_and_cats_does_not():
    for agent, predicts in ((manul.Auto(seed=1), True), (manul.Cats(leaves=8, bandwidth=1 / 8), False)):
        rollout = manul.Rollout(agent, baseline=0.5, steps=(0.5, 1))
        rollout.decide([0.3])
        ticket = rollout._in_flight.tickets[0]
        assert (ticket.predicted is not None) == predicts


SPACES = {
    "knobs": ({"price": (10, 50), "kind": manul.Choice(["a", "b"])}, {"price": 20.0, "kind": "b"}),
    "steps": (manul.Stepped(1, 5, 1), 2.0),
    "choice": (manul.Choice(["a", "b"]), "b"),
    "named": ({"price": (10, 50)}, {"price": 20.0}),
}


@pytest.mark.parametrize("space", SPACES)
def test_every_space_has_predictions_that_survive_a_file(space):
    actions, baseline = SPACES[space]
    rollout = manul.Rollout(manul.Auto(actions=actions, seed=1), baseline=baseline, steps=(0.5, 1))
    for number in range(120):
        context = {"age": number % 7}
        rollout.learn(context, rollout.decide(context), loss=number % 7 / 7)
    again = manul.loads(manul.dumps(rollout))
    assert again.progress == rollout.progress
    assert again.decide({"age": 3}) == rollout.decide({"age": 3})
    assert again._in_flight.tickets == rollout._in_flight.tickets
