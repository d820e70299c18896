"""The benchmark of formulas plays what is installed, and judges missed shares by world, player and window."""

import numpy as np
import pytest
from benchmarks import formula_models, formulas
from benchmarks.formulas import Cell
from benchmarks.markets import MARKETS


@pytest.mark.parametrize("world", ["pricing", "counts", "bidding"])
def test_a_regression_that_knows_the_formula_beats_random_prices(world, rng):
    market = MARKETS[world](3, 300)
    random = market.regrets(rng.uniform(*market.actions, 300))
    assert market.regrets(formula_models.play(market, 0))[100:].mean() < 0.6 * random.mean()


def test_the_best_constant_misses_less_than_another_one():
    market = MARKETS["shop"](3, 300)
    best, other = (market.regrets(np.full(300, price)).sum() for price in (market.best_constant(), 60.0))
    assert best < other


def test_a_window_is_judged_by_its_mean_over_seeds():
    missed = np.array([[1, 1, 1, 0.04, 0.03], [1, 1, 1, 0.08, 0.01]])
    found = list(formulas.checks({Cell("markets", "pricing", "formula"): missed}))
    assert [(check.name, check.value, check.ok) for check in found] == [
        ("pricing, missed in rounds 300 to 1000", pytest.approx(0.06), False),
        ("pricing, missed in rounds 1000 to 4000", pytest.approx(0.02), True),
    ]


def test_ratios_to_auto_need_both_players():
    results = {
        Cell("wrong", "returns", "formula"): np.full((2, 5), 0.3),
        Cell("wrong", "returns", "Auto"): np.full((2, 5), 0.2),
    }
    assert [check.value for check in formulas.checks(results)] == pytest.approx([1.5, 1.5])
