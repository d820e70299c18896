"""Theorem greedy-tree-formal on a realizable world: the measured regret of Cats, and how it grows.

Horizons here end at 10^5; `python -m benchmarks.regret` goes on to 10^6 and shows every setting.
"""

import numpy as np
import pytest
from benchmarks.regret import EVERYWHERE, MIDDLE, Setting, bound, comparator, exponent, oracle_regret, regret

HORIZONS = (1_000, 10_000, 100_000)
THEOREMS, FIXED = Setting(1 / 4), Setting(1 / 4, 4)


@pytest.fixture(scope="module")
def measured():
    played = [(horizon, seed) for horizon in HORIZONS for seed in range(3)]
    return {setting: np.array([regret(setting, *each) for each in played]) for setting in (THEOREMS, FIXED)}


def least_of_cut_windows(setting):
    """The least smoothed loss if a window may be cut at an end of the range: Smooth_h of the paper's Section 2."""
    centres, h = np.linspace(0, 1, 2001), setting.bandwidth
    left, right = np.maximum(centres - h, 0), np.minimum(centres + h, 1)
    low, high = setting.best
    best = low + (high - low) * (np.arange(64)[:, np.newaxis] + 0.5) / 64
    area = [np.sign(end - best) * (end - best) ** 2 / 2 for end in (left, right)]
    return (0.1 + 0.8 * (area[1] - area[0]) / (right - left)).min(axis=1).mean()


@pytest.mark.parametrize("bandwidth", [1 / 4, 1 / 5, 1 / 8])
def test_the_comparator_is_the_theorems_which_may_cut_windows(bandwidth):
    assert comparator(Setting(bandwidth, best=MIDDLE)) == pytest.approx(
        least_of_cut_windows(Setting(bandwidth)), abs=1e-6
    )
    ends = Setting(bandwidth, best=EVERYWHERE)
    assert comparator(ends) > least_of_cut_windows(ends) + 0.005


@pytest.mark.whole
@pytest.mark.parametrize("setting", [THEOREMS, FIXED])
def test_the_regret_stays_under_the_theorems_bound(measured, setting):
    assert (measured[setting] > 0).all()
    assert (measured[setting] < np.repeat([bound(setting, horizon) for horizon in HORIZONS], 3)).all()


@pytest.mark.whole
@pytest.mark.parametrize("setting", [THEOREMS, FIXED])
def test_the_regret_grows_no_faster_than_the_theorem_says(measured, setting):
    slope, error = exponent(np.repeat(HORIZONS, 3), measured[setting])
    assert slope <= setting.limit + error


@pytest.mark.whole
@pytest.mark.parametrize("setting", [THEOREMS, FIXED])
def test_nearly_all_regret_is_that_of_an_oracle(measured, setting):
    unavoidable = [oracle_regret(setting, horizon) for horizon in HORIZONS]
    assert measured[setting].reshape(3, 3).mean(axis=1) == pytest.approx(unavoidable, rel=0.01)


def test_only_horizons_count_at_which_epsilon_is_below_one():
    assert min(Setting(1 / 4).horizons) == 1_000
    assert min(Setting(1 / 8).horizons) == 5_623


def test_the_exponent_of_a_power_is_found():
    assert exponent([10, 100, 1000], [2 * 10**0.7, 2 * 100**0.7, 2 * 1000**0.7])[0] == pytest.approx(0.7)
