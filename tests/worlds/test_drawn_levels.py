"""Simulations log what each action was drawn from, whoever decides."""

import numpy as np
import pytest

import manul
from tests.laws.piece_masses import densities, masses

ROUNDS = 60


AGENTS = {
    "core": lambda: manul.Cats(leaves=16, bandwidth=1 / 8, seed=3),
    "nearby": lambda: manul.Auto(losses=(0, 1), nearby=0.3),
    "python": lambda: manul.agents.Mapped(agent=manul.Auto(losses=(0, 1), nearby=0.3), features=manul.maps.Crosses()),
    "class": lambda: manul.agents.SmoothedGreedy(policies=manul.policies.Constant(), bandwidth=1 / 8),
    "rollout": lambda: manul.Rollout(manul.Auto(losses=(0, 1), epsilon=0.5), baseline=0.5, steps=(0.5,), budget=1e9),
}


@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
def test_the_log_of_one_number_has_pieces_with_the_logged_densities(make):
    agent = make()
    log = manul.simulate(agent, manul.worlds.linear(rounds=ROUNDS)).log
    np.testing.assert_allclose(masses(agent.space, log.pieces), 1.0, rtol=1e-12)
    np.testing.assert_allclose(densities(agent.space, log.pieces, log.actions), log.densities, rtol=1e-9)


def test_the_log_of_several_knobs_has_pieces_with_the_logged_densities():
    world = manul.worlds.several.bowl(rounds=ROUNDS, knobs=2)
    agent = manul.Auto(actions=world.actions, losses=(0, 1))
    log = manul.simulate(agent, world).log
    np.testing.assert_allclose(masses(agent.space, log.pieces), 1.0, rtol=1e-12)
    np.testing.assert_allclose(densities(agent.space, log.pieces, log.actions), log.densities, rtol=1e-9)


def test_an_agent_that_draws_single_actions_has_no_pieces():
    log = manul.simulate(manul.agents.DiscreteTree(leaves=8), manul.worlds.linear(rounds=ROUNDS)).log
    assert log.pieces is None
    assert "density_levels" not in log.table.column_names
