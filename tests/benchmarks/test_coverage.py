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
    weights = coverage.Window(0.0, 0.1).densities_many(log.contexts, log.actions) / log.densities
    assert weights.mean() == pytest.approx(1, abs=0.03)


# Section A3 of the audit: normal and bootstrap intervals fail on small logs.
@pytest.mark.parametrize("logger", ["fixed", "cats"])
def test_empirical_likelihood_holds_on_small_logs_where_others_do_not(logger):
    intervals = coverage.measure(Cell(logger, 60, 0.05, "binary", "poor"), 30).intervals
    assert intervals["empirical-likelihood"][0] >= 0.9
    assert intervals["clopper-pearson"][0] >= 0.9
    assert max(intervals["bootstrap"][0], intervals["normal"][0]) < 0.85
