"""GP-UCB learns, and regrets are compared by seed."""

import numpy as np
import pytest
from benchmarks import auto, first_rounds, gp_ucb

from manul import worlds


def test_gp_ucb_finds_a_valley_that_moves_with_the_context(rng):
    targets = rng.permutation(60) / 60
    actions = gp_ucb.play(
        targets[:, None],
        lambda action, number: abs(action[0] - targets[number]),
        candidates=gp_ucb.unit_cube(1),
        seed=0,
    )
    losses = np.abs(actions[:, 0] - targets)
    assert losses[-20:].mean() < 0.05 < losses[:5].mean()


def test_the_gradient_of_the_process_is_that_of_its_objective(rng):
    process = gp_ucb.Process(rng.standard_normal((20, 2)), rng.random((20, 1)), rng.standard_normal(20), None)
    here, steps = process.prior + 0.1, 1e-5 * np.eye(5)
    gradient = process._objective(here, process.inputs, process.values)[1]
    for slope, step in zip(gradient, steps, strict=True):
        up, down = (process._objective(here + sign * step, process.inputs, process.values)[0] for sign in (1, -1))
        assert slope == pytest.approx((up - down) / 2e-5, rel=1e-4)


def test_a_round_that_is_added_changes_the_process_as_one_that_it_was_fitted_with(rng):
    rows, actions, losses = rng.standard_normal((20, 2)), rng.random((20, 1)), rng.standard_normal(20)
    process = gp_ucb.Process(rows, actions, losses, None)
    process.add(rows[0], actions[1], 2.0)
    covariance = process._kernel(process.inputs, process.inputs) + process._noise(21)
    assert process.factor @ process.factor.T == pytest.approx(covariance)
    assert process._solve(process.values) == pytest.approx(process.weights)


def test_auto_may_lose_as_much_as_gp_ucb_and_the_noise_of_their_difference(monkeypatch):
    monkeypatch.setattr(auto, "FIRST_WORLDS", ())
    monkeypatch.setattr(auto, "_gp_loss", lambda _, seed: 0.2 + 0.1 * (seed % 2))
    monkeypatch.setattr(auto, "_auto_loss", lambda _, seed: 0.1 * (seed % 2))
    (check,) = auto.first({"shop": lambda _: worlds.linear(rounds=30)})
    assert (check.value, check.limit) == pytest.approx((0.05, 0.25))


def test_regrets_are_compared_on_seeds_and_checkpoints_of_both():
    regrets = {"Auto": {"dose 0": {"1": [4, 2, 1], "2": [2, 2, 1]}}, "GP-UCB": {"dose 0": {"2": [4, 1], "3": [9, 9]}}}
    assert first_rounds.ratios(regrets, ["dose 0", "dose 1"], "GP-UCB")["dose 0"].tolist() == [0.5, 2.0]


@pytest.mark.parametrize("name", ["dose 1", "shop 0.2 0", "2 knobs", "categories"])
def test_every_player_plays_every_kind_of_world(name, monkeypatch):
    monkeypatch.setitem(first_rounds.CHECKPOINTS, name, (10, 30))
    for player in ("Auto", "GP-UCB"):
        regrets = first_rounds.measure((player, name, 3))
        assert len(regrets) == 2
        assert min(regrets) >= 0
