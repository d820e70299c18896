"""Agents with fixed actions: which ones they play, and with what density."""

import re

import numpy as np
import pytest

import manul
from manul.errors import InputError, ParameterError

KINDS = [manul.agents.DiscreteTree, manul.agents.DiscreteLinear]


@pytest.mark.parametrize("make", KINDS)
def test_actions_are_those_of_the_paper(make):
    drawn = make(actions=(-2.0, 8.0), leaves=8, epsilon=1.0).decide_many(np.zeros((500, 1))).actions
    assert np.unique(drawn).tolist() == (-2.0 + np.arange(8) / 8 * 10.0).tolist()


@pytest.mark.parametrize("make", KINDS)
def test_density_is_the_mass_over_the_spacing(make):
    agent = make(actions=(0.0, 32.0), leaves=8, epsilon=0.1)
    distribution = agent.distribution([1.0])
    assert distribution.density_many([0.0, 4.0, 5.0]) == pytest.approx([(0.9 + 0.1 / 8) / 4, 0.1 / 8 / 4, 0.0])


@pytest.mark.parametrize("make", KINDS)
@pytest.mark.parametrize("within", [(0.25, 0.75), (0.2, 0.8), (0.8, 1.0), (0.75, 0.76)])
def test_a_narrowed_range_leaves_the_actions_inside_it(make, within):
    agent = make(leaves=8, epsilon=0.5)
    low, high = within
    inside = [i / 8 for i in range(8) if low <= i / 8 <= high]
    assert agent.distribution([1.0], within).positions.tolist() == inside
    assert np.unique([agent.decide([1.0], within).action for _ in range(200)]).tolist() == inside


@pytest.mark.parametrize("make", KINDS)
def test_a_range_without_an_action_is_refused(make):
    sentence = "within must contain at least one of the 8 actions, which are 0.125 apart, got (0.9, 1)."
    for ask in (make(leaves=8).decide, make(leaves=8).distribution):
        with pytest.raises(InputError, match=re.escape(sentence)):
            ask([1.0], within=(0.9, 1.0))


@pytest.mark.parametrize("make", KINDS)
def test_odd_numbers_of_leaves_are_refused(make):
    with pytest.raises(ParameterError, match="leaves must be a power of two"):
        make(leaves=10)


@pytest.mark.parametrize("make", KINDS)
def test_an_action_at_either_end_of_any_range_can_be_named(make):
    low, high = 0.1, 0.1 + 0.7
    agent = make(actions=(low, high), leaves=64)
    for atom in agent.distribution([1.0]).positions[:-1]:
        assert agent.distribution([1.0], (atom, high)).positions[0] == atom
