"""Memory is the parameter arrays and little else."""

import numpy as np

import manul
from manul.agents.player_host import host_of


def test_nbytes_is_the_arrays():
    agent = manul.Cats(leaves=8192, bandwidth=1 / 64)
    agent.decide(np.zeros(20))
    arrays = sum(array.nbytes for array in host_of(agent).state().values())
    assert arrays <= agent.nbytes + 8 <= arrays + 2**20
    assert agent.nbytes < 16 * 2**20


def test_the_papers_learner_stays_under_16_mib():
    agent = manul.Cats.paper(leaves=8192, bandwidth=1 / 64)
    agent.decide(np.zeros(20))
    assert agent.nbytes < 16 * 2**20
