"""A schedule of a plug-in is used like those of the package: by every agent, in files and copies, in replays and in the core."""

import pickle
import sys
from pathlib import Path

import numpy as np
import pytest

import manul
from manul.actions.schedules import SCHEDULES, Constant
from manul.agents.player_host import host_of
from manul.utils import model_files
from manul.utils.registry import import_plugin

H, ROUNDS = 1 / 8, 60
WORLD = manul.worlds.linear(rounds=ROUNDS, width=3, seed=2)
EXPECTED = np.where(np.arange(ROUNDS) < 20, 0.2, np.where(np.arange(ROUNDS) < 40, 0.05, 0.01))
KNOBS = {"price": (10.0, 50.0), "template": manul.Choice(["a", "b", "c"])}

AGENTS = {
    "auto": lambda epsilon: manul.Auto(epsilon=epsilon, seed=4),
    "nearby": lambda epsilon: manul.Auto(epsilon=epsilon, nearby=0.1, seed=4),
    "knobs": lambda epsilon: manul.Auto(actions=KNOBS, epsilon=epsilon, seed=4),
    "cats": lambda epsilon: manul.Cats(leaves=16, bandwidth=H, epsilon=epsilon, seed=4),
    "adaptive": lambda epsilon: manul.AdaptiveCats(leaves=16, bandwidths=(1 / 4, H), epsilon=epsilon, seed=4),
    "discrete": lambda epsilon: manul.agents.DiscreteTree(leaves=16, epsilon=epsilon, seed=4),
    "constant": lambda epsilon: manul.agents.SmoothedGreedy(
        policies=manul.policies.Constant(), bandwidth=H, epsilon=epsilon, seed=4
    ),
    "pareto": lambda epsilon: manul.agents.ParetoGreedy(policies=manul.policies.Constant(), epsilon=epsilon, seed=4),
}
every_agent = pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)


@pytest.fixture(autouse=True, scope="module")
def schedule():
    """Registered for this module: other tests go over all that is registered."""
    import_plugin(str(Path(__file__).parents[1] / "schedule_example.py"))
    yield
    SCHEDULES.remove("steps")
    del sys.modules["manul_plugin_schedule_example"]


@pytest.fixture
def steps():
    return SCHEDULES["steps"](until=(20.0, 40.0))


def played(agent, rounds=ROUNDS):
    """Decides and learns one row at a time; returns the decisions and the epsilons before them."""
    decisions, epsilons = [], []
    for row in range(rounds):
        epsilons.append(agent.current_epsilon)
        decisions.append(agent.decide(WORLD.contexts[row]))
        agent.learn(WORLD.contexts[row], decisions[-1], 0.5 + 0.5 * np.sin(row))
    return decisions, epsilons


@every_agent
def test_the_current_epsilon_is_that_of_the_schedule(make, steps):
    assert played(make(steps))[1] == EXPECTED.tolist() == [steps.at(age) for age in range(ROUNDS)]


@every_agent
@pytest.mark.parametrize("rounds", [10, 30])
def test_the_densities_are_those_of_the_decisions(make, steps, rounds):
    agent = make(steps)
    played(agent, rounds)
    decisions = agent.decide_many(np.tile(WORLD.contexts[0], (10_000, 1)))
    uniform = 1 / (40 * 3) if agent.space.is_named else 1.0
    weights = uniform / decisions.densities
    assert weights.mean() == pytest.approx(1, abs=5 * weights.std() / 100)


def test_the_densities_of_a_tree_are_exact(steps):
    densities = np.array([decision.density for decision in played(AGENTS["cats"](steps))[0]])
    inside = 1 / (2 * H)
    epsilons = np.where(densities < 1, densities, (densities - inside) / (1 - inside))
    assert np.allclose(epsilons, EXPECTED, rtol=1e-9)


@every_agent
@pytest.mark.parametrize(
    "copied", [lambda agent: manul.loads(manul.dumps(agent)), lambda agent: pickle.loads(pickle.dumps(agent))]
)
def test_a_copy_in_mid_schedule_goes_on_like_the_agent(make, steps, copied):
    agent = make(steps)
    played(agent, 30)
    copy = copied(agent)
    assert (copy.epsilon, copy.current_epsilon) == (steps, 0.05)
    assert manul.dumps(copy) == manul.dumps(agent)
    assert played(copy, 20) == played(agent, 20)


@every_agent
def test_a_decision_is_drawn_again(make, steps):
    agent = make(steps)
    played(agent, 30)
    assert agent.decide(WORLD.contexts[0]) == agent.decide_again(30, WORLD.contexts[0])


def test_a_simulation_and_a_replay_follow_the_schedule(steps):
    log = manul.simulate(AGENTS["cats"](steps), WORLD).log
    assert log.floors.tolist() == EXPECTED.tolist()
    best = manul.optimize(log, grid=manul.offpolicy.Grid(bandwidths=[H], leaves=[16]), epsilon=steps, penalty=1)
    assert best.policy.current_epsilon == 0.01


def test_an_alarm_starts_the_schedule_of_auto_again():
    contexts = np.random.default_rng(0).standard_normal((3000, 3))
    targets = np.clip(0.5 + 0.2 * contexts[:, 0], 0, 1)
    targets[2000:] = 1 - targets[2000:]
    steps = SCHEDULES["steps"](until=(500.0, 1500.0))
    agent = manul.Auto(epsilon=steps, seed=1)
    manul.simulate(agent, manul.worlds.Regression(contexts, targets))
    assert agent.report().alarms == 1
    assert agent.current_epsilon == steps.at(host_of(agent).state()["change"][0]) == 0.05


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"levels": (0.2, 1.5, 0.1)}, "epsilon must have points (rounds, epsilon) with rounds of at least 0 in order"),
        ({"until": (40.0, 20.0)}, "and epsilon in [0, 1], got (20, 0.05) of Steps("),
        ({"levels": (0.2, 0.1)}, "epsilon cannot be Steps(levels=(0.2, 0.1), until=(100.0, 300.0)): zip() argument 2"),
        ({"levels": (0.2,) * 40, "until": tuple(range(39))}, "epsilon must have 1 to 64 points, got 79 of Steps("),
    ],
)
def test_points_that_cannot_be_are_one_sentence(settings, message):
    with pytest.raises(manul.errors.ParameterError) as refused:
        manul.Auto(epsilon=SCHEDULES["steps"](**settings))
    assert message in str(refused.value)


def test_a_file_of_an_unknown_kind_of_schedule_names_the_known_ones(steps):
    kind, parameters, arrays = model_files.contents(AGENTS["cats"](steps))
    damaged = {**parameters, "epsilon": {**parameters["epsilon"], "kind": "stops"}}
    with pytest.raises(manul.ManulError, match=r"must be one of fading, steps, got 'stops'\. Did you mean steps\?"):
        manul.loads(model_files.encode(kind, damaged, arrays))


def test_a_kind_that_is_not_registered_is_refused():
    with pytest.raises(manul.errors.ParameterError, match="must be a schedule of a registered kind"):
        manul.Auto(epsilon=Constant(0.1))
