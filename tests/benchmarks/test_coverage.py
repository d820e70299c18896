"""The worlds of the coverage benchmark have the true losses that it says, and its cells tell intervals apart."""

import numpy as np
import pytest
from benchmarks import coverage
from benchmarks.coverage import Cell


@pytest.mark.parametrize("loss", coverage.LOSSES)
def test_the_true_loss_is_the_mean_of_many_draws(loss):
    rng, policy = np.random.default_rng(0), coverage.Window(0.5, 0.1)
    x = rng.random(400_000)
    low, high = policy.ends(x)
    actions = low + (high - low) * rng.random(len(x))
    losses = coverage.draw_losses(loss, np.abs(actions - coverage.best(x)), rng)
    assert losses.max() <= 1
    assert coverage.mean_loss(policy, loss) == pytest.approx(losses.mean(), abs=4 * losses.std() / np.sqrt(len(x)))


def test_weights_of_a_simulated_log_average_1():
    log = coverage.fixed_log(Cell("fixed", 200_000, None, "binary", "good"), 0)
    weights = coverage.Window(0.0, 0.1).distributions(log.contexts).density(log.actions) / log.densities
    assert weights.mean() == pytest.approx(1, abs=0.03)


# Section A3 of the audit: normal and bootstrap intervals fail on small logs.
@pytest.mark.parametrize("logger", ["fixed", "cats"])
def test_empirical_likelihood_holds_on_small_logs_where_others_do_not(logger):
    intervals = coverage.measure(Cell(logger, 60, 0.05, "binary", "poor"), 30).intervals
    assert intervals["empirical-likelihood"][0] >= 0.9
    assert intervals["clopper-pearson"][0] >= 0.9
    assert max(intervals["bootstrap"][0], intervals["normal"][0]) < 0.85


@pytest.mark.parametrize("trend", coverage.TRENDS)
def test_the_true_loss_of_a_trend_is_that_of_uniform_actions_if_all_explore(trend):
    log = coverage.fixed_log(Cell("fixed", 100_000, 1.0, "absolute", "good", trend), 0)
    truth = coverage.true_loss(Cell("fixed", 100_000, 1.0, "absolute", "good", trend), None)
    assert log.losses.mean() == pytest.approx(truth, abs=4 * log.losses.std() / np.sqrt(len(log)))


def test_a_policy_of_partial_agreement_agrees_with_the_fixed_one_below_it():
    policy, x = coverage.target(Cell("fixed", 10, 0.05, "absolute", 0.7, reach=1 / 64)), np.array([0.69, 0.71])
    centres, logged = (np.mean(window.ends(x), axis=0) for window in (policy, coverage.LOGGER))
    assert centres - logged == pytest.approx([0, -0.6])


def test_an_interval_that_misses_with_an_objection_counts_as_objected():
    ends = [coverage.Ends(0.1, 0.3, objected=False), coverage.Ends(0.5, 0.6, objected=True)]
    assert coverage.coverage(ends, 0.2) == pytest.approx((0.5, 0.15, 0.5, 1.0))
