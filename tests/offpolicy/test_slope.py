"""SLOPE takes wide windows where the loss is flat and narrow ones where it is steep."""

import numpy as np
import pytest

import manul
from manul.logs.sample import Sample
from manul.offpolicy.evaluation.bandwidth import choose_bandwidth, slope

RANGE = (0.0, 1.0)


def uniform_log(loss_of, seed=1, rows=20_000):
    rng = np.random.default_rng(seed)
    actions = rng.random(rows)
    losses = (rng.random(rows) < loss_of(actions)).astype(np.float64)
    return manul.Log(np.zeros((rows, 1), np.float32), actions, np.ones(rows), losses)


def chosen(loss_of):
    logs = [uniform_log(loss_of, seed) for seed in range(15)]
    return np.median([choose_bandwidth(lambda _: 0.5, Sample.of(log)) for log in logs])


def test_a_flat_loss_takes_a_wide_window():
    assert chosen(lambda action: np.full(len(action), 0.3)) >= 0.125


def test_a_steep_loss_takes_a_narrow_window():
    assert chosen(lambda action: np.abs(action - 0.5) > 0.05) < 0.1


def test_slope_stops_at_the_first_interval_that_misses_one_before():
    estimates, errors = np.array([0.5, 0.52, 0.9, 0.5]), np.array([0.2, 0.1, 0.04, 0.02])
    assert slope(estimates, errors) == 1


def test_the_estimate_names_the_bandwidth_and_is_close():
    estimate = manul.evaluate(lambda _: 0.5, uniform_log(lambda action: np.abs(action - 0.5)))
    assert estimate.value < 0.05
    assert estimate.bandwidth <= 0.125


@pytest.mark.parametrize("constant", [-3.0, 0.5, 20.0])
def test_a_constant_added_to_all_losses_changes_nothing(constant):
    log = uniform_log(lambda action: np.abs(action - 0.5))
    shifted = manul.Log(log.contexts, log.actions, log.densities, log.losses + constant)
    wider = (min(constant, 0.0), max(constant, 0.0) + 1.0)  # the range may also contain values that do not occur
    windows = [
        choose_bandwidth(lambda _: 0.5, Sample.of(each, losses=span)) for each, span in ((log, RANGE), (shifted, wider))
    ]
    assert windows[0] == windows[1] < 0.5


def test_a_log_without_enough_rows_in_any_window_takes_the_widest():
    assert choose_bandwidth(lambda _: 0.5, Sample.of(uniform_log(lambda action: action, rows=20))) == 0.5
