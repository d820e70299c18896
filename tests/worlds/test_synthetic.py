"""The linear world: its data are what they always were, and its optimum is in closed form."""

import hashlib

import numpy as np
import pytest

from manul import worlds
from manul.errors import ParameterError


def test_the_data_of_a_seed_never_change():
    world = worlds.linear(rounds=1000)
    assert hashlib.sha256(world.contexts.tobytes()).hexdigest().startswith("0e2e8d1228dc5114")
    # The last bit of a product with a matrix depends on the processor.
    targets = [0.4880744239183255, 0.5457137953937594, 0.68655440595512, 0.7935581067709151]
    assert world.targets[[0, 1, 500, 999]] == pytest.approx(targets, rel=1e-12)
    assert (world.targets**2).sum() == pytest.approx(273.82240161518075, rel=1e-12)


@pytest.mark.parametrize(("bandwidth", "quoted"), [(1 / 4, 0.1355), (1 / 16, 0.0458), (1 / 64, 0.0283)])
def test_the_optimum_is_the_one_measured_elsewhere(bandwidth, quoted):
    measured = [worlds.linear(rounds=20_000, seed=seed).optimum(bandwidth=bandwidth, epsilon=0.05) for seed in range(5)]
    assert np.mean(measured) == pytest.approx(quoted, abs=4e-4)


@pytest.mark.parametrize("location", [-0.01, 0.02, 0.5, 0.99])
def test_the_expected_error_is_that_of_many_draws(location, rng):
    world = worlds.Linear([[0.0]], [0.5], locations=[location], deviation=0.05)
    targets = np.clip(location + 0.05 * rng.standard_normal(400_000), 0, 1)
    centre = np.clip(location, 0.1, 0.9)
    errors = np.abs(centre + rng.uniform(-0.1, 0.1, 400_000) - targets)
    drawn = errors.mean()
    assert world.optimum(bandwidth=0.1, epsilon=0.0) == pytest.approx(drawn, abs=4 * errors.std() / np.sqrt(400_000))


@pytest.mark.whole
def test_the_best_constant_of_the_linear_world_is_the_one_measured_elsewhere():
    world = worlds.linear(rounds=3_000)
    assert world.best_constant(bandwidth=1e-3, epsilon=0.0) == pytest.approx(0.1325, abs=3e-3)


def test_an_unknown_loss_is_refused():
    with pytest.raises(ParameterError, match=r"loss must be 'absolute' or 'squared', got 'cubic'\. Try"):
        worlds.Regression([[1.0]], [0.5], loss="cubic")
