"""What policies of hindsight lose is computed, not played: hold it to sums and to a world that knows."""

import numpy as np
import pytest

from manul import worlds
from manul.paper.experiments import hindsight


@pytest.mark.parametrize("target", [0.0, 0.42, 0.5, 0.9])
def test_the_smoothed_loss_is_the_mean_over_the_window_and_the_range(target):
    centre, bandwidth, epsilon = 0.45, 0.1, 0.25
    window, anywhere = (np.linspace(low, high, 200_001) for low, high in ((0.35, 0.55), (0.0, 1.0)))
    expected = (1 - epsilon) * np.abs(window - target).mean() + epsilon * np.abs(anywhere - target).mean()
    assert hindsight.expected_loss(np.array([target]), centre, bandwidth, epsilon) == pytest.approx(expected, abs=1e-5)


def test_centres_move_to_where_the_window_fits():
    target = np.array([0.3])
    assert hindsight.expected_loss(target, 0.0, 0.25) == hindsight.expected_loss(target, 0.25, 0.25)


@pytest.mark.parametrize("bandwidth", [1 / 4, 1 / 16, 1 / 64])
def test_the_linear_policy_loses_what_the_linear_world_knows_to_be_least(bandwidth):
    world = worlds.linear(rounds=20_000, width=5)
    centres, _ = hindsight.linear_centres(world.contexts, world.targets)
    least = world.optimum(bandwidth=bandwidth, epsilon=0.05)
    assert hindsight.expected_loss(world.targets, centres, bandwidth) == pytest.approx(least, abs=5e-4)


def test_least_absolute_deviations_ignore_outliers_and_say_how_near_they_are():
    contexts = np.arange(200, dtype=np.float32)[:, np.newaxis]
    targets = np.arange(200) / 400
    targets[::5] = 1.0
    centres, gap = hindsight.linear_centres(contexts, targets)
    assert centres[1::5] == pytest.approx(targets[1::5], abs=1e-3)
    assert 0 <= gap < 1e-3


def test_columns_that_say_the_same_do_no_harm():
    contexts = np.eye(2, dtype=np.float32)[np.arange(100) % 2]
    targets = np.where(np.arange(100) % 2, 0.25, 0.75)
    centres, _ = hindsight.linear_centres(contexts, targets)
    assert centres == pytest.approx(targets, abs=1e-6)
