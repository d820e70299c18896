"""Worlds with several knobs have the optimum that they state."""

import numpy as np
import pytest

import manul
from manul.actions.space import ActionSpace
from manul.errors import ParameterError
from manul.worlds import several

WORLDS = {
    "separable": lambda rounds: several.separable(rounds=rounds, knobs=3, width=4, seed=1),
    "whole numbers": lambda rounds: several.separable(rounds=rounds, knobs=2, steps=7, width=4, seed=1),
    "bowl": lambda rounds: several.bowl(rounds=rounds, knobs=3, width=4, seed=1),
    "ridge": lambda rounds: several.ridge(rounds=rounds, knobs=3, width=4, seed=1),
    "valleys": lambda rounds: several.valleys(rounds=rounds, knobs=3, width=4, seed=1),
    "cliff": lambda rounds: several.cliff(rounds=rounds, knobs=3, width=4, seed=1),
    "price and discount": lambda rounds: several.price_and_discount(rounds=rounds, products=2, width=4, seed=1),
    "templates": lambda rounds: several.templates(rounds=rounds, width=4, seed=1),
}


@pytest.fixture(params=WORLDS)
def world(request):
    return WORLDS[request.param](300)


def random_actions(world, rng, near=None):
    """One action per round: anywhere, or numbers near those of an action."""
    knobs = ActionSpace(world.actions)
    actions = []
    for number in range(len(world)):
        places = [rng.integers(k.core[1]) if isinstance(k, manul.Choice) else rng.random() for _, k in knobs.knobs]
        if near is not None:
            best = knobs.positions({name: column[number] for name, column in near.items()})
            places = np.clip(best + 0.01 * (np.array(places) - 0.5) * (best != np.floor(best)), 0, None)
        actions.append(knobs.action(places))
    return knobs.columns_of(actions)


def test_no_action_is_better_than_the_best(world, rng):
    for _ in range(10):
        assert world.regrets(random_actions(world, rng)).min() >= -1e-12
        assert world.regrets(random_actions(world, rng, near=world.best)).min() >= -1e-12


def test_the_best_actions_are_possible(world):
    knobs = ActionSpace(world.actions)
    assert all(knobs.action(knobs.positions(world.best_action(number))) for number in range(len(world)))


def test_losses_are_in_the_unit_range_and_have_the_expected_mean(world, rng):
    actions = random_actions(world, rng)
    losses = [world.loss(n, {name: column[n] for name, column in actions.items()}) for n in range(len(world))]
    assert 0 <= min(losses) <= max(losses) <= 1
    assert np.abs(losses - world.expected_losses(actions)).max() <= several.NOISE


def test_a_run_has_the_losses_of_its_actions(world):
    run = manul.simulate(manul.Auto(actions=world.actions, seed=1), world)
    log = run.log
    assert np.allclose(log.losses, world.expected_losses(log.actions) + world.noise)
    assert run.mean_loss == log.losses.mean()
    assert np.allclose(log.densities, np.prod([*log.densities_by_knob.values()], axis=0))
    assert (log.floors <= log.densities).all()
    assert log.knobs.actions == world.actions


def test_the_log_of_a_run_comes_back_from_a_file(world, tmp_path):
    run = manul.simulate(manul.Auto(actions=world.actions, seed=1), world)
    run.log.write(tmp_path / "run.parquet")
    assert manul.Log.read(tmp_path / "run.parquet").table.equals(run.log.table, check_metadata=True)


def test_the_plot_and_the_cost_of_exploration_of_a_run_with_several_knobs():
    world = several.bowl(rounds=2000, knobs=2, width=4)
    run = manul.simulate(manul.Auto(actions=world.actions, seed=1), world)
    cost = run.exploration_cost
    assert 0 < cost.explored < len(world) / 3
    assert cost.cost > 2 * cost.error
    assert run.plot() is not None


def test_agents_of_a_comparison_run_as_alone():
    world = several.templates(rounds=200, width=4)
    many = manul.worlds.simulate_many([manul.Auto(actions=world.actions, seed=seed) for seed in (1, 2)], world)
    alone = [manul.simulate(manul.Auto(actions=world.actions, seed=seed), world) for seed in (1, 2)]
    assert [run.log.table for run in many] == [run.log.table for run in alone]


def test_a_simulation_is_repeated_to_the_byte(world):
    one, two = (manul.Auto(actions=world.actions, seed=1) for _ in range(2))
    manul.simulate(one, world)
    for number, context in enumerate(world.contexts):
        decision = two.decide(context)
        two.learn(context, decision, world.loss(number, decision.action))
    assert manul.dumps(one) == manul.dumps(two)


def test_an_agent_with_other_knobs_is_refused():
    world = several.bowl(rounds=10, knobs=2)
    with pytest.raises(
        ParameterError, match=r"^agent must have the knobs of the world: pass actions=world\.actions\.$"
    ):
        manul.simulate(manul.Auto(), world)
    with pytest.raises(ParameterError, match=r"^actions must be those of the world"):
        manul.simulate(manul.Auto(actions={"knob1": (0, 1)}), world)
    with pytest.raises(ParameterError, match=r"^world must have several knobs"):
        manul.simulate(manul.Auto(actions=world.actions), manul.worlds.linear(rounds=10))


@pytest.mark.parametrize(
    "call",
    [
        lambda: several.bowl(rounds=10, knobs=17),
        lambda: several.bowl(rounds=10, knobs=0),
        lambda: several.separable(rounds=10, knobs=2, steps=0),
        lambda: several.valleys(rounds=10, knobs=2, valleys=1),
        lambda: several.price_and_discount(rounds=10, products=9),
        lambda: several.templates(rounds=10, templates=27),
    ],
)
def test_bad_settings_are_refused(call):
    with pytest.raises(ParameterError):
        call()


def test_an_agent_with_a_map_of_contexts_plays():
    world = several.bowl(rounds=20, knobs=2, width=4, seed=1)
    agent = manul.Mapped(agent=manul.Auto(actions=world.actions), features=manul.maps.Crosses())
    assert len(manul.simulate(agent, world).log) == 20
