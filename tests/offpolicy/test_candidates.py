"""`optimize` chooses between the critic and trees, and says what the log shows of the gain."""

import signal
import subprocess
import sys

import numpy as np
import pytest

import manul
from manul.errors import InputError, ParameterError
from manul.offpolicy import cross_fitting
from manul.offpolicy.optimization import checkpoint

SMALL = manul.offpolicy.Grid(bandwidths=[1 / 16], leaves=[16, 64])


def outcome(best):
    return best.table, manul.dumps(best.policy), best.verdict


def with_floors(log, epsilon):
    floors = np.full(len(log), epsilon)
    return manul.Log(log.contexts, log.actions, log.densities, log.losses, floors=floors)


@pytest.fixture(scope="module")
def best(log):
    return manul.optimize(with_floors(log, 0.2), candidates=("auto", "cats"), grid=SMALL)


def test_the_critic_is_the_policy(best, log):
    assert isinstance(best.policy, manul.Auto)
    assert best.chosen.candidate == "auto"
    assert best.policy.bandwidth == best.bandwidth
    assert best.policy.report().rounds == len(log)


def test_the_policy_plays_its_bandwidth_and_goes_on_learning(best, log):
    policy = manul.loads(manul.dumps(best.policy))
    low, high = policy.distribution(log.contexts[0]).densest()
    assert high - low == pytest.approx(2 * best.bandwidth)
    policy.learn(log.contexts[0], policy.decide(log.contexts[0]), 0.5)
    assert policy.report().rounds == len(log) + 1


def test_the_policy_is_better_than_the_logged_one(best, log):
    world = manul.worlds.linear(rounds=3000, width=3)
    played = best.policy.decide_many(log.contexts).actions
    assert np.abs(played - world.targets).mean() < 0.5 * log.losses.mean()
    assert best.verdict.status == "proven"
    assert "proven by this log: at least 0.0" in str(best)


def test_the_logged_policy_and_its_greedy_part_are_in_the_table(best, log):
    logged, greedy = best.table.references
    assert logged.estimate == pytest.approx(log.losses.mean())
    inside = log.densities > 0.3
    assert greedy.estimate == pytest.approx(log.losses[inside].mean(), abs=0.002)


def test_without_floors_there_is_no_greedy_part(log):
    bare = manul.Log(log.contexts, log.actions, log.densities, log.losses)
    best = manul.optimize(bare, candidates="auto")
    assert [row.candidate for row in best.table.references] == ["logged"]


def test_one_small_density_changes_nothing(log):
    densities = log.densities.copy()
    densities[1234] = 0.001
    changed = manul.Log(log.contexts, log.actions, densities, log.losses)
    for settings in ({"candidates": "auto"}, {"grid": SMALL}):
        before, after = (manul.optimize(each, **settings) for each in (log, changed))
        assert (before.bandwidth, before.leaves) == (after.bandwidth, after.leaves)


def test_the_measured_penalty_is_that_of_clipped_weights(log):
    row = manul.optimize(log, grid=manul.offpolicy.Grid(cells=[(1 / 8, 16)])).chosen
    agent, weights = manul.Cats(leaves=16, bandwidth=1 / 8, epsilon=0), []
    for context, action, density, loss in zip(log.contexts, log.actions, log.densities, log.losses, strict=True):
        weights.append(min(agent.distribution(context).density(action) / density, np.sqrt(3000)))
        agent.learn(context, manul.Decision(action, density), loss)
    value = (weights * log.losses).sum() / sum(weights)
    size = np.square(weights).sum() / sum(weights) / 3000
    assert row.estimate == pytest.approx(value)
    assert row.penalty == pytest.approx(np.sqrt(value * size) + size)


def test_auto_may_be_one_of_the_agents_of_a_grid(log):
    best = manul.optimize(log.rows(slice(500)), grid=manul.offpolicy.Grid(others=["auto"]))
    assert best.bandwidth is None
    assert isinstance(best.policy, manul.Auto)


@pytest.mark.parametrize("size", [77, 1000])
def test_batches_and_threads_change_nothing(log, monkeypatch, size):
    monkeypatch.setattr(cross_fitting, "MANY", 1000)
    batches = [log.rows(slice(first, first + size)) for first in range(0, len(log), size)]
    settings = {"candidates": ("auto", "cats"), "grid": SMALL}
    assert outcome(manul.optimize(batches, threads=1, **settings)) == outcome(manul.optimize(log, **settings))


def test_the_policy_of_a_log_with_fields_takes_fields():
    rng = np.random.default_rng(0)
    kinds, actions = rng.choice(["left", "right"], 1500), rng.random(1500)
    columns = {"kind": kinds, "action": actions, "density": np.ones(1500), "loss": abs(actions - (kinds == "right"))}
    policy = manul.optimize(manul.Log.from_table(columns)).policy
    assert policy.best({"kind": "left"}) < 0.2
    assert policy.best({"kind": "right"}) > 0.8


def test_ranges_of_rounds_and_units_are_kept():
    world = manul.worlds.ranges(rounds=600)
    log = manul.simulate(manul.Cats(leaves=8, bandwidth=1 / 32, epsilon=0.2), world).log
    best = manul.optimize(log, candidates="auto")
    within = float(log.lows[0]), float(log.highs[0])
    edges = best.policy.distribution(log.contexts[0], within).edges
    assert within[0] <= edges[0] < edges[-1] <= within[1]


def test_losses_and_actions_of_any_unit_give_the_same_choice(log):
    wide = manul.Log(log.contexts, log.actions * 32 - 8, log.densities / 32, log.losses * 4 - 1)
    ours = manul.optimize(log, candidates="auto")
    theirs = manul.optimize(wide, candidates="auto", actions=(-8, 24), losses=(-1, 3))
    assert theirs.bandwidth == 32 * ours.bandwidth
    assert theirs.verdict.gain == pytest.approx(4 * ours.verdict.gain, rel=0.1)


# Dies as soon as it has written a file of the given name.
SCRIPT = """
import os, signal, sys, manul
from manul.offpolicy import cross_fitting
from manul.offpolicy.optimization import checkpoint
cross_fitting.MANY, cross_fitting.CHUNK, checkpoint.SECONDS, checkpoint.SHARE = 1000, 200, 0, float("inf")
write_whole = checkpoint.write_whole
def write_and_die(path, text):
    write_whole(path, text)
    if path.name in sys.argv[4:]:
        os.kill(os.getpid(), signal.SIGKILL)
checkpoint.write_whole = write_and_die
best = manul.optimize(manul.Log.read(sys.argv[1]), resume=sys.argv[2])
best.save(sys.argv[3])
"""


@pytest.mark.whole
def test_a_killed_run_ends_with_the_same_bytes(log, tmp_path):
    log.write(tmp_path / "log.parquet")
    whole, killed = tmp_path / "whole.manul", tmp_path / "killed.manul"
    for folder, target, last in (("one", whole, []), ("two", killed, ["shuffled.json"]), ("two", killed, [])):
        command = [sys.executable, "-c", SCRIPT, tmp_path / "log.parquet", tmp_path / folder, target, *last]
        ended = subprocess.run(command, check=False).returncode
        assert (ended, target.exists()) == ((-signal.SIGKILL, False) if last else (0, True))
    assert killed.read_bytes() == whole.read_bytes()
    assert killed.with_suffix(".csv").read_bytes() == whole.with_suffix(".csv").read_bytes()


def test_another_log_is_not_resumed(log, tmp_path, monkeypatch):
    monkeypatch.setattr(checkpoint, "SECONDS", 0.0)
    manul.optimize(log.rows(slice(500)), candidates="auto", resume=tmp_path)
    with pytest.raises(ParameterError, match="different log"):
        manul.optimize(log.rows(slice(600)), candidates="auto", resume=tmp_path)
    with pytest.raises(ParameterError, match="different settings"):
        manul.optimize(log.rows(slice(500)), candidates="auto", seed=1, resume=tmp_path)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"candidates": ["trees"]}, "candidates must be 'auto' or 'cats', got 'trees'"),
        ({"candidates": []}, "candidates must have at least one of 'auto' and 'cats', got none"),
        ({"candidates": "auto", "grid": SMALL}, "grid has trees, but candidates has no 'cats'"),
    ],
)
def test_candidates_that_cannot_work_are_refused(log, settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        manul.optimize(log, **settings)


def test_an_iterator_is_refused_because_the_log_is_read_often(log):
    with pytest.raises(ParameterError, match="optimize reads the log twice, but log is an iterator"):
        manul.optimize(iter([log]))


def test_an_invalid_row_is_refused_before_anything_is_learned(log, tmp_path):
    losses = log.losses.copy()
    losses[20] = 1.5
    with pytest.raises(InputError, match=r"got 1.5 in row 20"):
        manul.optimize(manul.Log(log.contexts, log.actions, log.densities, losses), resume=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_a_short_log_gives_a_policy_and_no_proof(log, rows):
    best = manul.optimize(log.rows(slice(rows)))
    assert best.verdict.status != "proven"
    assert 0 <= best.policy.decide(log.contexts[0]).action <= 1
