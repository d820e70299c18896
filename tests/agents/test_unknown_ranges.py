"""Auto without a stated range of losses or rewards."""

import math

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.errors import FileError, InputError
from manul.utils import model_files
from manul.utils.model_files import encode

ROUNDS = 1500
RANDOM = np.random.default_rng(1)
CONTEXTS = RANDOM.standard_normal((ROUNDS, 3)).astype(np.float32)
NOISE = 0.05 * RANDOM.standard_normal(ROUNDS)
BEST = 1 / (1 + np.exp(-CONTEXTS[:, 0]))


def play(agent, change=lambda _, loss: loss):
    actions = np.empty(ROUNDS)
    for number, context in enumerate(CONTEXTS):
        decision = agent.decide(context)
        actions[number] = decision.action
        agent.learn(context, decision, change(number, abs(decision.action - BEST[number]) + NOISE[number]))
    return actions


def regret(actions):
    return np.abs(actions - BEST)[-500:].mean()


@pytest.fixture(scope="module")
def actions():
    return play(manul.Auto(losses="auto"))


@pytest.fixture(scope="module")
def usual_regret(actions):
    """Between seeds, regrets differ by a factor of nearly two."""
    return np.mean([regret(actions), *(regret(play(manul.Auto(losses="auto", seed=seed))) for seed in (1, 2, 3))])


def test_no_range_is_as_good_as_a_stated_one(actions):
    assert regret(actions) < 1.05 * regret(play(manul.Auto(losses=(-2, 3))))


@pytest.mark.parametrize(("factor", "shift"), [(1000, 0), (1000, -54321), (2.0**-40, 0), (1e12, 1e13)])
def test_the_scale_of_losses_does_not_change_the_actions(actions, factor, shift):
    scaled = play(manul.Auto(losses="auto"), lambda _, loss: factor * loss + shift)
    assert np.abs(scaled - actions)[:500].max() < 1e-6
    assert regret(scaled) == pytest.approx(regret(actions), rel=0.1)


def test_small_differences_between_large_losses_are_learned(actions):
    large = play(manul.Auto(losses="auto"), lambda _, loss: 1e9 + loss)
    assert regret(large) == pytest.approx(regret(actions), rel=0.1)


@pytest.mark.parametrize("outlier", [1e12, -1e12, 1e308, -1e308])
@pytest.mark.parametrize("number", [0, 5, 19, 20, 500])
def test_one_absurd_loss_does_not_disturb_learning(usual_regret, number, outlier):
    agent = manul.Auto(losses="auto")
    disturbed = play(agent, lambda each, loss: outlier if each == number else loss)
    assert regret(disturbed) < 1.5 * usual_regret
    assert (agent.report().clipped > 0) == (number >= 20)
    assert agent.report().alarms == 0


def test_losses_that_grow_a_thousandfold_are_learned_again(actions):
    grown = play(manul.Auto(losses="auto"), lambda number, loss: loss if number < 700 else 1000 * loss)
    assert regret(grown) < 2 * regret(actions)


def test_rare_losses_are_not_outliers():
    agent = manul.Auto(losses="auto")
    play(agent, lambda number, _: float(number % 200 == 0))
    assert agent.report().clipped == 0


def test_equal_losses_are_no_information():
    agent = manul.Auto(losses="auto")
    play(agent, lambda *_: 5.0)
    assert agent.report().losses is None
    assert agent.report(CONTEXTS[0]).losses == pytest.approx(5.0, abs=0.5)


def test_rewards_without_a_range_are_negative_losses():
    agent, other = manul.Auto(rewards="auto"), manul.Auto(losses="auto")
    for context in CONTEXTS[:100]:
        decision = agent.decide(context)
        assert decision == other.decide(context)
        agent.learn(context, decision, reward=-7 * decision.action)
        other.learn(context, decision, loss=7 * decision.action)
    assert (agent.outcome.rewards, agent.losses, other.outcome.rewards) == ("auto", "auto", None)


def test_the_predicted_curve_is_in_the_units_of_the_losses():
    agent = manul.Auto(losses="auto")
    play(agent, lambda _, loss: 1e9 + 100 * loss)
    losses = agent.report(np.zeros(3)).losses
    assert losses.min() == pytest.approx(1e9, abs=10)
    assert losses.max() == pytest.approx(1e9 + 50, abs=10)


@pytest.mark.parametrize("loss", [math.inf, -math.inf])
def test_an_infinite_loss_is_refused_and_changes_nothing(loss):
    agent = manul.Auto(losses="auto")
    decision = agent.decide(CONTEXTS[0])
    before = host_of(agent).state()
    with pytest.raises(InputError) as error:
        agent.learn(CONTEXTS[0], decision, loss)
    assert str(error.value) == f"loss must be finite, got {loss}. Limit or leave out infinite values."
    assert all(np.array_equal(before[name], array) for name, array in host_of(agent).state().items())


def test_a_saved_agent_resumes_with_its_bounds(tmp_path):
    agent = manul.Auto(rewards="auto")
    contexts = CONTEXTS[:600]
    decisions = agent.decide_many(contexts)
    agent.learn_many(contexts, decisions, rewards=np.where(np.arange(600) == 500, 1e12, decisions.actions))
    agent.save(tmp_path / "agent.manul")
    loaded = manul.load(tmp_path / "agent.manul")
    assert repr(loaded) == repr(agent) == "Auto(actions=(0.0, 1.0), epsilon='auto', rewards='auto', seed=0)"
    assert loaded.report() == agent.report()
    assert loaded.report().clipped == 1


def test_the_core_simulates_an_agent_without_a_range():
    world = manul.worlds.linear(rounds=300, width=2)
    log, agent = manul.simulate(manul.Auto(losses="auto"), world).log, manul.Auto(losses="auto")
    for context, action, loss in zip(log.contexts, log.actions, log.losses, strict=True):
        decision = agent.decide(context)
        assert decision.action == action
        agent.learn(context, decision, float(loss))


@pytest.mark.parametrize("check", manul.checks.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("ranges", [{"losses": "auto"}, {"rewards": "auto", "actions": (-2.0, 8.0)}])
def test_agents_without_a_range_pass_the_checks_of_agents(check, ranges):
    check(lambda seed: manul.Auto(seed=seed, **ranges))


@pytest.mark.parametrize("bounds", [[1, 0, 20, 0, 0, 0], [math.nan, 1, 20, 0, 0, 0], [0, 1, -1, 0, 0, 0]])
def test_a_file_with_impossible_bounds_is_refused(bounds):
    agent = manul.Auto(losses="auto")
    play(agent)
    kind, parameters, arrays = model_files.contents(agent)
    with pytest.raises(FileError, match="the arrays do not match the settings"):
        manul.loads(encode(kind, parameters, {**arrays, "loss_bounds": np.array(bounds, np.float64)}))


def test_a_file_that_is_updated_after_every_round_resumes():
    agent = manul.Auto(losses="auto")
    agent.learn(CONTEXTS[0], agent.decide(CONTEXTS[0]), 1.0)
    kind, parameters, arrays = model_files.contents(agent)
    early = np.array([-math.inf, math.inf, 0, 0, 0, 0])
    loaded = manul.loads(encode(kind, parameters, {**arrays, "loss_bounds": early}))
    loaded.learn(CONTEXTS[1], loaded.decide(CONTEXTS[1]), 2.0)
    assert loaded.report().rounds == 2
