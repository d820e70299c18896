"""A log that the tests of this folder share."""

import pytest

import manul


@pytest.fixture(scope="package")
def log():
    agent = manul.Cats.paper(leaves=4, bandwidth=1 / 4, epsilon=0.2)
    return manul.simulate(agent, manul.worlds.linear(rounds=3000, width=3)).log


@pytest.fixture(scope="package")
def grid():
    return manul.offpolicy.Grid(bandwidths=[1 / 4, 1 / 8, 1 / 32], leaves=[8, 64])
