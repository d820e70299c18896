"""Off-policy work on logs whose contexts have names, texts and gaps."""

from itertools import pairwise

import numpy as np
import pytest

import manul
from manul.logs.sample import Sample
from manul.offpolicy import doctor


@pytest.fixture(scope="module")
def log():
    """Oslo wants small actions and Rome large ones; where the city is not known, the age tells."""
    rng = np.random.default_rng(0)
    rome = rng.random(4000) < 0.5
    city = np.where(rome, "Rome", "Oslo").astype(object)
    city[rng.random(4000) < 0.1] = None
    age = np.where(rng.random(4000) < 0.2, np.nan, 20.0 + 40 * rome + rng.normal(size=4000))
    action = rng.uniform(0, 32, 4000)
    loss = np.abs(action - np.where(rome, 24, 8)) / 32
    columns = {"city": city, "age": age, "action": action, "density": np.full(4000, 1 / 32), "loss": loss}
    return manul.Log.from_table(columns, action_range=(0, 32), loss_range=(0, 1))


@pytest.fixture(scope="module")
def best(log):
    return manul.optimize(log.split(0.75)[0], grid=manul.offpolicy.Grid(bandwidths=[1 / 16], leaves=[32]), penalty=1)


def test_the_ranges_are_those_of_the_log(best):
    assert (best.policy.actions, best.policy.outcome.losses) == ((0, 32), (0, 1))


def test_ranges_that_are_given_go_before_those_of_the_log(log):
    best = manul.optimize(
        log, grid=manul.offpolicy.Grid(bandwidths=[1 / 4], leaves=[4]), actions=(-1, 33), losses=(0, 2), penalty=1
    )
    assert (best.policy.actions, best.policy.outcome.losses) == ((-1, 33), (0, 2))


def test_batches_say_their_ranges_too(log):
    grid = manul.offpolicy.Grid(bandwidths=[1 / 4], leaves=[4])
    from_batches = manul.optimize([log.rows(slice(at, at + 1000)) for at in range(0, 4000, 1000)], grid=grid, penalty=1)
    assert from_batches.policy.actions == (0, 32)
    assert len(from_batches.table) == 1


def test_a_log_without_ranges_has_the_usual_ones():
    log = manul.simulate(manul.Cats(leaves=4, bandwidth=1 / 4), manul.worlds.linear(rounds=100)).log
    bare = manul.Log(log.contexts, log.actions, log.densities, log.losses)
    assert manul.optimize(
        bare, grid=manul.offpolicy.Grid(bandwidths=[1 / 4], leaves=[4]), penalty=1
    ).policy.actions == (0, 1)


def test_the_policy_knows_the_cities_by_name(best):
    assert best.policy.distribution({"city": "Oslo"}).mean() < 14
    assert best.policy.distribution({"city": "Rome"}).mean() > 18
    assert best.policy.distribution({"age": 60.0}).mean() > best.policy.distribution({"age": 20.0}).mean()


@pytest.mark.parametrize("estimator", ["ips", "snips", "dr"])
def test_its_estimate_is_near_the_truth(log, best, estimator):
    held_out = log.split(0.75)[1]
    estimate = manul.evaluate(best.policy, held_out, estimator)
    assert estimate.low < 0.12
    assert estimate.value < 0.6 * held_out.losses.mean()


def test_the_batch_forms_of_a_policy_on_names_give_what_the_single_form_gives(log, best):
    rows = next(Sample.of(log).pieces(50))
    policy, named = best.policy, rows.to_dicts()
    each = [policy.distribution(context) for context in named]
    densities = policy.distributions(named).density(rows.actions)
    means, squares = policy.distributions(named).moments()
    assert np.allclose(densities, [d.density(a) for d, a in zip(each, rows.actions, strict=True)])
    assert np.allclose(means, [d.mean() for d in each])
    assert np.allclose(squares, [d.square() for d in each])


def test_an_agent_that_takes_names_itself_is_evaluated_by_names(log):
    agent = manul.Cats(actions=(0, 32), leaves=32, bandwidth=2.0)
    for row, action, loss in zip(log.context_rows(), log.actions, log.losses, strict=True):
        context = {name: value for name, value in row.items() if value is not None}
        agent.learn(context, manul.Decision(action, 1 / 32), loss)
    assert manul.evaluate(agent, log).value < 0.6 * log.losses.mean()


def test_a_function_gets_contexts_with_text_by_name(log):
    def played(context):
        return 24.0 if context.get("city", "Rome") == "Rome" else 8.0

    for bandwidth in (2.0, None):
        assert manul.evaluate(played, log, bandwidth=bandwidth).value < 0.6 * log.losses.mean()


def test_a_function_gets_contexts_of_numbers_as_a_row(log):
    table = {"age": log.fields["age"], "action": log.actions, "density": log.densities, "loss": log.losses}
    numbers = manul.Log.from_table(table, action_range=(0, 32))
    estimate = manul.evaluate(lambda row: 24.0 if row[0] > 40 else 8.0, numbers, bandwidth=2.0)
    assert estimate.value < 0.6 * log.losses.mean()


def test_the_doctor_looks_at_names_too(log):
    assert doctor(log) == []


def test_policies_and_estimates_do_not_depend_on_the_batches(log):
    halves = log.rows(np.argsort(log.fields["city"] == "Rome", kind="stable"))
    grid = manul.offpolicy.Grid(bandwidths=[1 / 16], leaves=[32])
    results = []
    for count in (1, 7, 4000):
        edges = np.linspace(0, 4000, count + 1).astype(int)
        batches = [halves.rows(slice(first, last)) for first, last in pairwise(edges)]
        best = manul.optimize(batches, grid=grid, penalty=1)
        results.append((manul.dumps(best.policy), manul.evaluate(best.policy, batches, "dr")))
    assert results[0] == results[1] == results[2]
