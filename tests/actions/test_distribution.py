"""Identities of piecewise-constant densities."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from manul.actions.distribution import Atoms, Distribution
from manul.actions.smoothing import explore, smooth

ranges = st.tuples(st.floats(-100, 100), st.floats(0.01, 100)).map(lambda pair: (pair[0], pair[0] + pair[1]))
shares = st.floats(0, 1)


def mixture(within, position, width, epsilon):
    low, high = within
    bandwidth = max(width, 1e-3) * (high - low) / 2
    centre = low + bandwidth + position * (high - low - 2 * bandwidth)
    return explore(smooth(centre, bandwidth, within), epsilon, within)


@given(ranges, shares, shares, shares)
def test_mixture_integrates_to_one(within, position, width, epsilon):
    assert abs(mixture(within, position, width, epsilon).integral() - 1) < 1e-9


@given(ranges, shares, shares, st.floats(0.01, 1))
def test_density_is_positive_when_exploring(within, position, width, epsilon):
    grid = np.linspace(*within, 101)
    assert (
        mixture(within, position, width, epsilon).density_many(grid) >= 0.99 * epsilon / (within[1] - within[0])
    ).all()


def test_density_outside_the_range_is_zero():
    assert mixture((0.0, 1.0), 0.5, 0.5, 0.1).density_many([-0.1, 1.1, np.inf]).tolist() == [0.0, 0.0, 0.0]


def test_ends_of_a_window_belong_to_it():
    distribution = explore(smooth(0.5, 0.25, (0.0, 1.0)), 0.1, (0.0, 1.0))
    assert distribution.density(0.25) == distribution.density(0.75) == distribution.density(0.5)


def test_samples_follow_the_density(rng):
    distribution = mixture((0.0, 2.0), 0.3, 0.2, 0.2)
    drawn = distribution.sample_many(rng, 100_000)
    inverse = 1 / distribution.density_many(drawn)
    assert abs(inverse.mean() - 2.0) < 5 * inverse.std() / np.sqrt(len(inverse))
    assert abs(drawn.mean() - distribution.mean()) < 5 * drawn.std() / np.sqrt(len(drawn))


def test_mean_of_uniform_is_its_middle():
    assert Distribution.uniform(-1.0, 3.0).mean() == 1.0


def test_atoms_are_drawn_by_their_mass(rng):
    atoms = Atoms.greedy(np.arange(4) / 4, chosen=0.5, epsilon=0.4, spacing=0.25)
    drawn = atoms.sample_many(rng, 100_000)
    inverse = 1 / atoms.density_many(drawn)
    assert abs(inverse.mean() - 1.0) < 5 * inverse.std() / np.sqrt(len(inverse))
    assert abs(drawn.mean() - atoms.mean()) < 5 * drawn.std() / np.sqrt(len(drawn))


def test_between_atoms_there_is_no_density():
    atoms = Atoms.greedy(np.arange(4) / 4, chosen=0.5, epsilon=0.4, spacing=0.25)
    assert not atoms.density_many([-0.1, 0.1, 0.5000001, 1.0, np.nan, np.inf]).any()


def test_the_densest_interval_of_a_wide_range_is_not_the_whole_range():
    wide = Distribution(np.array([-1e9, 0.0, 1e6, 1e9]), np.array([1e-10, 8e-9, 1e-10]))
    assert wide.densest() == (0.0, 1e6)
    assert Atoms(np.array([0.0, 1.0, 2.0]), np.array([1e-9, 1e-9, 5e-9]), 1.0).densest() == (2.0, 2.0)
