"""Exploration that fades: the epsilon of every decision is that of the schedule in NumPy, in every form of the loop."""

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.utils import model_files

H = 1 / 8
FADING = manul.schedules.Fading(first=0.5, last=0.02, rounds=40)
ROUNDS = 400
WORLD = manul.worlds.linear(rounds=ROUNDS, width=3, seed=2)
EXPECTED = np.maximum(0.02, 0.5 / (1 + np.arange(ROUNDS) / 40))


def cats(**settings):
    return manul.Cats(leaves=16, bandwidth=H, epsilon=FADING, seed=4, **settings)


def constant():
    return manul.agents.SmoothedGreedy(policies=manul.policies.Constant(), bandwidth=H, epsilon=FADING, seed=4)


AGENTS = {
    "auto": lambda: manul.Auto(epsilon=FADING, seed=4),
    "cats": cats,
    "paper": lambda: manul.Cats.paper(leaves=16, bandwidth=H, epsilon=FADING, seed=4),
    "adaptive": lambda: manul.AdaptiveCats(leaves=16, bandwidths=(1 / 4, 1 / 8), epsilon=FADING, seed=4),
    "discrete": lambda: manul.agents.DiscreteTree(leaves=16, epsilon=FADING, seed=4),
    "linear": lambda: manul.agents.SmoothedGreedy(
        policies=manul.policies.Linear(), bandwidth=H, epsilon=FADING, seed=4
    ),
    "constant": constant,
    "pareto": lambda: manul.agents.ParetoGreedy(policies=manul.policies.Constant(), epsilon=FADING, seed=4),
    "mapped": lambda: manul.Mapped(agent=cats(), features=manul.maps.Crosses()),
}
every_agent = pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)


def played(agent, rounds=ROUNDS):
    """Decides and learns one row at a time; returns the densities and the epsilons before each decision."""
    densities, epsilons = [], []
    for row in range(rounds):
        epsilons.append(agent.current_epsilon)
        decision = agent.decide(WORLD.contexts[row])
        densities.append(decision.density)
        agent.learn(WORLD.contexts[row], decision, abs(decision.action - WORLD.targets[row]))
    return np.array(densities), np.array(epsilons)


def epsilons_of(densities):
    """The epsilons of a policy with bandwidth H on (0, 1): outside its window the density is epsilon."""
    inside = 1 / (2 * H)
    return np.where(densities < 1, densities, (densities - inside) / (1 - inside))


def test_the_densities_of_single_decisions_follow_the_schedule():
    assert np.allclose(epsilons_of(played(cats())[0]), EXPECTED, rtol=1e-9)


def test_the_densities_of_a_simulation_follow_the_schedule():
    log = manul.simulate(cats(), WORLD).log
    assert np.allclose(epsilons_of(log.densities), EXPECTED, rtol=1e-9)
    assert log.densities.tolist() == played(cats())[0].tolist()


def test_a_batch_is_decided_with_the_epsilon_before_it():
    agent = cats()
    for first in range(0, ROUNDS, 100):
        rows = WORLD.contexts[first : first + 100]
        decisions = agent.decide_many(rows)
        assert np.allclose(epsilons_of(decisions.densities), EXPECTED[first], rtol=1e-9)
        agent.learn_many(rows, decisions, np.abs(decisions.actions - WORLD.targets[first : first + 100]))


@every_agent
def test_the_current_epsilon_is_that_of_the_schedule(make):
    densities, epsilons = played(make())
    assert np.allclose(epsilons, EXPECTED, rtol=1e-15)
    if make is AGENTS["auto"]:
        explored = densities < 1
        assert explored.any()
        assert np.allclose(densities[explored], EXPECTED[explored])


@every_agent
def test_distributions_densities_and_moments_have_the_current_epsilon(make):
    agent = make()
    played(agent, 100)
    context = WORLD.contexts[101]
    decision, expected = agent.decide(context), agent.distribution(context)
    assert decision.density == pytest.approx(expected.density(decision.action))
    assert agent.distributions([context]).density([decision.action])[0] == pytest.approx(decision.density)
    assert agent.distributions([context]).moments()[0][0] == pytest.approx(expected.mean())


@every_agent
def test_an_agent_that_is_saved_in_mid_schedule_goes_on_like_the_other(make):
    agent = make()
    played(agent, 60)
    loaded = manul.loads(manul.dumps(agent))
    assert loaded.current_epsilon == agent.current_epsilon < 0.5
    assert played(loaded, 50)[0].tolist() == played(agent, 50)[0].tolist()
    assert repr(loaded) == repr(agent)
    assert manul.dumps(loaded) == manul.dumps(agent)


def test_a_replay_counts_its_rounds():
    log = manul.simulate(cats(), WORLD).log
    best = manul.optimize(log, grid=manul.offpolicy.Grid(bandwidths=[H], leaves=[16]), epsilon=FADING, penalty=1)
    assert best.policy.current_epsilon == FADING.at(ROUNDS)


def test_a_rejected_outcome_does_not_advance_the_schedule():
    agent = cats()
    played(agent, 10)
    rows, decisions = WORLD.contexts[:2], agent.decide_many(WORLD.contexts[:2])
    for losses in ([0.5, 2.0], [np.nan, 0.5]):
        with pytest.raises(manul.errors.InputError):
            agent.learn_many(rows, decisions, losses)
    assert agent.current_epsilon == EXPECTED[10]


def test_a_repeated_decision_is_the_same_until_the_agent_learns():
    agent = cats()
    played(agent, 10)
    decision = agent.decide(WORLD.contexts[10])
    assert agent.decide_again(10, WORLD.contexts[10]) == decision
    agent.learn(WORLD.contexts[10], decision, 0.5)
    again = agent.decide_again(10, WORLD.contexts[10])
    assert agent.distribution(WORLD.contexts[10]).density(again.action) == pytest.approx(again.density)


def test_a_drift_alarm_starts_the_schedule_of_auto_again():
    contexts = np.random.default_rng(0).standard_normal((3000, 3))
    targets = np.clip(0.5 + 0.2 * contexts[:, 0], 0, 1)
    targets[2000:] = 1 - targets[2000:]
    schedule = manul.schedules.Fading()
    agent = manul.Auto(epsilon=schedule, seed=1)
    manul.simulate(agent, manul.worlds.Regression(contexts, targets))
    report, age = agent.report(), host_of(agent).state()["change"][0]
    assert report.alarms == 1
    assert 3000 - report.last_alarm <= age < 1500
    assert agent.current_epsilon == report.epsilon == schedule.at(age) > schedule.at(2000)


def test_a_number_stays_constant_and_the_default_of_auto_is_shown_as_auto():
    agent, constant_agent = manul.Auto(), manul.Auto(epsilon=0.05)
    for each in (agent, constant_agent):
        manul.simulate(each, WORLD)
    assert constant_agent.current_epsilon == 0.05
    assert agent.current_epsilon == pytest.approx(0.2 * 0.05 / 1.4)  # the evidence is complete
    assert agent.epsilon == agent.parameters["epsilon"] == manul.loads(manul.dumps(agent)).epsilon == "auto"
    assert "learned" not in host_of(constant_agent).state()


@pytest.mark.parametrize("epsilon", [{"first": 2.0}, {"last": 0.1, "other": 1}, {"rounds": None}, [0.1], "auto"])
def test_a_file_with_a_damaged_schedule_is_refused(epsilon):
    kind, parameters, arrays = model_files.contents(cats())
    with pytest.raises(manul.ManulError):
        manul.loads(model_files.encode(kind, {**parameters, "epsilon": epsilon}, arrays))


@pytest.mark.parametrize("count", [None, np.array([1.0]), np.array([2**60], np.uint64), np.zeros(2, np.uint64)])
def test_a_file_with_a_damaged_count_of_rounds_is_refused(count):
    agent = cats()
    played(agent, 5)
    kind, parameters, arrays = model_files.contents(agent)
    arrays = {name: array for name, array in {**arrays, "learned": count}.items() if array is not None}
    with pytest.raises(manul.errors.FileError, match="the arrays do not match the settings"):
        manul.loads(model_files.encode(kind, parameters, arrays))


@every_agent
def test_the_best_action_is_the_centre_of_the_greedy_window_and_changes_nothing(make):
    agent = make()
    played(agent, 100)
    before, context = manul.dumps(agent), WORLD.contexts[0]
    best = agent.best(context)
    distribution = agent.distribution(context)
    assert distribution.density(best) == pytest.approx(distribution.density_many(np.linspace(0, 1, 4097)).max())
    assert 0.3 <= agent.best(context, within=(0.3, 0.7)) <= 0.7
    assert manul.dumps(agent) == before
    with pytest.raises(manul.errors.InputError):
        agent.best(context, within=(0.5, 1.5))


def test_the_first_best_action_of_auto_is_the_middle_of_the_range():
    agent = manul.Auto(actions=(10.0, 20.0))
    assert (agent.best({"sky": "grey"}), agent.best({"sky": "blue"}, within=(10, 12))) == (15.0, 11.0)
    assert host_of(agent).decisions == 0
