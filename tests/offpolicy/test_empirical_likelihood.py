"""Empirical likelihood in cells is that of all rows, however the rows are cut into pieces."""

import numpy as np
import pytest
from scipy.optimize import minimize

import manul
from manul.offpolicy.evaluation.empirical_likelihood import EmpiricalLikelihood
from manul.offpolicy.evaluation.gain import Gain
from manul.offpolicy.evaluation.intervals import Terms
from manul.offpolicy.smoothed import Smoothed
from tests.twins import empirical_likelihood as twin


def rows_of(kind, rng, count):
    """Weights that average 1 and losses: windows on a uniform log, an epsilon-greedy log, and heavy tails."""
    actions = rng.random(count)
    if kind == "uniform":
        return 4.0 * (actions < 0.25), (rng.random(count) < actions).astype(float), 4.0
    if kind == "epsilon-greedy":
        density = np.where(rng.random(count) < 0.05, 0.05, 1.95)
        return np.where(actions < 0.5, 1.0 / density, 0.2), np.abs(actions - 0.3), 20.0
    return np.minimum(rng.pareto(1.5, count) / 2, 1e3), actions**4, 1e6


def terms(weights, losses):
    return Terms(weights * losses, weights, weights, losses)


KINDS = ["uniform", "epsilon-greedy", "heavy-tailed"]


def test_the_twin_finds_the_maximum():
    rng = np.random.default_rng(3)
    points, counts = rng.normal(size=(50, 2)), rng.random(50)
    with np.errstate(invalid="ignore", divide="ignore"):
        negative = lambda at: np.nan_to_num(-(counts @ np.log(1 + points @ at)), nan=np.inf, posinf=np.inf)  # noqa: E731
        found = minimize(negative, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12})
    assert twin.maximum(points, counts) == pytest.approx(-found.fun, abs=1e-8)


@pytest.mark.parametrize("count", [50, 400])
@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_of_a_loss_is_that_of_all_rows(kind, count):
    weights, losses, bound = rows_of(kind, np.random.default_rng(count), count)
    interval = EmpiricalLikelihood()
    interval.add(terms(weights, losses))
    assert interval.ends(0.95, bound) == pytest.approx(twin.loss_interval(weights, losses, bound), abs=5e-4)


@pytest.mark.parametrize("count", [50, pytest.param(150, marks=pytest.mark.whole)])
@pytest.mark.parametrize("kind", KINDS)
def test_the_interval_of_a_gain_is_that_of_all_rows(kind, count):
    weights, losses, bound = rows_of(kind, np.random.default_rng(count), count)
    gain = Gain()
    gain.add(weights, losses, bound)
    assert gain.interval() == pytest.approx(twin.gain_interval(weights, losses, bound), abs=5e-4)


def test_the_interval_of_a_difference_is_that_of_all_rows():
    rng = np.random.default_rng(1)
    actions = rng.random(300)
    ones, others, losses = 4.0 * (actions < 0.25), 2.0 * (actions > 0.5), (rng.random(300) < actions).astype(float)
    gain = Gain()
    gain.add(ones, losses, 4.0, others, 2.0)
    assert gain.interval() == pytest.approx(twin.gain_interval(ones, losses, 4.0, others, 2.0), abs=5e-4)


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_interval_does_not_depend_on_the_pieces(size):
    weights, losses, bound = rows_of("heavy-tailed", np.random.default_rng(0), 1000)
    whole, cut = Gain(), Gain()
    whole.add(weights, losses, bound)
    for start in range(0, 1000, size):
        cut.add(weights[start : start + size], losses[start : start + size], bound)
    assert cut.interval() == pytest.approx(whole.interval(), abs=1e-9)


def test_a_policy_that_is_the_logged_one_gains_nothing():
    gain = Gain()
    gain.add(np.ones(100), np.random.default_rng(0).random(100), 1.0)
    assert gain.value == pytest.approx(0, abs=1e-9)
    assert gain.interval() == pytest.approx((0, 0), abs=1e-2)


def fading_log(seed, trend):
    """A logger whose epsilon falls from 0.3 to 0.02, and losses that change over time."""
    rng, times = np.random.default_rng(seed), np.linspace(0, 1, 2000)
    epsilons = 0.02 + 0.28 * (1 - times) ** 4
    actions = np.where(rng.random(2000) < epsilons, rng.random(2000), 0.2 * rng.random(2000))
    densities = epsilons + (1 - epsilons) * 5 * (actions < 0.2)
    losses = 0.5 * trend(times) + 0.5 * actions
    return manul.Log(np.zeros((2000, 1), np.float32), actions, densities, losses, floors=epsilons)


POLICY = Smoothed(lambda _: 0.25, 0.15, (0.0, 1.0))
TRENDS = {"rising": lambda t: t, "falling": lambda t: 1 - t, "seasonal": lambda t: (1 + np.sin(6 * np.pi * t)) / 2}


@pytest.mark.parametrize("trend", TRENDS)
def test_losses_that_change_while_exploration_fades_are_in_the_interval(trend):
    estimates = [manul.evaluate(POLICY, fading_log(seed, TRENDS[trend])) for seed in range(40)]
    truth = 0.5 * TRENDS[trend](np.linspace(0, 1, 2000)).mean() + 0.5 * 0.25
    assert sum(each.low <= truth <= each.high for each in estimates) >= 36
    assert all(each.low < each.value < each.high for each in estimates)


def test_the_interval_does_not_depend_on_the_order_of_the_rows():
    log = fading_log(0, TRENDS["rising"])
    forward, backward = (manul.evaluate(POLICY, log.rows(order)) for order in (slice(None), slice(None, None, -1)))
    assert (backward.low, backward.high) == pytest.approx((forward.low, forward.high), abs=1e-9)


def test_weights_that_do_not_average_1_are_evidence():
    weights, losses, bound = rows_of("uniform", np.random.default_rng(0), 1000)
    right, wrong = EmpiricalLikelihood(), EmpiricalLikelihood()
    right.add(terms(weights, losses))
    wrong.add(terms(1.5 * weights, losses))
    assert right.evidence_against_weights(bound) < 3
    assert wrong.evidence_against_weights(1.5 * bound) > 5.4
