"""Rollouts that are simulated at once end as those that are simulated one by one."""

import numpy as np
import pytest
from benchmarks.rollout import DELAY, MEAN, SCENARIOS, draw, play
from benchmarks.rollouts_at_once import play_at_once

from manul.agents.rollout.rollout_plan import RolloutPlan

PLANS = [
    RolloutPlan(),
    RolloutPlan(steps=(0.2, 0.5, 0.7, 1), tolerance=0.3, budget=30, least_decisions=1000),
    RolloutPlan(steps=(0.3, 0.5), tolerance=0, confidence=0.6, budget=400),
]
SOME = [each for each in SCENARIOS if each.name.startswith("beta") or each.name == "binary +20 %"]


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("scenario", SOME, ids=[each.name for each in SOME])
def test_the_outcomes_are_those_of_single_rollouts(scenario, plan):
    seeds, decisions = range(1), 8_000
    at_once = play_at_once(draw(scenario, decisions, seeds), plan, MEAN)
    for row, seed in enumerate(seeds):
        single = play(draw(scenario, decisions, [seed]), plan, np.zeros(decisions, int))
        assert [column[row] for column in at_once] == pytest.approx(list(single))


@pytest.mark.whole
def test_late_losses_delay_the_steps():
    scenario = SCENARIOS[0]
    draws = draw(scenario, 40_000, [0])
    delays = np.random.default_rng(0).geometric(1 / DELAY, 40_000)
    assert play(draws, RolloutPlan(), delays).full > play(draws, RolloutPlan(), 0 * delays).full
