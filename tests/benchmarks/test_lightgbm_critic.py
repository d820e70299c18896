"""The LightGBM critic plays every round once, from what it knew before the round."""

import numpy as np
import pytest
from benchmarks import lightgbm_critic

from manul import worlds


@pytest.fixture
def rounds_fitted(monkeypatch):
    """Replaces LightGBM by a known valley, and notes the rows of each fit."""
    noted = []

    def fit(known, _losses, _seed):
        noted.append(known)
        return lambda rows: abs(rows[:, -1] - 0.25)

    monkeypatch.setattr(lightgbm_critic, "fit", fit)
    return noted


def test_each_fit_sees_all_rounds_so_far_with_the_actions_played(rounds_fitted):
    world = worlds.Regression(np.arange(200.0)[:, None], np.full(200, 0.25))
    losses = lightgbm_critic.play(world, epsilon=0.05, seed=0)
    assert [len(known) for known in rounds_fitted] == [50, 75, 113, 170]
    assert np.allclose(abs(rounds_fitted[-1][:, 1] - 0.25), losses[:170])
    assert np.array_equal(rounds_fitted[-1][:, 0], np.arange(170.0))


@pytest.mark.usefixtures("rounds_fitted")
def test_actions_lie_in_the_window_except_for_a_share_of_epsilon():
    world = worlds.Regression(np.zeros((20_000, 1)), np.full(20_000, 0.25))
    losses = lightgbm_critic.play(world, epsilon=0.1, seed=0)[50:]
    beyond = 0.1 * (1 - 2 / 64)
    assert np.mean(losses > 1.5 / 64) == pytest.approx(beyond, abs=0.01)


def test_the_window_keeps_away_from_a_cliff():
    def predict(rows):
        return np.where(rows[:, -1] < 0.5, -rows[:, -1], 1.0)

    assert lightgbm_critic.best_actions(predict, np.zeros((1, 1), np.float32)) == [29.5 / 64 + 1 / 64]


def test_a_window_that_is_good_throughout_beats_one_good_action():
    losses = np.ones(64)
    losses[10], losses[20], losses[21] = -1.0, -0.45, -0.46

    def predict(rows):
        return losses[(rows[:, -1] * 64).astype(int)]

    assert lightgbm_critic.best_actions(predict, np.zeros((1, 1), np.float32)) == [21.5 / 64]
