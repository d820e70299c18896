"""A verdict says what a log proves, and is seldom wrong."""

import numpy as np
import pytest

from manul.logs.rows import Rows
from manul.offpolicy.optimization.critic_candidates import WindowTerms
from manul.offpolicy.optimization.verdict import Verdict, VerdictSums, greedy_weights

ONE, NONE = (0.0, 1.0), np.empty((2000, 0), np.float32)


def judged(weights, losses, floor):
    rows = Rows(0, NONE, np.linspace(0, 1, 2000), np.ones(2000), losses, floors=np.full(2000, floor))
    sums = VerdictSums(ONE, cap=1e9)
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


def stated(gain, low, **changes):
    settings = {"rows": 2000, "effective_size": 300.0, "supported": True}
    return Verdict((0.1, 0.01), gain, 0.01, low, 0.1, (0.13, 0.01), None, **settings | changes)


@pytest.mark.parametrize(
    ("gain", "low", "status", "ending"),
    [
        (0.03, 0.01, "proven", "proven by this log: at least 0.01, with 95 % confidence."),
        (0.03, -0.01, "likely", "likely, but not proven by this log."),
        (0.01, -0.01, "not shown", "not shown by this log."),
    ],
)
def test_each_status_has_its_sentence(gain, low, status, ending):
    verdict = stated(gain, low)
    assert verdict.status == status
    assert str(verdict).startswith(f"Expected gain over the logged policy: {gain} ± 0.02; {ending}")
    assert "300 of 2,000 decisions match those of the policy." in str(verdict)


def test_too_few_matching_decisions_give_no_number():
    verdict = stated(0.03, -0.01, effective_size=12.4, supported=False)
    assert verdict.status == "not shown"
    assert str(verdict) == (
        "This log cannot tell whether the policy is better than the logged one: 12 of 2,000 decisions match those of the "
        "policy, and 100 are needed. Try it on a share of the decisions to find out."
    )


def test_a_log_that_misses_many_decisions_of_the_policy_shows_nothing():
    half = np.arange(2000) < 400  # the other decisions of the policy have densities too small to be logged
    verdict = judged(np.where(half, 3.0, 0.0), np.where(half, 0.0, 0.3), floor=0.01)
    assert (verdict.effective_size, verdict.supported, verdict.status) == (400.0, False, "not shown")
    assert "the log misses many others that the policy would make" in str(verdict)


def test_the_best_of_many_choices_needs_a_larger_gain():
    assert [stated(0.023, -0.01, choices=choices).status for choices in (1, 18)] == ["likely", "not shown"]


def test_rare_losses_that_no_matching_decision_has_are_no_evidence():
    rng = np.random.default_rng(3)
    losses = (np.arange(2000) % 100 == 0).astype(np.float64)
    weights = np.where(rng.random(2000) < 0.06, 1 / 0.06, 0.0) * (losses == 0)  # by chance, none of the 20 losses
    verdict = judged(weights, losses, floor=0.06)
    assert verdict.supported
    assert (verdict.gain, verdict.status) == (pytest.approx(0.01), "not shown")


def test_the_greedy_part_of_a_mixture_has_the_weight_of_its_window():
    densities = np.where(np.arange(2000) % 2, 0.1 + 0.9 / 0.5, 0.1)
    rows = Rows(0, NONE, np.zeros(2000), densities, np.zeros(2000), floors=np.full(2000, 0.1))
    assert greedy_weights(rows)[:2] == pytest.approx([0.0, 2.0 / 1.9])


def test_an_unknown_floor_leaves_the_greedy_part_out():
    rows = Rows(0, NONE, np.zeros(2000), np.ones(2000), np.zeros(2000), floors=np.full(2000, np.nan))
    assert greedy_weights(rows) is None
