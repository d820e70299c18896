"""The smoothed optimum is the one that brute force finds."""

import numpy as np
import pytest

from manul.worlds.optimum import Expected, best_constant, optimum

BANDWIDTHS = [1 / 64, 0.07, 1 / 4]


def random_curves(rng, rounds=12, knots=6):
    inner = np.sort(rng.random((rounds, knots - 2)), axis=1)
    inner[:, 1] = inner[:, 0]  # a jump in every round
    positions = np.column_stack([np.zeros(rounds), inner, np.ones(rounds)])
    lows = 0.3 * rng.random(rounds)
    return Expected(positions, rng.random((rounds, knots)), lows, lows + 0.5 + 0.2 * rng.random(rounds))


def value(expected, row, actions):
    positions = expected.positions[row].copy()
    positions[2] += 1e-12  # interpolation needs a slope where the curve jumps
    return np.interp(actions, positions, expected.values[row])


def by_midpoints(expected, row, low, high):
    return value(expected, row, low + (np.arange(4000) + 0.5) / 4000 * (high - low)).mean()


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_a_window_averages_the_curve(rng, bandwidth):
    expected = random_curves(rng)
    centres = rng.uniform(bandwidth, 1 - bandwidth, len(expected.lows))
    averages = [by_midpoints(expected, row, c - bandwidth, c + bandwidth) for row, c in enumerate(centres)]
    assert np.allclose(expected.windows(centres, bandwidth), averages, atol=1e-3)


def test_exploring_averages_the_allowed_range(rng):
    expected = random_curves(rng)
    averages = [
        by_midpoints(expected, row, *ends) for row, ends in enumerate(zip(expected.lows, expected.highs, strict=True))
    ]
    assert np.allclose(expected.whole(), averages, atol=1e-3)


@pytest.mark.parametrize("bandwidth", BANDWIDTHS)
def test_the_best_window_is_that_of_a_fine_search(rng, bandwidth):
    expected = random_curves(rng)
    shares = np.linspace(0, 1, 5001)
    centres = np.outer(expected.highs - expected.lows - 2 * bandwidth, shares) + expected.lows[:, None] + bandwidth
    searched = expected.windows(centres, bandwidth).min(axis=1)
    found = expected.best(bandwidth)
    assert (found <= searched + 1e-12).all()
    assert np.allclose(found, searched, atol=1e-4 / bandwidth)


def test_the_optimum_mixes_the_best_windows_with_exploring(rng):
    expected = random_curves(rng)
    by_hand = 0.8 * expected.best(0.1).mean() + 0.2 * expected.whole().mean()
    assert optimum(expected, bandwidth=0.1, epsilon=0.2) == pytest.approx(by_hand)


@pytest.mark.parametrize("narrowed", [False, True])
def test_the_best_constant_is_that_of_a_fine_search(rng, narrowed):
    drawn = random_curves(rng)
    expected = drawn if narrowed else Expected(drawn.positions, drawn.values, np.zeros(12), np.ones(12))
    centres = np.clip(np.linspace(0.1, 0.9, 4001)[:, None], expected.lows + 0.1, expected.highs - 0.1)
    searched = min(expected.windows(each, 0.1).mean() for each in centres)
    assert best_constant(expected, bandwidth=0.1, epsilon=0.0) == pytest.approx(searched, abs=1e-3)
