"""Estimates from estimated densities: refused if the weights do not average 1, and never by ips."""

import numpy as np
import pytest

import manul
from manul.errors import InputError, ParameterError
from manul.offpolicy.evaluation.estimated_densities import are_rounded


@pytest.fixture(scope="module")
def estimated():
    agent = manul.Cats(leaves=8, bandwidth=1 / 8, epsilon=0.2)
    log = manul.simulate(agent, manul.worlds.linear(rounds=3000, width=2)).log
    return manul.offpolicy.estimate_densities(log)


def test_an_estimate_near_the_logged_actions_is_given(estimated):
    estimate = manul.evaluate(lambda _: 0.5, estimated, bandwidth=1 / 2)
    assert 0.8 < estimate.mean_weight < 1.25


def test_a_policy_that_the_log_never_played_is_refused(rng):
    rows = 2000
    log = manul.Log(rng.random((rows, 2), np.float32), 0.3 * rng.random(rows), np.ones(rows), rng.random(rows))
    log = manul.offpolicy.estimate_densities(log)
    with pytest.raises(InputError, match=r"hardly ever played what this policy plays \(mean weight 0.*\); no estimate"):
        manul.evaluate(lambda _: 0.35, log, bandwidth=0.1)


def test_ips_is_refused(estimated):
    with pytest.raises(ParameterError, match="estimator ips needs logged densities"):
        manul.evaluate(lambda _: 0.5, estimated, "ips", bandwidth=1 / 4)


def test_evaluate_and_compare_refuse_rounded_actions_like_optimize():
    log = manul.simulate(manul.Cats(leaves=4, bandwidth=1 / 4), manul.worlds.linear(rounds=500, width=2)).log
    rounded = manul.Log(log.contexts, log.actions.round(1), np.ones(500), log.losses, densities_estimated=True)
    sentence = "The log has only 10 distinct actions in 500 rows, and says nothing about those between; no estimate."
    with pytest.raises(InputError, match=sentence):
        manul.evaluate(manul.Cats(leaves=4, bandwidth=1 / 2), rounded)
    (row,) = manul.compare([manul.Cats(leaves=4, bandwidth=1 / 2)], rounded)
    assert [objection.sentence for objection in row.objections] == [sentence]
    assert manul.optimize(rounded).without_densities.refusal == sentence


GRIDS = {"cents": lambda price: price.round(2), "euros": np.round, "x.99": lambda price: np.floor(price) + 0.99}


def price_history(grid, rows=3000):
    """Prices of a rule with noise, on a grid; the loss is the distance from the best price."""
    rng = np.random.default_rng(0)
    size = rng.random((rows, 1), np.float32)
    prices = np.clip(grid(22 + 20 * size[:, 0] + rng.normal(0, 5, rows)), 5, 60)
    return manul.Log(size, prices, np.ones(rows), 0.02 * np.abs(prices - 20 - 20 * size[:, 0]), action_range=(5, 60))


@pytest.mark.parametrize("grid", GRIDS)
def test_prices_on_a_fine_grid_get_an_estimate_that_is_right(grid):
    log = manul.offpolicy.estimate_densities(price_history(GRIDS[grid]))
    estimate = manul.evaluate(lambda size: 20 + 20 * size[0], log, bandwidth=4)
    assert estimate.value == pytest.approx(0.02 * 2, abs=0.005)  # a price is 2 from the best one, on average


def test_it_is_no_matter_how_many_rows_repeat_a_price(rng):
    cents, densities = rng.normal(30, 5, 60_000).round(2), np.full(60_000, 1 / 15)
    assert not any(are_rounded(cents[:rows], densities[:rows]) for rows in (50, 6000, 12_000, 60_000))
    assert are_rounded(np.floor(cents / 10) * 10 + 9.99, densities)


def test_a_grid_is_coarse_if_it_is_so_given_the_context(rng):
    prices = 5 * np.round(rng.normal(100, 40, 4000) / 5)
    assert not are_rounded(prices, np.full(4000, 1 / 100))
    assert are_rounded(prices, np.full(4000, 1 / 30))  # the context leaves few prices
