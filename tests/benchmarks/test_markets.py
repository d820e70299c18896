"""The optimum of each market is the best that brute force finds, and its formula gives its rewards."""

import numpy as np
import pytest
from benchmarks.markets import MARKETS, SISTERS, pricing, returns
from benchmarks.simulated_worlds import ALL

ROUNDS = 3000


@pytest.fixture(params=[*MARKETS, *SISTERS, "returns"], scope="module")
def market(request):
    return {**MARKETS, **SISTERS, "returns": returns}[request.param](7, ROUNDS)


@pytest.fixture
def prices(market, rng):
    return rng.uniform(*market.actions, ROUNDS)


def test_the_best_of_many_actions_is_as_good_as_the_optimum(market):
    losses = np.array([market.expected(action, slice(40)) for action in np.linspace(*market.actions, 4001)])
    span = losses.max(0) - losses.min(0)
    assert (np.abs(losses.min(0) - market.best[:40]) <= 2e-3 * span).all()


def test_the_mean_reward_of_random_actions_is_the_expected_one(market, prices):
    drawn = np.array([market.loss(price, number) for number, price in enumerate(prices)])
    errors = drawn - market.expected(prices, ALL)
    assert abs(errors.mean()) < 4 * errors.std() / np.sqrt(ROUNDS)


@pytest.mark.parametrize("name", MARKETS)
def test_the_formula_of_the_parts_is_the_reward(name, rng):
    market = MARKETS[name](7, 200)
    formulas = {
        "bought": lambda price, bought: (price - market.cost) * bought,
        "units": lambda price, units: (price - market.cost) * units,
        "won": lambda bid, won, value=0.0: (value - bid) * won,
    }
    for number, action in enumerate(rng.uniform(*market.actions, 200)):
        reward = formulas[market.kind](action, **market.parts(action, number))
        assert reward == pytest.approx(-market.loss(action, number))


def test_sisters_have_the_same_taste_and_other_visitors():
    here, sister = pricing(3, 50), SISTERS["twice as dear"](3, 50)
    assert not np.allclose(here.rows, sister.rows)
    assert pricing(3, 50, draw=1).expected(20.0, ALL) == pytest.approx(sister.expected(40.0, ALL) / 2)
