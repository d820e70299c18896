"""Theorem greedy-tree-formal on a realizable world: the measured regret of Cats, and how it grows.

Horizons here end at 10^5; `python -m benchmarks.regret` goes on to 10^6 and shows every setting.
"""

import numpy as np
import pytest
from benchmarks.regret import SETTINGS, Setting, bound, clairvoyant, exponent, regrets

HORIZONS = (1_000, 10_000, 100_000)


@pytest.fixture(scope="module")
def measured():
    return np.array([regrets(SETTINGS, horizon, seed) for horizon in HORIZONS for seed in (0, 1)]).T


def test_the_regret_stays_under_the_theorems_bound(measured):
    for setting, row in zip(SETTINGS, measured, strict=True):
        bounds = [bound(setting, horizon) for horizon in HORIZONS for _ in (0, 1)]
        assert (row > 0).all()
        assert (row < bounds).all()


def test_the_regret_of_eight_leaves_grows_no_faster_than_the_theorem_says(measured):
    slope, error = exponent(np.repeat(HORIZONS, 2), measured[SETTINGS.index(Setting(1 / 4, 8))])
    assert slope <= 4 / 5 + error


def test_with_the_theorems_leaves_and_epsilon_nearly_all_regret_is_a_clairvoyants(measured):
    for bandwidth in (1 / 4, 1 / 8):
        setting = Setting(bandwidth)
        unavoidable = [clairvoyant(setting, horizon) for horizon in HORIZONS]
        regret = measured[SETTINGS.index(setting)].reshape(3, 2).mean(axis=1)
        assert regret == pytest.approx(unavoidable, rel=0.06)


def test_the_exponent_of_a_power_is_found():
    assert exponent([10, 100, 1000], [2 * 10**0.7, 2 * 100**0.7, 2 * 1000**0.7])[0] == pytest.approx(0.7)
