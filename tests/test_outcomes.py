"""Outcomes: one sign inside, another at the borders, and the moment at which they are known."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import manul
from manul.errors import InputError, ParameterError
from manul.outcomes import LOSSES, Matured, Outcome, Report, Wait, mature

REWARDS = Outcome.of(rewards=(-20, 100))
PROFIT = Outcome("profit", better="high", range="auto", wait=Wait(60, default=0, combine="sum"))
numbers = st.floats(-1e300, 1e300)


def test_the_default_is_a_loss_in_zero_to_one():
    assert Outcome.of() == Outcome() == LOSSES
    assert (LOSSES.name, LOSSES.losses, LOSSES.rewards, LOSSES.keywords) == ("loss", (0.0, 1.0), None, "losses")
    assert (REWARDS.name, REWARDS.losses, REWARDS.rewards) == ("reward", (-100.0, 20.0), (-20.0, 100.0))


@given(numbers, st.sampled_from([LOSSES, REWARDS, PROFIT]))
def test_a_value_survives_the_way_in_and_out(value, outcome):
    loss = outcome.to_loss(value)
    assert outcome.from_loss(loss) == value
    assert abs(loss) == abs(value)
    assert outcome.from_loss(np.array([loss])).tolist() == [value]


@given(numbers, numbers)
def test_a_higher_reward_is_a_lower_loss(one, other):
    assert (REWARDS.to_loss(one) < REWARDS.to_loss(other)) == (one > other)
    low, high = REWARDS.flip((one, other))
    assert REWARDS.flip((low, high)) == (one, other)


def test_zero_has_no_sign():
    for loss in (REWARDS.to_loss(0.0), REWARDS.from_loss(0.0), *REWARDS.flip((0.0, 0.0))):
        assert math.copysign(1, loss) == 1


def test_exactly_one_of_losses_rewards_and_outcome_is_given():
    with pytest.raises(ParameterError, match="losses and rewards exclude each other"):
        Outcome.of(losses=(0, 1), rewards=(0, 1))
    with pytest.raises(ParameterError, match="rewards and outcome exclude each other"):
        manul.Auto(rewards=(0, 1), outcome=REWARDS)
    with pytest.raises(ParameterError, match=r"outcome must be a manul.Outcome, got 'profit'"):
        manul.Auto(outcome="profit")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"better": "up"}, "better must be 'low' or 'high', got 'up'"),
        ({"range": "any"}, r"losses must be two numbers \(low, high\) or 'auto', got 'any'"),
        ({"better": "high", "range": (3, 1)}, r"rewards must be finite with low < high, got \(3.0, 1.0\)"),
        ({"wait": Wait(60, default=2)}, r"default must be in \[0, 1\], got 2"),
        ({"name": 3}, "name must be text, got 3"),
    ],
)
def test_an_outcome_that_contradicts_itself_is_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        Outcome(**settings)


def test_a_wait_is_checked():
    with pytest.raises(ParameterError, match="wait must be above 0 and finite, got -1"):
        Wait(-1)
    with pytest.raises(ParameterError, match="combine must be 'first', 'last', 'sum' or 'mean', got 'max'"):
        Wait(60, combine="max")


def test_errors_state_values_in_their_own_sign():
    with pytest.raises(InputError, match=r"reward must be in \[-20, 100\], got 120 in row 1. Declare .* rewards=\("):
        REWARDS.check(np.array([-40.0, -120.0]))
    with pytest.raises(InputError, match="reward must be finite, got -inf"):
        PROFIT.check(np.array([math.inf]))
    with pytest.raises(ParameterError, match=r"rewards must be two numbers \(low, high\) for a rollout, got 'auto'"):
        PROFIT.known_losses("a rollout")


@pytest.mark.parametrize("outcome", [LOSSES, REWARDS, PROFIT, Outcome.of(losses="auto"), Outcome("delay")])
def test_an_outcome_survives_json(outcome):
    assert Outcome.from_description(json.loads(json.dumps(outcome.describe()))) == outcome


def test_files_say_losses_or_rewards_unless_there_is_more_to_say():
    assert REWARDS.describe() == {"rewards": (-20.0, 100.0)}
    assert [*PROFIT.describe()] == ["outcome"]


def test_an_agent_keeps_the_name_and_the_wait_of_its_outcome():
    for agent in (manul.Auto(outcome=PROFIT), manul.Auto(actions={"price": (1, 9)}, outcome=PROFIT)):
        agent.learn([0.5], agent.decide([0.5]), reward=3.0)
        assert manul.loads(manul.dumps(agent)).outcome == PROFIT


def test_texts_name_the_outcome(tmp_path):
    contexts, ones = np.zeros((400, 1), np.float32), np.ones(400)
    log = manul.Log(contexts, np.linspace(0, 1, 400), ones, -ones, outcome=Outcome("profit", "high", (0, 2)))
    log.write(tmp_path / "log.parquet")
    stored = manul.Log.read(tmp_path / "log.parquet")
    estimate = manul.evaluate(manul.Auto(), stored)
    assert stored.outcome == estimate.outcome == Outcome("profit", "high", (0, 2))
    assert str(estimate).startswith("mean profit 1 [")


def test_an_outcome_of_a_log_excludes_its_older_arguments():
    row = np.zeros((1, 1), np.float32), np.ones(1), np.ones(1), np.ones(1)
    with pytest.raises(ParameterError, match="outcome and loss_range exclude each other"):
        manul.Log(*row, loss_range=(0, 1), outcome=LOSSES)


def test_an_outcome_with_a_wait_matures_when_the_wait_is_over():
    assert mature([-5.0], PROFIT, decided=100, now=160) is None
    assert mature([-5.0, -2.0], PROFIT, decided=100, now=160.5) == Matured(-7.0, reported=True)
    assert mature([], PROFIT, decided=100, now=160.5) == Matured(0.0, reported=False)


def test_without_a_wait_a_report_is_the_outcome_and_no_report_is_none():
    assert mature([0.25], LOSSES, decided=0, now=0) == Matured(0.25, reported=True)
    assert mature([], LOSSES, decided=0, now=1e9) is None
    assert mature([], Outcome(wait=Wait(60)), decided=0, now=1e9) is None


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9), st.sampled_from(["first", "last", "sum", "mean"]))
def test_combined_rewards_mirror_combined_losses_and_stay_in_range(reports, combine):
    by_loss = Outcome(range=(0, 1), wait=Wait(60, default=1, combine=combine))
    by_reward = Outcome(better="high", range=(-1, 0), wait=Wait(60, default=-1, combine=combine))
    loss = mature(reports, by_loss, 0, 61)
    assert loss == mature(reports, by_reward, 0, 61)
    assert 0 <= loss.loss <= 1
    assert loss.loss == {"first": reports[0], "last": reports[-1]}.get(combine, loss.loss)


SALE = manul.Sale(cost=20.0, wait=Wait(60, default={"bought": False}))
UNITS = Outcome(formula="2 * units", parts={"units": "count"}, range="auto", wait=Wait(60, combine="sum"))
BID = manul.Bid(wait=Wait(60, default=0, combine="last"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"formula": "2 * sold"}, "the formula '2 \\* sold' must use a part"),
        ({"formula": "2 * sold", "parts": {"x": "count"}}, "the formula '2 \\* sold' must use a part"),
        ({"formula": "2 * sold", "parts": {"sold": "number"}}, "the part 'sold' must be 'yes/no', 'count' or 'amount'"),
        ({"parts": {"sold": "count"}, "hints": {"sold": "falls"}}, "the hint of 'sold' needs a formula"),
        (
            {"formula": "2 * (sold == 'a')", "parts": {"sold": "count"}},
            "compares the part 'sold', a number, with a text",
        ),
        ({"formula": "2 * sold", "parts": {"sold": "count"}, "hints": {"sold": "up"}}, "must be 'rises' or 'falls'"),
        ({"formula": "2 * sold", "parts": {"sold": "count"}, "hints": {"x": "falls"}}, "unknown part 'x'"),
        ({"formula": "2 *", "parts": {"sold": "count"}}, "formula '2 \\*' is incomplete at character 4"),
        ({"formula": "2 * sold", "parts": {"": "count"}}, "names of parts must be text and not empty"),
        ({"formula": "2 * sold", "parts": {"sold": "count"}, "wait": Wait(9, default={"sold": 1.5})}, "a whole number"),
        ({"formula": "2 * sold", "parts": {"sold": "count"}, "wait": Wait(9, combine="mean")}, "must not be 'mean'"),
        ({"wait": Wait(9, default={"sold": 1})}, "default must be a number, because no formula"),
    ],
)
def test_a_formula_that_contradicts_itself_is_refused(settings, message):
    with pytest.raises(ParameterError, match=message):
        Outcome(range="auto", **settings)


@pytest.mark.parametrize(
    ("outcome", "reports", "matured"),
    [
        (SALE, [], Matured(None, False, {"bought": 0.0})),
        (SALE, [Report(None, {"bought": 1.0})], Matured(None, True, {"bought": 1.0})),
        (SALE, [Report(-5.0, {"bought": 1.0})], Matured(-5.0, True, {"bought": 1.0})),
        (SALE, [Report(-5.0)], Matured(-5.0, True, {"bought": 0.0})),
        (UNITS, [], None),
        (UNITS, [Report(None, {"units": 1.0}), Report(None, {"units": 3.0})], Matured(None, True, {"units": 4.0})),
        (BID, [], Matured(0.0, False)),
        (BID, [Report(None, {"value": 3.0})], Matured(0.0, False)),
        (
            BID,
            [Report(None, {"won": 0.0}), Report(None, {"won": 1.0, "value": 3.0})],
            Matured(None, True, {"won": 1.0, "value": 3.0}),
        ),
    ],
)
def test_parts_mature_each_on_its_own(outcome, reports, matured):
    assert mature(reports, outcome, decided=0, now=59) is None
    assert mature(reports, outcome, decided=0, now=61) == matured


@pytest.mark.parametrize("outcome", [SALE, UNITS, BID])
def test_an_outcome_with_a_formula_survives_json(outcome):
    described = json.loads(json.dumps(outcome.describe(), sort_keys=True))
    back = Outcome.from_description(described)
    assert (back, [*back.parts]) == (outcome, [*outcome.parts])
