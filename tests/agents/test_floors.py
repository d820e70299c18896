"""The floor of a decision: the smallest density that the policy gave any action of its range."""

import numpy as np
import pytest

import manul
from manul.actions.distribution import Atoms
from manul.agents.player_host import host_of

RANGES = [None, (2.0, 30.0)]
SETTINGS = {
    "auto": {},
    "auto-nearby": {"nearby": 0.2},
    "cats": {"leaves": 16, "bandwidth": 2.0},
    "cats-whole-range": {"leaves": 2, "bandwidth": 16.0},
    "discrete": {"leaves": 8},
    "greedy": {"bandwidth": 2.0},
}
MAKERS = {"cats": manul.Cats, "cats-whole-range": manul.Cats, "auto": manul.Auto, "auto-nearby": manul.Auto}
MAKERS |= {"discrete": manul.agents.DiscreteTree, "greedy": manul.agents.SmoothedGreedy}


def make(kind, **more):
    given = dict(SETTINGS[kind])
    if kind == "greedy":
        given["policies"] = manul.policies.Linear()
    return MAKERS[kind](actions=(0.0, 32.0), seed=1, **given, **more)


def smallest(distribution, within):
    if isinstance(distribution, Atoms):
        return float(distribution.masses.min()) / distribution.spacing
    covers = distribution.edges[0] <= within[0] and distribution.edges[-1] >= within[1]
    return float(distribution.densities.min()) if covers else 0.0


def teach(agent, rounds=60):
    rng = np.random.default_rng(0)
    for context in rng.normal(size=(rounds, 3)):
        decision = agent.decide(context)
        agent.learn(context, decision, abs(decision.action - 20) / 32)
    return agent


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
@pytest.mark.parametrize("within", RANGES)
@pytest.mark.parametrize("kind", SETTINGS)
def test_the_floor_is_the_smallest_density_of_the_distribution(kind, within, epsilon):
    if kind == "cats-whole-range" and within is not None:
        within = (0.0, 32.0)
    agent, contexts = teach(make(kind, epsilon=epsilon)), np.random.default_rng(1).normal(size=(20, 3))
    for context in contexts:
        expected = smallest(agent.distribution(context, within), within or (0.0, 32.0))
        decision = agent.decide(context, within)
        assert decision.floor == pytest.approx(expected, rel=1e-12)
        assert decision.floor <= decision.density


@pytest.mark.parametrize("kind", SETTINGS)
def test_all_ways_of_deciding_give_the_same_floors(kind):
    agent, contexts = teach(make(kind)), np.random.default_rng(1).normal(size=(5, 3))
    numbers = np.arange(5) + host_of(agent).decisions
    again = [agent.decide_again(int(number), row).floor for number, row in zip(numbers, contexts, strict=True)]
    many_again = agent.decide_many_again(numbers, contexts).floors.tolist()
    assert again == many_again == agent.decide_many(contexts).floors.tolist()
    assert all(floor > 0 for floor in again)


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_simulation_logs_the_floors(kind):
    log = manul.simulate(make(kind), manul.worlds.linear(rounds=50)).log
    assert (log.floors > 0).all()
    assert (log.floors <= log.densities).all()


def test_agents_that_give_no_floor_leave_no_column():
    class Own:
        def decide(self, context, within=None):
            return manul.Decision(0.5, 1.0)

        def learn(self, context, decision, loss):
            pass

    assert manul.simulate(Own(), manul.worlds.linear(rounds=5)).log.floors is None


def test_a_decision_without_a_floor_is_learned_and_shown_as_before():
    agent = manul.Cats(leaves=8, bandwidth=1 / 8)
    agent.learn([1.0], manul.Decision(0.5, 1.0), 0.5)
    agent.learn([1.0], (0.5, 1.0, None), 0.5)
    assert repr(manul.Decision(0.5, 1.0)) == "Decision(action=0.5, density=1.0)"
    assert repr(manul.Decision(0.5, 1.0, floor=0.1)) == "Decision(action=0.5, density=1.0, floor=0.1)"
