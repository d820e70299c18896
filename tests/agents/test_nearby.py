"""Auto with one knob that explores nearby: the ladder of the core against its twin, exact densities, files, bad input."""

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.errors import ParameterError
from manul.utils import model_files
from tests.twins import knobs as twin

CONTEXTS = np.random.default_rng(0).standard_normal((4000, 3))
RANGES = [(0.0, 1.0), (-2.0, 8.0), (1e6, 1e6 + 1)]


def play(agent, rounds=300):
    low, high = agent.actions
    for context in CONTEXTS[:rounds]:
        decision = agent.decide(context)
        agent.learn(context, decision, abs((decision.action - low) / (high - low) - 0.3))
    return agent


@pytest.mark.parametrize("actions", RANGES)
@pytest.mark.parametrize("share", [None, (0.25, 0.4)])
def test_native_draws_and_densities_are_those_of_the_twins_ladder(actions, share):
    agent, (start, end) = play(manul.Auto(actions=actions, epsilon=0.2, nearby=0.4, seed=5)), actions
    low, high = actions if share is None else (start + share[0] * (end - start), start + share[1] * (end - start))
    for number, context in enumerate(CONTEXTS[:200], host_of(agent).decisions):
        centre, h = host_of(agent).player.window(context, low, high)
        ladder = twin.Ladder.around(centre - start, h, low - start, high - start, 0.4, 0.2, 1)
        decision = agent.decide(context, (low, high))
        drawn = ladder.at(*twin.draw(5, number, 0))
        assert decision.action - start == pytest.approx(drawn, abs=1e-9 * (end - start) + 4e-10)
        assert decision.density == pytest.approx(ladder.density(decision.action - start), rel=1e-6)


def test_the_share_that_explores_nearby_fades_with_the_square_root_of_epsilon():
    agent = play(manul.Auto(nearby=0.1))
    shares = [share for _, _, share in host_of(agent).player.levels(0.5, 0.01, 0.0, 1.0)]
    nearby = sum(shares[1:4]) / (1 - shares[4])
    assert nearby == pytest.approx(0.1 * np.sqrt(agent.current_epsilon / 0.05))


@pytest.mark.parametrize("actions", RANGES)
def test_the_mean_of_one_over_density_and_span_is_one(actions):
    agent = play(manul.Auto(actions=actions, epsilon=0.3, nearby=0.3))
    values = 1 / (agent.decide_many(CONTEXTS).densities * (actions[1] - actions[0]))
    assert abs(values.mean() - 1) <= 4 * values.std() / np.sqrt(len(values))


def test_all_forms_of_the_distribution_agree():
    agent, contexts = play(manul.Auto(actions=(-2.0, 8.0), nearby=0.3)), CONTEXTS[:20]
    distributions = [agent.distribution(context) for context in contexts]
    decisions = agent.decide_many(contexts)
    assert np.allclose([each.integral() for each in distributions], 1)
    expected = [each.density(action) for each, action in zip(distributions, decisions.actions, strict=True)]
    assert np.allclose(expected, decisions.densities)
    assert np.allclose(agent.distributions(contexts).density(decisions.actions), decisions.densities)
    assert np.allclose([each.largest_density() for each in distributions], agent.distributions(contexts).largest())
    means, squares = agent.distributions(contexts).moments()
    assert np.allclose([each.mean() for each in distributions], means)
    assert np.allclose([each.square() for each in distributions], squares)


def test_the_agent_passes_the_checks_of_agents():
    manul.checks.check_agent(lambda seed: manul.Auto(nearby=0.2, seed=seed))


def test_a_file_keeps_nearby_and_has_none_without_it(tmp_path):
    path = tmp_path / "agent.manul"
    for settings in ({"nearby": 0.2}, {}):
        agent = play(manul.Auto(**settings))
        agent.save(path)
        loaded = manul.load(path)
        assert loaded.parameters == agent.parameters
        assert loaded.decide(CONTEXTS[0]) == agent.decide(CONTEXTS[0])
        assert ("nearby" in model_files.contents(agent)[1]) == bool(settings)


def test_dr_values_a_policy_that_explores_nearby():
    agent = play(manul.Auto(epsilon=0.1, nearby=0.5), 1000)
    log = manul.simulate(manul.Auto(epsilon=0.3, nearby=0.3), manul.worlds.linear(rounds=1000, width=3)).log
    other = manul.evaluate(agent, log, "snips")
    assert other.low <= manul.evaluate(agent, log, "dr").value <= other.high


@pytest.mark.parametrize("nearby", [1, -0.1, float("nan"), "much"])
def test_a_bad_share_is_rejected(nearby):
    with pytest.raises(ParameterError, match="nearby must be") as error:
        manul.Auto(nearby=nearby)
    assert error.value.field == "nearby"
