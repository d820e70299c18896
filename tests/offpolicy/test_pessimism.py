"""Optimization without densities: better than the history, and no estimate that is wrong."""

import numpy as np
import pytest
from benchmarks.without_densities import history, true_loss

import manul
from manul.errors import FileError, InputError
from manul.offpolicy import Restrained, optimize_without_densities
from manul.utils import model_files


def log_of(kind, rows=2000, seed=0):
    contexts, actions, losses = history(kind, rows, seed)
    return manul.Log(contexts, actions, np.ones(rows), losses)


@pytest.fixture(scope="module")
def rounded():
    return optimize_without_densities(log_of("rounded"))


@pytest.fixture(scope="module")
def gaussian():
    return optimize_without_densities(log_of("gaussian", 5000))


def test_a_rounded_history_is_improved_but_not_judged(rounded):
    assert true_loss(rounded.policy, 0)[0] < 0.12  # the history loses 0.15, the argmin of the critic 0.49
    assert "only 8 distinct actions in 2,000 rows" in str(rounded)


def test_a_gaussian_history_is_improved_and_judged_or_refused(gaussian):
    noiseless, noisy = true_loss(gaussian.policy, 0)
    assert noiseless < 0.06  # the history loses 0.155
    assert gaussian.estimate is None or gaussian.estimate.low <= noisy <= gaussian.estimate.high


def test_a_saved_policy_plays_the_same(gaussian, tmp_path, rng):
    gaussian.save(tmp_path / "policy.manul")
    loaded = manul.load(tmp_path / "policy.manul")
    contexts, actions = rng.random((50, 4), np.float32), rng.random(50)
    for policy in (gaussian.policy, loaded):
        single = [
            policy.distribution(context).density(action) for context, action in zip(contexts, actions, strict=True)
        ]
        assert policy.distributions(contexts).density(actions) == pytest.approx(single)
    assert (
        loaded.distributions(contexts).density(actions) == gaussian.policy.distributions(contexts).density(actions)
    ).all()


def test_the_moments_are_those_of_the_distribution(gaussian, rng):
    contexts = rng.random((5, 4), np.float32)
    each = [gaussian.policy.distribution(context) for context in contexts]
    means, squares = gaussian.policy.distributions(contexts).moments()
    assert means == pytest.approx([one.mean() for one in each])
    assert squares == pytest.approx([one.square() for one in each])


def test_named_contexts_work(rng):
    city = np.where(rng.random(1500) < 0.5, "Oslo", "Rome")
    best = np.where(city == "Oslo", 0.3, 0.7)
    actions = np.clip(best + 0.15 + 0.1 * rng.standard_normal(1500), 0, 1)
    table = {"city": city, "action": actions, "loss": np.abs(actions - best)}
    policy = optimize_without_densities(manul.Log.from_table(table, density="estimate")).policy
    assert policy.best({"city": "Oslo"}) < 0.45 < 0.55 < policy.best({"city": "Rome"})


def test_a_damaged_file_is_refused(gaussian):
    kind, parameters, arrays = model_files.contents(gaussian.policy)
    data = model_files.encode(kind, parameters, {**arrays, "knots": arrays["knots"][::-1].copy()})
    with pytest.raises(FileError):
        manul.loads(data)


def test_an_empty_log_and_a_bad_loss_are_refused():
    log = log_of("gaussian", 10)
    with pytest.raises(InputError, match="no rows"):
        optimize_without_densities(log.rows(slice(0, 0)))
    with pytest.raises(InputError, match="loss"):
        optimize_without_densities(log, losses=(0.0, 0.01))


def test_a_log_of_rewards_is_said_to_have_earned_them():
    result = Restrained(
        policy=None,
        estimate=None,
        refusal="The log is too short.",
        logged=-2.5,
        outcome=manul.Outcome.of(rewards="auto"),
    )
    assert str(result) == "The log earned 2.5 on average. The log is too short."


def test_the_result_of_a_log_of_rewards_knows_it():
    table = {"size": [0.1, 0.2, 0.3, 0.4], "action": [0.1, 0.2, 0.1, 0.2], "reward": [0.5, 0.25, 0.5, 0.25]}
    log = manul.Log.from_table(table, density="estimate", loss_range=(-1, 0))
    assert str(optimize_without_densities(log)).startswith("The log earned 0.375 on average.")
