"""A verdict says what a log proves, and is seldom wrong."""

import numpy as np
import pytest

from manul.logs.batching import Rows
from manul.offpolicy.optimization.critic_candidates import WindowTerms
from manul.offpolicy.optimization.verdict import Verdict, VerdictSums, greedy_weights

ONE, NONE = (0.0, 1.0), np.empty((2000, 0), np.float32)


def judged(weights, losses, floor):
    rows = Rows(0, NONE, np.linspace(0, 1, 2000), np.ones(2000), losses, None, None, floors=np.full(2000, floor))
    sums = VerdictSums(ONE, ONE, cap=1e9)
    sums.add(rows, WindowTerms(weights, np.full(2000, 0.25), np.zeros(2000), np.zeros(2000)))
    return sums.verdict()


def test_a_large_gain_is_proven():
    actions = np.random.default_rng(0).random(2000)
    verdict = judged(2.0 * (actions < 0.5), actions, floor=1.0)
    assert verdict.status == "proven"
    assert verdict.low < 0.25 < verdict.high
    assert "proven by this log: at least 0.2" in str(verdict)


def test_nothing_to_gain_is_proven_in_at_most_one_of_twenty_logs():
    rng = np.random.default_rng(1)
    wrong = sum(judged(2.0 * (rng.random(2000) < 0.5), rng.random(2000), 1.0).status == "proven" for _ in range(60))
    assert wrong <= 3


@pytest.mark.parametrize(
    ("gain", "low", "status", "ending"),
    [
        (0.03, 0.01, "proven", "proven by this log: at least 0.01, with 95 % confidence."),
        (
            0.03,
            -0.01,
            "likely",
            "likely, but not proven by this log. Log the floor, or use a larger epsilon, to prove it.",
        ),
        (0.01, -0.01, "not shown", "not shown by this log. More rows or a larger epsilon can show it."),
    ],
)
def test_each_status_has_its_sentence(gain, low, status, ending):
    verdict = Verdict((0.1, 0.01), gain, 0.01, low, 0.1, (0.13, 0.01), None)
    assert verdict.status == status
    assert str(verdict) == f"Expected gain over the logged policy: {gain} ± 0.02; {ending}"


def test_the_greedy_part_of_a_mixture_has_the_weight_of_its_window():
    densities = np.where(np.arange(2000) % 2, 0.1 + 0.9 / 0.5, 0.1)
    rows = Rows(0, NONE, np.zeros(2000), densities, np.zeros(2000), None, None, floors=np.full(2000, 0.1))
    assert greedy_weights(rows, ONE)[:2] == pytest.approx([0.0, 2.0 / 1.9])


def test_an_unknown_floor_leaves_the_greedy_part_out():
    rows = Rows(0, NONE, np.zeros(2000), np.ones(2000), np.zeros(2000), None, None, floors=np.full(2000, np.nan))
    assert greedy_weights(rows, ONE) is None
