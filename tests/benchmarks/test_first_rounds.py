"""GP-UCB learns, and the check of the first rounds compares Auto with it."""

import numpy as np
import pytest
from benchmarks import first_rounds, gp_ucb

import manul
from manul import worlds


def test_gp_ucb_finds_a_valley_that_moves_with_the_context(rng):
    targets = rng.permutation(60) / 60
    losses = gp_ucb.play(worlds.Regression(targets[:, None], targets), rounds=60, seed=0)
    assert losses[-20:].mean() < 0.05 < losses[:10].mean()


def test_auto_may_lose_as_much_as_gp_ucb_and_the_noise_of_their_difference(monkeypatch):
    world = worlds.linear(rounds=30)
    monkeypatch.setattr(first_rounds, "WORLDS", {})
    monkeypatch.setattr(gp_ucb, "play", lambda _, rounds, seed: np.full(rounds, 0.2 + 0.1 * (seed % 2)))
    (check,) = first_rounds.first({"shop": lambda _: world})
    ours = [manul.simulate(manul.Auto(seed=seed), world).mean_loss for seed in first_rounds.SEEDS]
    theirs = [0.2 + 0.1 * (seed % 2) for seed in first_rounds.SEEDS]
    spread = np.std(np.subtract(ours, theirs), ddof=1) / np.sqrt(10)
    assert (check.value, check.limit) == pytest.approx((np.mean(ours), 0.25 + spread))
