"""A decision that an agent learns twice counts twice, and the agent says so; what only looks like that stays silent."""

import numpy as np
import pytest

import manul
from manul.errors import InputError, LearnedTwiceWarning

KNOBS = {"price": (10, 50), "template": manul.Choice(["a", "b"])}
AGENTS = {
    "auto": lambda: manul.Auto(seed=1),
    "cats": lambda: manul.Cats(leaves=8, bandwidth=1 / 8),
    "greedy": lambda: manul.agents.SmoothedGreedy(policies=manul.policies.Constant(), bandwidth=1 / 8),
    "discrete": lambda: manul.agents.DiscreteTree(leaves=4),
    "knobs": lambda: manul.Auto(actions=KNOBS),
    "mapped": lambda: manul.Mapped(agent=manul.Auto(), features=manul.maps.Crosses()),
}
ROWS = np.random.default_rng(0).normal(size=(6, 2))


@pytest.fixture(params=AGENTS)
def agent(request):
    return AGENTS[request.param]()


def test_a_decision_that_is_learned_again_at_once_is_said_to_count_twice(agent):
    decision = agent.decide([1.0, 2.0])
    agent.learn([1.0, 2.0], decision, 0.5)
    with pytest.warns(LearnedTwiceWarning, match="was learned just before, so it counts twice"):
        agent.learn([1.0, 2.0], decision, 0.5)


def test_a_batch_that_is_learned_again_is_said_to_count_twice(agent):
    first = agent.decide_many(ROWS)
    agent.learn_many(ROWS, first, np.ones(6))
    agent.learn_many(ROWS, agent.decide_many(ROWS), np.ones(6))
    with pytest.warns(LearnedTwiceWarning, match="These decisions were learned before, so they count twice"):
        agent.learn_many(ROWS, first, np.ones(6))


def test_a_decision_that_was_refused_may_be_learned(agent):
    decision, batch = agent.decide([1.0, 2.0]), agent.decide_many(ROWS)
    for _ in range(2):
        with pytest.raises(InputError):
            agent.learn([1.0, 2.0], decision, float("nan"))
        with pytest.raises(InputError):
            agent.learn_many(ROWS, batch, np.full(6, np.nan))
    agent.learn([1.0, 2.0], decision, 0.5)
    agent.learn_many(ROWS, batch, np.ones(6))


def test_two_agents_may_learn_one_decision():
    one, other = manul.Auto(seed=1), manul.Auto(seed=2)
    decision, batch = one.decide([1.0, 2.0]), one.decide_many(ROWS)
    for agent in (one, other):
        agent.learn([1.0, 2.0], decision, 0.5)
        agent.learn_many(ROWS, batch, np.ones(6))


def test_equal_decisions_and_those_of_a_log_are_no_repetition():
    agent = manul.agents.DiscreteTree(leaves=2, epsilon=0.0)
    for _ in range(5):
        agent.learn([1.0], agent.decide([1.0]), 0.5)
    own = manul.Decision(0.5, 2.0)
    rows = manul.Decisions(np.full(3, 0.5), np.full(3, 2.0))
    for _ in range(3):
        agent.learn([1.0], own, 0.5)
        agent.learn_many([[1.0]] * 3, rows, np.ones(3))
        for decision in rows:
            agent.learn([1.0], decision, 0.5)
