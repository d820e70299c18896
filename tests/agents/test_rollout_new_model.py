"""A new model in a running rollout: it begins at the first step, without what the earlier one has earned."""

import json

import numpy as np
import pytest

import manul
from manul.agents.rollout import rollout_files
from manul.agents.rollout.in_flight import InFlight
from manul.agents.rollout.rollout_plan import RolloutPlan
from manul.agents.rollout.rollout_progress import Progress
from manul.errors import ParameterError


def live(progress, in_flight, learner, baseline, decisions, delay=0, seed=0):
    """Decisions with binary losses, which come late; returns the learner's excess over the baseline at its highest."""
    rng, first, excess, worst = np.random.default_rng(seed), progress.next + len(in_flight.tickets), 0.0, 0.0
    for number in range(first, first + decisions):
        share = in_flight.share(progress)
        in_flight.add(number, progress.ticket(learner=bool(rng.random() < share), share=share))
        excess += share * (learner - baseline) - progress.plan.tolerance * baseline
        worst = max(worst, excess)
        if number - delay in in_flight.tickets:
            ticket = in_flight.tickets[number - delay]
            progress.add(number - delay, ticket, float(rng.random() < (learner if ticket.learner else baseline)))
            in_flight.arrive(number - delay)
        in_flight.forget_before(progress.next)
    return worst


def at_full_traffic(delay=0):
    progress, in_flight = Progress(RolloutPlan(), (0.0, 1.0)), InFlight()
    live(progress, in_flight, 0.05, 0.7, 8000, delay)
    assert (progress.level, progress.spent < 0) == (2, True)
    return progress, in_flight


@pytest.mark.parametrize("delay", [0, 500])
def test_a_new_model_begins_at_the_first_step_without_credit(delay):
    progress, in_flight = at_full_traffic(delay)
    progress.restart()
    assert (progress.level, progress.spent, progress.tested, progress.proven) == (0, 0.0, 0, False)
    assert in_flight.share(progress) <= 0.05
    worst = live(progress, in_flight, 1.0, 0.6, 4000, delay, seed=1)
    assert worst <= progress.plan.budget
    assert progress.level <= 0


def test_a_good_new_model_takes_over_again():
    progress, in_flight = at_full_traffic()
    progress.restart()
    live(progress, in_flight, 0.1, 0.6, 6000, seed=1)
    assert progress.level == 2
    assert [move.reason for move in progress.moves][2] == "model replaced"


def test_what_earlier_models_have_cost_is_owed():
    progress, in_flight = Progress(RolloutPlan(steps=(0.2, 1)), (0.0, 1.0)), InFlight()
    live(progress, in_flight, 0.7, 0.5, 300)
    before = progress.spent
    assert before > 5
    progress.restart()
    assert progress.spent == pytest.approx(before)


def test_losses_of_the_earlier_model_give_the_new_one_no_credit():
    progress, in_flight = at_full_traffic(delay=1000)
    progress.restart()
    for number, ticket in list(in_flight.tickets.items()):
        progress.add(number, ticket, 0.0 if ticket.learner else 1.0)
    assert progress.spent >= 0


@pytest.mark.parametrize("delay", [0, 300])
def test_a_restored_rollout_knows_which_model_made_a_decision(delay):
    progress, in_flight = at_full_traffic(delay)
    progress.restart()
    live(progress, in_flight, 0.3, 0.6, 777, delay, seed=2)
    described = json.loads(json.dumps(rollout_files.describe(progress)))
    assert rollout_files.restore(progress.plan, progress.losses, described) == progress


def test_an_agent_that_replaces_the_learner_of_a_rollout_begins_at_the_first_step():
    rollout = manul.Rollout(manul.Auto(seed=7), baseline=0.5)
    manul.simulate(rollout, manul.worlds.linear(rounds=4000))
    assert rollout.traffic == 0.98
    rollout.agent = manul.Auto(seed=8)
    assert (rollout.traffic, rollout.evidence.step, rollout.evidence.judged) == (0.05, 1, 0)
    with pytest.raises(ParameterError, match="agent must have the actions, losses"):
        rollout.agent = manul.Auto(actions=(0, 2))


def test_one_step_is_not_done_before_anything_is_proven_nor_without_traffic():
    rollout = manul.Rollout(manul.Auto(seed=7), baseline=0.5, steps=(1.0,))
    assert rollout.evidence.status == "waiting"
    manul.simulate(rollout, manul.worlds.linear(rounds=500))
    assert (rollout.evidence.status, rollout.traffic) == ("waiting", 0.0)
    assert "The budget is used up" in str(rollout.evidence)
    proven = manul.Rollout(manul.Auto(seed=7), baseline=0.5, steps=(0.5,))
    manul.simulate(proven, manul.worlds.linear(rounds=4000))
    assert (proven.evidence.status, proven.traffic) == ("done", 0.5)


def test_a_rollout_of_an_earlier_version_goes_on_as_it_was():
    progress, _ = at_full_traffic()
    described = rollout_files.describe(progress)
    new = {"began", "owed", "proven", "left_shares", "earlier", "left_out"}
    old = {name: value for name, value in described.items() if name not in new}
    restored = rollout_files.restore(progress.plan, progress.losses, old)
    assert (restored.level, restored.proven, restored.spent) == (2, True, progress.spent)
    assert (restored.guarantee, restored.share()) == (progress.guarantee, progress.share())
