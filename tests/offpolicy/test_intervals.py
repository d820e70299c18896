"""Intervals are their formulas, and hold as often as they say; benchmarks/coverage.py has 500 logs for each."""

import math

import numpy as np
import pytest
from scipy.stats import binomtest

import manul
from manul.offpolicy.evaluation.intervals import (
    INTERVALS,
    REPLICATES,
    Bernstein,
    Bootstrap,
    ClopperPearson,
    Normal,
    Sequence,
    Terms,
    Wealth,
)


def ips(weights, losses):
    return Terms(weights * losses, np.ones(len(weights)), weights, losses)


def snips(weights, losses):
    return Terms(weights * losses, weights, weights, losses)


def ends(interval, terms, largest=1.0, level=0.95):
    interval.add(terms)
    return interval.ends(level, largest)


def test_clopper_pearson_is_that_of_a_share():
    exact = binomtest(30, 100).proportion_ci(0.95, method="exact")
    assert ends(ClopperPearson(), ips(np.ones(100), np.repeat([1.0, 0.0], [30, 70]))) == pytest.approx(tuple(exact))


@pytest.mark.parametrize(("loss", "expected"), [(0.0, (0.0, 0.0362)), (1.0, (0.9638, 1.0))])
def test_clopper_pearson_of_no_hits_or_no_misses_is_one_sided(loss, expected):
    assert ends(ClopperPearson(), ips(np.ones(100), np.full(100, loss))) == pytest.approx(expected, abs=1e-4)


def test_bernstein_is_the_formula(rng):
    weights, losses = rng.choice([0.0, 4.0], 500, p=[0.75, 0.25]), rng.random(500)
    paid, confidence = weights * losses, math.log(4 / 0.05)
    reach = math.sqrt(2 * paid.var(ddof=1) * confidence / 500) + 7 * 4 * confidence / (3 * 499)
    assert ends(Bernstein(), ips(weights, losses), 4.0) == pytest.approx((paid.mean() - reach, paid.mean() + reach))


def test_normal_of_a_ratio_is_the_delta_method(rng):
    weights, losses = rng.exponential(size=4000), rng.random(4000)
    low, high = ends(Normal(), snips(weights, losses))
    ratio = (weights * losses).sum() / weights.sum()
    error = np.sqrt(((weights * (losses - ratio)) ** 2).mean() / 4000) / weights.mean()
    assert (high - low) / 2 == pytest.approx(1.95996 * error, rel=1e-4)


def test_the_bootstrap_resamples_numerator_and_denominator_together(rng):
    low, high = ends(Bootstrap(0), snips(rng.exponential(size=500), np.full(500, 0.3)))
    assert (low, high) == pytest.approx((0.3, 0.3), abs=1e-12)


def test_the_bootstrap_spreads_as_much_as_the_mean_does(rng):
    losses = rng.random(5000)
    bootstrap = Bootstrap(0)
    bootstrap.add(ips(np.ones(5000), losses))
    means = bootstrap.numerators / bootstrap.denominators
    assert means.std() == pytest.approx(losses.std() / math.sqrt(5000), rel=4 / math.sqrt(2 * REPLICATES))


def test_the_bootstrap_counts_rows_as_poisson_does():
    bootstrap = Bootstrap(0)
    bootstrap.add(ips(np.ones(2000), np.ones(2000)))
    assert bootstrap.denominators.mean() == pytest.approx(2000, abs=4 * math.sqrt(2000 / REPLICATES))
    assert bootstrap.denominators.var() == pytest.approx(2000, rel=4 * math.sqrt(2 / REPLICATES))


def test_the_wealth_is_the_mean_of_the_products(rng):
    values, wealth = rng.exponential(size=30), Wealth()
    wealth.add(values)
    bets = 2.0 ** np.arange(-16, 4)
    products = [np.prod((1 + bet * values) / (1 + bet * 0.4)) for bet in bets]
    assert wealth.log_at(0.4) == pytest.approx(math.log(np.mean(products)))


def test_zeros_may_be_counted_instead_of_added():
    one, other = Wealth(), Wealth()
    one.add(np.repeat([3.0, 0.0], [10, 90]))
    other.add(np.full(10, 3.0), zeros=90)
    assert one.lower(0.05) == pytest.approx(other.lower(0.05), rel=1e-9)


# The ends are where the wealth reaches 40, so that looking at the wealth is looking at the interval.
@pytest.mark.parametrize("largest_weight", [None, 10.0])
def test_a_confidence_sequence_holds_at_every_look(largest_weight):
    missed = 0
    for seed in range(200):
        rng, sequence, most = np.random.default_rng(seed), Sequence(largest_weight), 0.0
        for _ in range(20):
            weights = rng.choice([0.0, 10.0], 50, p=[0.9, 0.1])
            sequence.add(ips(weights, (rng.random(50) < 0.3).astype(float)))
            most = max(most, sequence.below.log_at(0.3), sequence.log_wealth_above(0.7))
        missed += most >= math.log(40)
    assert missed <= 0.05 * 200


def test_a_known_largest_weight_lowers_the_upper_end(rng):
    terms = ips(rng.choice([0.0, 10.0], 20_000, p=[0.9, 0.1]), (rng.random(20_000) < 0.05).astype(float))
    without, known = ends(Sequence(), terms), ends(Sequence(10.0), terms)
    assert known[0] == without[0]
    assert 0.05 < known[1] < 0.05 + 0.6 * (without[1] - 0.05)


def test_looking_often_is_where_the_normal_interval_fails():
    missed = 0
    for seed in range(200):
        rng, normal = np.random.default_rng(seed), Normal()
        looks = [ends(normal, ips(np.ones(50), (rng.random(50) < 0.3).astype(float))) for _ in range(20)]
        missed += not all(low <= 0.3 <= high for low, high in looks)
    assert missed > 0.1 * 200


def test_a_confidence_sequence_holds_for_the_average_of_means_that_change():
    rng, sequence = np.random.default_rng(0), Sequence()
    for mean in (0.1, 0.9):
        sequence.add(ips(np.ones(2000), (rng.random(2000) < mean).astype(float)))
    low, high = sequence.ends(0.95, 1.0)
    assert low < 0.5 < high
    assert high - low < 0.1


@pytest.mark.parametrize("interval", INTERVALS.names())
def test_every_interval_holds_its_estimate_and_narrows(interval):
    agent = manul.Cats(leaves=8, bandwidth=1 / 8, epsilon=0.5)
    log = manul.simulate(agent, manul.worlds.linear(rounds=8000)).log
    some, all_rows = (
        manul.evaluate(agent, part, "ips", interval, largest_weight=10.0) for part in (log.rows(slice(500)), log)
    )
    assert some.low <= some.value <= some.high
    assert all_rows.high - all_rows.low < some.high - some.low
