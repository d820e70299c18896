"""A decision can be drawn again by its number, without counting it."""

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of

AGENTS = [
    manul.Auto(seed=3),
    manul.Cats(leaves=8, bandwidth=1 / 8, seed=3),
    manul.agents.SmoothedGreedy(
        policies=manul.policies.Finite([lambda _: 0.2, lambda _: 0.7]), bandwidth=1 / 8, seed=3
    ),
    manul.agents.SmoothedGreedy(policies=manul.policies.Linear(), bandwidth=1 / 8, seed=3),
]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: type(agent).__name__)
def test_the_same_number_draws_the_same_decision(agent):
    rows = np.arange(10.0).reshape(5, 2)
    made = [agent.decide(row) for row in rows]
    assert [agent.decide_again(number, row) for number, row in enumerate(rows)] == made
    many = agent.decide_many_again(np.arange(5), rows)
    assert many.actions.tolist() == [each.action for each in made]
    assert host_of(agent).decisions == 5


def test_contexts_with_names_too():
    agent = manul.Cats(leaves=8, bandwidth=1 / 8, table_bits=10)
    made = agent.decide({"sky": "grey"})
    assert agent.decide_again(0, {"sky": "grey"}) == made
