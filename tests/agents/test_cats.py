"""Our training rule and its slow twin choose the same windows and learn the same state, to the last bit."""

import numpy as np
import pytest

from manul import _core
from tests.twins.cats import CatsTwin

SETTINGS = [
    {"actions": (0.0, 1.0), "depth": 4, "width": 5, "bandwidth": 1 / 8},
    {"actions": (0.0, 1.0), "depth": 7, "width": 20, "bandwidth": 1 / 64},
    {"actions": (-3.0, 29.0), "depth": 6, "width": 9, "bandwidth": 1.7},
    {"actions": (0.0, 1.0), "depth": 3, "width": 0, "bandwidth": 0.11},
    {"actions": (0.0, 1.0), "depth": 5, "width": 3, "bandwidth": 0.5},
]


def rounds(settings, rng, count=300):
    low, high = settings["actions"]
    for number in range(count):
        within = (low, high)
        if number % 3 == 0 and settings["bandwidth"] < 0.2 * (high - low):
            within = (low + 0.1 * (high - low), low + 0.7 * (high - low))
        x = rng.standard_normal(settings["width"]).astype(np.float32)
        yield x, rng.uniform(*within), rng.uniform(0.05, 4) / (high - low), rng.random(), within


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda settings: f"depth {settings['depth']}")
def test_native_path_training_is_the_twins(settings, rng):
    native = _core.CatsPlayer(**settings, losses=(0.0, 1.0), epsilon=0.05, seed=0)
    twin = CatsTwin(**settings)
    for x, action, density, loss, within in rounds(settings, rng):
        assert native.window(x, *within)[0] == twin.window(x, within)
        native.learn(x, action, density, loss, *within)
        twin.learn(x, action, density, loss, within)


def test_the_mean_over_a_window_is_the_models_mean(rng):
    settings = SETTINGS[0]
    twin = CatsTwin(**settings)
    for x, action, density, loss, within in rounds(settings, rng):
        twin.learn(x, action, density, loss, within)
    h, x = settings["bandwidth"], twin.standardiser.row(x)
    for played, centre in [(0.3, 0.3), (0.3, 0.41), (0.7, 0.2), (0.125, 0.875)]:
        actions = centre + h * ((np.arange(4000) + 0.5) / 2000 - 1)
        mean = np.mean([twin.model.q(x, played, action) for action in actions])
        assert twin.model.Q(x, played, centre) == pytest.approx(mean, abs=1e-7)
