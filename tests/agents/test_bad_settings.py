"""Each invalid setting gives a one-line error with its name, rule and value."""

import re

import numpy as np
import pytest

import manul
from manul.errors import InputError, ParameterError


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"bandwidth": 0}, "bandwidth must be in (0, 0.5], got 0."),
        ({"bandwidth": -0.1}, "bandwidth must be in (0, 0.5], got -0.1."),
        ({"bandwidth": 0.75}, "bandwidth must be in (0, 0.5], got 0.75."),
        ({"bandwidth": float("nan")}, "bandwidth must be in (0, 0.5], got nan."),
        ({"leaves": 100}, "leaves must be a power of two from 2 to 2^24, got 100. Try 128."),
        ({"leaves": 1}, "leaves must be a power of two from 2 to 2^24, got 1."),
        ({"leaves": 8.0}, "leaves must be a power of two from 2 to 2^24, got 8.0."),
        ({"leaves": None}, "leaves must be a power of two from 2 to 2^24, got None."),
        ({"epsilon": 1.5}, "epsilon must be in [0, 1], got 1.5."),
        ({"actions": (1, 0)}, "actions must be finite with low < high, got (1.0, 0.0)."),
        ({"actions": 3}, "actions must be two numbers (low, high), got 3."),
        ({"losses": (0, float("inf"))}, "losses must be finite with low < high, got (0.0, inf)."),
        ({"seed": -1}, "seed must be an integer in [0, 2^64), got -1."),
    ],
)
def test_setting_is_refused(setting, sentence):
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        manul.Cats(**{"leaves": 8, "bandwidth": 0.125, **setting})


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"bandwidths": []}, "bandwidths must have at least one element, got none. Omit it for the default."),
        ({"bandwidths": 0.1}, "bandwidths must be a sequence of numbers, got 0.1."),
        ({"bandwidths": [0.1, 0.7]}, "bandwidth must be in (0, 0.5], got 0.7."),
        ({"penalty": "bold"}, "penalty must be 'measured', 'practical' or 'paper', got 'bold'. Try 'measured'."),
        ({"penalty": []}, "penalty must be 'measured', 'practical' or 'paper', got []. Try 'measured'."),
        ({"penalty": "paper", "epsilon": 0}, "epsilon must be above 0 with penalty='paper', got 0. Try 0.05."),
    ],
)
def test_setting_of_several_bandwidths_is_refused(setting, sentence):
    with pytest.raises(ParameterError, match=re.escape(sentence)):
        manul.AdaptiveCats(leaves=8, **setting)


def test_a_range_too_narrow_for_every_bandwidth_is_refused():
    agent = manul.AdaptiveCats(leaves=8, bandwidths=(0.25, 0.1))
    with pytest.raises(
        InputError, match=re.escape("within must be at least two bandwidths (0.2) wide, got (0.1, 0.2)")
    ):
        agent.decide([1.0], within=(0.1, 0.2))


def test_unknown_learner_is_refused():
    with pytest.raises(ParameterError, match=r"learner must be AdaGrad or CoinBetting .* got 'sgd'"):
        manul.Cats.paper(leaves=8, bandwidth=0.125, learner="sgd")


@pytest.mark.parametrize(
    ("context", "sentence"),
    [
        (["a", "b"], "context must be a row of numbers or a mapping of fields, got ['a', 'b']."),
        ([[1.0, 2.0]], "context must be one row of numbers, got shape (1, 2)."),
        ([1.0, float("nan")], "context must be finite numbers, got nan in column 1."),
        ([1.0, 1e300], "context must be finite numbers, got inf in column 1."),
        ([1.0, 2.0, 3.0], "context must have 2 numbers, like the first one, got 3."),
    ],
)
def test_context_is_refused(context, sentence):
    agent = manul.Cats(leaves=8, bandwidth=0.125)
    agent.decide([1.0, 2.0])
    with pytest.raises(InputError, match=re.escape(sentence)):
        agent.decide(context)


def test_bad_first_context_does_not_fix_the_width():
    agent = manul.Cats(leaves=8, bandwidth=0.125)
    with pytest.raises(InputError):
        agent.decide([float("nan"), 1.0])
    assert agent.decide([1.0, 2.0, 3.0]).density > 0


@pytest.mark.parametrize("within", [(-1.0, 0.5), (0.5, 0.5), (0.6, 0.4), (0.4, 0.5), (0.0, float("nan")), 3, (1, 2, 3)])
def test_narrowed_range_is_refused(within):
    agent = manul.Cats(leaves=8, bandwidth=0.125)
    with pytest.raises(InputError, match="within must"):
        agent.decide([1.0], within=within)


def test_targets_outside_the_actions_are_refused():
    world = manul.worlds.Regression(np.zeros((2, 1)), [0.5, 7.0])
    with pytest.raises(InputError, match=r"targets must be in the agent's range of actions \(0, 1\), got 7 in row 1"):
        manul.simulate(manul.Cats(leaves=8, bandwidth=0.125), world)


def test_one_agent_cannot_run_twice_at_once():
    agent = manul.Cats(leaves=8, bandwidth=0.125)
    with pytest.raises(ParameterError, match="agents must be different objects"):
        manul.worlds.simulate_many([agent, agent], manul.worlds.linear(rounds=10))


@pytest.mark.parametrize(
    ("decision", "loss", "sentence"),
    [
        ((0.5, 1.0), 0.5, "decision must be a Decision returned by decide, got (0.5, 1.0)."),
        (None, 0.5, "decision must be a Decision returned by decide, got None."),
        (manul.Decision(0.5, 1.0), "bad", "loss must be a number, got 'bad'."),
        (manul.Decision(0.5, None), 0.5, "density must be a number, got None."),
    ],
)
def test_an_outcome_of_the_wrong_kind_is_refused(decision, loss, sentence):
    agent = manul.Cats(leaves=8, bandwidth=0.125)
    agent.decide([1.0])
    with pytest.raises(InputError, match=re.escape(sentence)):
        agent.learn([1.0], decision, loss)


def test_actions_that_are_no_numbers_get_one_sentence():
    with pytest.raises(InputError, match=r"actions must be numbers, got \{'price': 20\}"):
        manul.Auto().distributions([[0.5]]).density({"price": 20})
