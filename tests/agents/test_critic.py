"""The native critic against its network in plain NumPy, and what Auto promises."""

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from tests.twins import critic, early


def weights(rng, width, *, deep):
    columns = critic.HINGES + (critic.TRUNK if deep else 0)
    inner = critic.TRUNK * critic.HINGES if deep else 0
    size = (width + 1) * columns + inner + 2 * critic.HINGES + 32
    return critic.Weights.unpacked(rng.normal(0, 0.5, size), width, deep=deep)


@pytest.mark.parametrize("corner", [critic.BLUNT, critic.SHARP])
@pytest.mark.parametrize("deep", [True, False])
def test_the_twins_gradient_is_that_of_finite_differences(deep, corner, rng):
    contexts, actions, losses = (
        np.column_stack([rng.standard_normal((16, 2)), np.ones(16)]),
        rng.random(16),
        rng.random(16),
    )
    network = weights(rng, 2, deep=deep)
    exact = critic.gradient(network, contexts, actions, losses, corner).packed()
    nudged = critic.finite_differences(network, contexts, actions, losses, corner).packed()
    assert np.allclose(exact, nudged, atol=1e-7)


@pytest.mark.parametrize("width", [0, 3, 20])
def test_native_predictions_are_the_twins(width):
    world = manul.worlds.linear(rounds=2000, width=max(width, 1), seed=1)
    agent = manul.Auto(seed=2)
    manul.simulate(agent, manul.worlds.Regression(world.contexts[:, :width], world.targets))
    context = world.contexts[0, :width]
    assert agent.report().forest > 0
    _, _, centre, _, gain = host_of(agent).state()["units"]
    predicted = early.curve(agent, context)((np.arange(64) + 0.5) / 64) / gain + centre
    assert np.allclose(agent.report(context if width else []).losses, predicted, atol=1e-5)


def played_window(agent, context, within=(0.0, 1.0)):
    edges = agent.distribution(context, within).edges
    densities = agent.distribution(context, within).densities
    low, high = edges[np.argmax(densities)], edges[np.argmax(densities) + 1]
    return np.array([(low + high) / 2, (high - low) / 2])


@pytest.mark.parametrize("within", [(0.0, 1.0), (0.35, 0.6)])
@pytest.mark.parametrize("world", ["valleys", "cliff", "smooth"])
def test_native_windows_are_the_twins(world, within):
    drawn = getattr(manul.worlds, world)(rounds=3000, seed=4)
    agent = manul.Auto(seed=2)
    manul.simulate(agent, drawn)
    native, twin = np.array(
        [
            (
                played_window(agent, context, within),
                critic.window(early.curve(agent, context), agent.report().bandwidth, *within),
            )
            for context in drawn.contexts[:50]
        ]
    ).transpose(1, 0, 2)
    # Two windows may be equally good up to rounding.
    agree = np.isclose(native, twin, rtol=1e-3, atol=1e-6).all(axis=1)
    assert agree.mean() >= 0.98


def test_steep_sides_make_the_window_narrow():
    narrow, wide = (critic.window(lambda actions, k=k: k * np.abs(actions - 0.4), bandwidth=0.02) for k in (4.0, 0.5))
    assert np.allclose(narrow, [0.4, 0.005], atol=1e-3)
    assert np.allclose(wide, [0.4, 0.02], atol=1e-3)


def test_auto_notices_a_jump_and_recovers():
    rng = np.random.default_rng(0)
    contexts = rng.standard_normal((12_000, 3))
    targets = np.clip(0.5 + 0.2 * contexts[:, 0], 0, 1)
    targets[6000:] = np.clip(0.5 - 0.2 * contexts[6000:, 0], 0, 1)
    agent = manul.Auto(seed=1)
    losses = manul.simulate(agent, manul.worlds.Regression(contexts, targets)).log.losses
    report = agent.report()
    assert report.alarms == 1
    assert 6000 <= report.last_alarm < 6300
    assert losses[-2000:].mean() < 1.2 * losses[4000:6000].mean()


def test_a_steady_world_raises_no_alarm():
    agent = manul.Auto(seed=1)
    manul.simulate(agent, manul.worlds.linear(rounds=8000, seed=3))
    assert agent.report().alarms == 0


def test_contexts_that_mean_nothing_cost_little():
    world = manul.worlds.noise(rounds=20_000)
    agent = manul.Auto(seed=1)
    loss = manul.simulate(agent, world).mean_loss
    assert loss < world.best_constant(bandwidth=1 / 64, epsilon=0.05) + 0.01


def test_auto_needs_less_than_the_best_fixed_tree():
    world = manul.worlds.linear(rounds=10_000, seed=5)
    agents = [manul.Auto(seed=1), manul.Cats(leaves=256, bandwidth=1 / 32, seed=1)]
    auto, cats = manul.worlds.simulate_many(agents, world)
    assert auto.mean_loss < 0.75 * cats.mean_loss


def test_huge_columns_do_not_overflow():
    agent = manul.Auto(seed=1)
    for round_ in range(60):
        context = [-3e38 if round_ < 3 else 3e38]
        decision = agent.decide(context)
        agent.learn(context, decision, abs(decision.action - 0.3))
    assert np.isfinite(agent.report().noise)
    assert manul.dumps(manul.loads(manul.dumps(agent))) == manul.dumps(agent)
