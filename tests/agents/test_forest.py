"""The native forest against its twin in plain NumPy."""

import numpy as np
import pytest

import manul
from manul.agents.player_host import host_of
from manul.utils import model_files
from tests.twins import forest


def noisy_world(width, rounds, seed):
    rng = np.random.default_rng(seed)
    contexts = rng.standard_normal((rounds, width)).round(1 if seed % 2 else 6)
    targets = 0.5 + 0.3 * np.sign(contexts[:, 0] * contexts[:, -1]) * rng.random(rounds)
    return manul.worlds.Regression(contexts, targets)


def play(agent, world, row):
    decision = agent.decide(world.contexts[row])
    agent.learn(world.contexts[row], decision, abs(decision.action - world.targets[row]))
    return decision


def same_states(one, other):
    return all(np.array_equal(array, host_of(other).state()[name]) for name, array in host_of(one).state().items())


def grown_tree(agent, world, rounds):
    """States of an agent around the growth of one tree: before, when its targets were set, and when it was complete."""
    manul.simulate(agent, manul.worlds.Regression(world.contexts[:rounds], world.targets[:rounds]))
    made = forest.field(host_of(agent).state(), "made")
    before = started = host_of(agent).state()
    for row in range(rounds, len(world)):
        play(agent, world, row)
        after = host_of(agent).state()
        if started is before and (forest.field(after, "growing") or forest.field(after, "made") > made):
            started = after
        if forest.field(after, "made") > made:
            return before, started, after
    raise AssertionError("no tree was grown")


@pytest.mark.parametrize(("width", "rounds"), [(1, 100), (3, 70), (4, 400), (4, 1200), (40, 700), (3, 5000)])
def test_a_tree_is_the_twins(width, rounds):
    agent, world = manul.Auto(seed=width), noisy_world(width, rounds + 200, seed=rounds)
    before, started, after = grown_tree(agent, world, rounds)
    made = forest.field(before, "made")
    data = forest.rounds(started, width, forest.field(started, "rounds"))
    target = forest.targets(data, forest.trees(before), made, forest.trust(started["mixing"]))
    slots = (int(started["units"][0]) - 1 - np.arange(len(target))) % len(started["actions"])
    assert np.abs(started["tree_targets"][slots] - target).max() <= 1
    cuts = forest.edges(started, width)
    used = forest.columns([i for i, c in enumerate(cuts) if len(c)], before["column_gains"], made, agent.seed)
    grown = forest.grow(data, started["tree_targets"][slots].astype(np.int64), cuts, used)
    assert np.array_equal(after["trees"].view(forest.NODE).reshape(forest.TREES, 255)[made % forest.TREES], grown)


def test_a_half_grown_tree_survives_saving(tmp_path):
    agent, world = manul.Auto(seed=1), noisy_world(4, 6000, seed=3)
    manul.simulate(agent, manul.worlds.Regression(world.contexts[:5000], world.targets[:5000]))
    row = 5000
    while not forest.field(host_of(agent).state(), "growing"):
        play(agent, world, row)
        row += 1
    agent.save(tmp_path / "half.manul")
    again = manul.load(tmp_path / "half.manul")
    for later in range(row, row + 100):
        assert play(agent, world, later) == play(again, world, later)
    assert same_states(agent, again)


def test_trees_are_dropped_after_a_change_of_the_world():
    rng = np.random.default_rng(0)
    contexts = rng.standard_normal((4000, 3))
    targets = np.where(np.arange(4000) < 3000, 0.5 + 0.2 * np.tanh(contexts[:, 0]), 0.5 - 0.4 * np.tanh(contexts[:, 0]))
    agent = manul.Auto(seed=1)
    manul.simulate(agent, manul.worlds.Regression(contexts[:3000], targets[:3000]))
    trees = forest.TREES
    for row in range(3000, 4000):
        play(agent, manul.worlds.Regression(contexts, targets), row)
        report = agent.report()
        if report.alarms:
            break
        trees = report.trees
    assert (trees, report.alarms, report.trees) == (forest.TREES, 1, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("trees", -5),
        ("trees", 10**9),
        ("edge_counts", -5),
        ("edge_counts", 200),
        ("forest", -5.0),
        ("forest", 1e9),
        ("mixing", np.nan),
        ("column_gains", np.inf),
        ("predictions", np.nan),
    ],
)
def test_a_damaged_forest_is_refused(name, value, tmp_path):
    agent = manul.Auto(seed=1)
    manul.simulate(agent, noisy_world(3, 800, seed=4))
    kind, parameters, arrays = model_files.contents(agent)
    model_files.write(tmp_path / "x.manul", kind, parameters, {**arrays, name: np.full_like(arrays[name], value)})
    with pytest.raises(manul.errors.FileError):
        manul.load(tmp_path / "x.manul")


def saved_parts(rounds):
    agent = manul.Auto(seed=1)
    manul.simulate(agent, noisy_world(3, rounds, seed=4))
    return model_files.contents(agent)


def refuse(kind, parameters, arrays, path):
    model_files.write(path, kind, parameters, arrays)
    with pytest.raises(manul.errors.FileError):
        manul.load(path)


def test_nodes_with_two_parents_are_refused(tmp_path):
    kind, parameters, arrays = saved_parts(800)
    nodes = arrays["trees"].view(forest.NODE).reshape(forest.TREES, 255)
    for node in range(40):  # a walk over all leaves would take time that grows as Fibonacci's numbers
        nodes[:, node] = (3, 100, node + 1, 0)
    refuse(kind, parameters, arrays, tmp_path / "x.manul")


def test_targets_that_would_overflow_are_refused(tmp_path):
    kind, parameters, arrays = saved_parts(800)
    refuse(kind, parameters, {**arrays, "tree_targets": arrays["tree_targets"] + 2**30}, tmp_path / "x.manul")
