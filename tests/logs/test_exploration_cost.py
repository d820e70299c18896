"""What exploration cost, on logs whose answer is known."""

import numpy as np
import pytest

import manul
from manul.logs.exploration_cost import exploration_cost


def log_of(densities, losses, *, actions=(0.0, 10.0), **ends):
    count = len(losses)
    numbers = (np.array(each, np.float64) for each in (np.full(count, 5.0), densities, losses))
    return manul.Log(np.empty((count, 0), np.float32), *numbers, action_range=actions, **ends)


def test_explored_rows_are_compared_with_the_greedy_ones():
    found = exploration_cost(log_of([0.01, 0.01, 2.0, 2.0], [0.9, 0.7, 0.1, 0.3]))
    assert (found.rows, found.explored) == (4, 2)
    assert found.cost == pytest.approx((0.9 + 0.7 - 2 * 0.2) / 4)
    assert found.share == pytest.approx((0.9 + 0.7 - 2 * 0.2) / 2.0)
    assert found.error == pytest.approx(np.sqrt(2 * 0.02 * (1 + 2 / 2)) / 4)


def test_learning_does_not_look_like_a_cost():
    losses = np.linspace(1, 0, 3200)  # exploration in the first half only, at no cost
    densities = np.where((np.arange(3200) < 1600) & (np.arange(3200) % 10 == 5), 0.01, 2.0)
    assert abs(exploration_cost(log_of(densities, losses)).share) < 0.001


def test_rows_with_uniform_densities_count_neither_way():
    found = exploration_cost(log_of([0.1] * 3 + [0.01, 2.0], [9.0, 9.0, 9.0, 1.0, 0.5]))
    assert (found.explored, found.cost) == (1, pytest.approx(0.5 / 5))


def test_the_range_of_a_row_is_its_own():
    ends = {"lows": np.array([4.0, 0.0]), "highs": np.array([6.0, 10.0])}
    found = exploration_cost(log_of([0.2, 0.2], [0.6, 0.5], **ends))
    assert (found.explored, found.cost) == (1, pytest.approx(0.05))


def test_negative_losses_have_a_cost_and_no_share():
    found = exploration_cost(log_of([0.01, 2.0, 2.0], [0.5, -1.0, -1.0]))
    assert (found.cost, found.share) == (0.5, None)
    assert str(found) == "0.5 ± 0 per round"


@pytest.mark.parametrize("log", [log_of([], []), log_of([0.1, 0.1], [0.5, 0.5]), log_of([2.0], [0.5], actions=None)])
def test_without_greedy_rows_or_a_range_the_cost_is_unknown(log):
    assert exploration_cost(log) is None


def test_losses_of_zero_have_no_share():
    assert exploration_cost(log_of([2.0, 0.01], [0.0, 0.0])).share is None


def test_the_cost_of_a_run_is_what_its_exploration_adds():
    world = manul.worlds.linear(rounds=8000, seed=3)
    runs = [manul.simulate(manul.Cats(leaves=16, bandwidth=1 / 16, epsilon=epsilon), world) for epsilon in (0.2, 0.01)]
    costs = [run.exploration_cost for run in runs]
    explored = runs[0].log.losses[runs[0].log.densities < 1].mean()
    assert costs[0].cost == pytest.approx(0.2 * 7 / 8 * (explored - runs[1].mean_loss), rel=0.1)
    assert 0 < costs[1].share < 0.3 < costs[0].share < 1
