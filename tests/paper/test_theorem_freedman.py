"""Lemma freedman: sums of martingale differences."""

import math

import numpy as np
import pytest

from manul.policies import theory


def test_the_bound_is_the_lemma_written_out() -> None:
    written_out = 4 * math.sqrt(7 * math.log(2 * 100 / 0.1)) + 2 * 3 * math.log(2 * 100 / 0.1)
    assert theory.freedman_bound(rounds=100, variance=7, magnitude=3, failure=0.1) == pytest.approx(written_out)


def test_the_bound_holds_for_bets_that_depend_on_the_past() -> None:
    """Each stake doubles while its sum is negative, so the summed variance is itself random."""
    rng = np.random.default_rng(0)
    sums, variances = np.zeros(400), np.zeros(400)
    for signs in rng.choice([-1.0, 1.0], size=(4000, 400)):
        stakes = np.where(sums < 0, 1.0, 0.5)
        sums += stakes * signs
        variances += stakes**2
    bounds = [theory.freedman_bound(rounds=4000, variance=v, magnitude=1, failure=0.1) for v in variances]
    assert np.mean(np.abs(sums) <= bounds) >= 0.9


def test_the_magnitude_guards_against_rare_jumps() -> None:
    """One jump to 1 - p has probability p > failure, and is larger than the variance alone allows."""
    p, failure = 0.011, 0.01
    variance_only = theory.freedman_bound(rounds=1, variance=p * (1 - p), magnitude=0, failure=failure)
    bound = theory.freedman_bound(rounds=1, variance=p * (1 - p), magnitude=1 - p, failure=failure)
    assert variance_only < 1 - p <= bound


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_so_few_terms_can_never_exceed_the_bound(rounds: int) -> None:
    assert theory.freedman_bound(rounds=rounds, variance=0, magnitude=1, failure=0.999) >= rounds
