"""A policy knows the rows that it was trained on, and an estimate on them is objected to."""

import copy
import pickle

import numpy as np
import pytest

import manul
from manul.logs.row_hashes import known_rows, row_hashes, sketch_log
from manul.logs.sample import Sample
from manul.offpolicy.evaluation.policy_objections import PolicyObjections
from manul.utils.model_files import trained_on

TITLE = "trained on these rows"


def noise(rows=1500, seed=0, *, named=False, **more):
    """Losses that have nothing to do with anything."""
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=(rows, 3)).astype(np.float32)
    contexts = [{"x": float(x), "city": "ab"[int(y > 0)]} for x, y, _ in numbers] if named else numbers
    return manul.Log(contexts, rng.random(rows), np.ones(rows), rng.random(rows), action_range=(0, 1), **more)


@pytest.fixture(scope="module")
def log():
    return noise()


@pytest.fixture(scope="module")
def policy(log):
    return manul.optimize(log.split(0.6)[0], candidates="auto").policy


def share(policy, log):
    """The share of the rows of a log that a policy was trained on."""
    doubts = PolicyObjections(policy)
    for rows in Sample.of(log).pieces():
        doubts.add(rows)
    return doubts.trained_share


def titles(estimate):
    return [each.title for each in estimate.objections]


def test_an_estimate_on_the_rows_of_the_training_is_an_error(log, policy):
    train, held_out = log.split(0.6)
    estimate = manul.evaluate(policy, train)
    assert not estimate.usable
    assert "The policy was trained on about 100 % of these rows" in str(estimate)
    assert "log.split(0.8)" in str(estimate)
    assert TITLE not in titles(manul.evaluate(policy, held_out))


def test_a_part_of_the_rows_is_a_warning_with_its_share(log, policy):
    part = manul.Log.concat([log.rows(slice(600, 900)), noise(700, seed=9)])
    assert share(policy, part) == pytest.approx(0.3)
    (objection,) = [each for each in manul.evaluate(policy, part).objections if each.title == TITLE]
    assert objection.severity == "warning"
    assert "about 30 %" in objection.sentence


def test_a_comparison_on_the_rows_of_the_training_shows_nothing(log, policy):
    (row,) = manul.compare([policy], log.split(0.6)[0])
    assert TITLE in titles(row)
    assert row.verdict == "not shown"


def test_the_doctor_says_that_a_policy_was_trained_on_the_rows(log, policy):
    findings = [manul.offpolicy.doctor(part, policy) for part in log.split(0.6)]
    assert [[each.severity for each in some if each.title == TITLE] for some in findings] == [["error"], []]


def test_the_best_action_of_a_policy_is_the_policy(log, policy):
    titled = [titles(manul.evaluate(policy.best, part, bandwidth=0.1)) for part in log.split(0.6)]
    assert [TITLE in each for each in titled] == [True, False]


COPIES = {
    "file": lambda policy, folder: (policy.save(folder / "p.manul"), manul.load(folder / "p.manul"))[1],
    "bytes": lambda policy, _: manul.loads(manul.dumps(policy)),
    "pickle": lambda policy, _: pickle.loads(pickle.dumps(policy)),
    "deepcopy": lambda policy, _: copy.deepcopy(policy),
}


@pytest.mark.parametrize("way", COPIES)
def test_a_copy_of_a_policy_knows_the_rows_too(log, policy, way, tmp_path):
    again = COPIES[way](policy, tmp_path)
    assert trained_on(again).text == trained_on(policy).text
    assert share(again, log) == pytest.approx(0.6, abs=0.01)


@pytest.mark.parametrize("named", [False, True])
@pytest.mark.parametrize("rewards", [False, True])
@pytest.mark.parametrize("suffix", [".parquet", ".jsonl", ".csv", ".vw", ".dsjson"])
def test_hashes_are_the_same_through_every_format(suffix, named, rewards, tmp_path):
    log = noise(300, named=named, rewards=rewards)
    if rewards and suffix in (".vw", ".dsjson"):
        log = noise(300, named=named)
    log.write(tmp_path / f"log{suffix}")
    again = next(Sample.of(manul.Log.read(tmp_path / f"log{suffix}")).pieces())
    for contexts in (True, False):
        one, other = (row_hashes(rows, contexts=contexts).tolist() for rows in (again, next(Sample.of(log).pieces())))
        assert one == other


def test_batches_order_and_parts_do_not_matter(log):
    sketch = sketch_log([log.rows(slice(start, start + 100)) for start in range(0, len(log), 100)])
    assert sketch.text == sketch_log(log).text
    shuffled = log.rows(np.random.default_rng(1).permutation(len(log)))
    assert sketch.text == sketch_log(shuffled).text


def test_a_sketch_of_many_rows_estimates_the_share():
    rng = np.random.default_rng(3)
    columns = [rng.random(200_000) for _ in range(2)]
    log = manul.Log(np.empty((200_000, 0)), columns[0], np.ones(200_000), columns[1])
    sketch = sketch_log(log.rows(slice(100_000)))
    assert len(sketch.hashes) == 1024
    assert known_rows(sketch, next(Sample.of(log).pieces(200_000))).mean() == pytest.approx(0.5, abs=0.05)


def prices(width, seed):
    """A few prices, bought or not, with contexts that may tell them apart."""
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(900, width)).astype(np.float32)
    return manul.Log(contexts, rng.integers(1, 5, 900) / 5, np.ones(900), rng.integers(0, 2, 900) * 1.0)


def test_rows_that_cannot_be_told_apart_are_no_evidence():
    tree = manul.policies.train_tree(prices(0, 1), leaves=4, bandwidth=1 / 8)
    assert [share(tree, prices(0, seed)) for seed in (1, 2)] == [0, 0]


def test_contexts_tell_rows_with_equal_actions_and_losses_apart():
    tree = manul.policies.train_tree(prices(3, 1), leaves=4, bandwidth=1 / 8)
    assert trained_on(tree).contexts
    assert [share(tree, prices(3, seed)) for seed in (1, 2)] == [1, 0]


def test_trees_and_policies_without_densities_know_their_rows(log):
    small = log.rows(slice(300))
    tree = manul.policies.train_tree(small, leaves=4, bandwidth=1 / 8)
    restricted = manul.offpolicy.optimize_without_densities(small).policy
    cats = manul.optimize(small, grid=manul.offpolicy.Grid(bandwidths=(1 / 4,), leaves=(4,))).policy
    assert [share(each, log) for each in (tree, restricted, cats)] == pytest.approx([0.2] * 3)


def test_policies_of_named_contexts_and_of_several_knobs_know_their_rows():
    named = noise(400, named=True)
    knobs = {"price": (10, 50), "template": manul.Choice(["a", "b"])}
    agent, contexts = manul.Auto(actions=knobs, epsilon=1.0), np.random.default_rng(0).random((400, 2))
    decisions = agent.decide_many(contexts)
    several = manul.Log(contexts, decisions.actions, decisions.densities, contexts[:, 0], knobs=knobs)
    for log in (named, several):
        assert share(manul.optimize(log.rows(slice(200)), candidates="auto").policy, log) == pytest.approx(0.5)


def test_an_agent_that_was_not_trained_on_a_log_has_the_file_that_it_had():
    assert b"trained_on" not in manul.dumps(manul.Auto())
    assert titles(manul.evaluate(manul.Auto(epsilon=1.0), noise(200))) == []


def test_a_log_that_can_be_read_once_still_trains_trees(log):
    grid = manul.offpolicy.Grid(bandwidths=(1 / 4,), leaves=(4,))
    best = manul.optimize(iter([log]), candidates=["cats"], grid=grid, penalty=1)
    assert trained_on(best.policy) is None
