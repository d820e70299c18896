"""Estimates from estimated densities: refused if the weights do not average 1, and never by ips."""

import numpy as np
import pytest

import manul
from manul.errors import InputError, ParameterError


@pytest.fixture(scope="module")
def estimated():
    agent = manul.Cats(leaves=8, bandwidth=1 / 8, epsilon=0.2)
    log = manul.simulate(agent, manul.worlds.linear(rounds=3000, width=2)).log
    return manul.offpolicy.estimate_densities(log)


def test_an_estimate_near_the_logged_actions_is_given(estimated):
    estimate = manul.evaluate(lambda _: 0.5, estimated, bandwidth=1 / 2)
    assert 0.8 < estimate.mean_weight < 1.25


def test_a_policy_that_the_log_never_played_is_refused(rng):
    rows = 2000
    log = manul.Log(rng.random((rows, 2), np.float32), 0.3 * rng.random(rows), np.ones(rows), rng.random(rows))
    log = manul.offpolicy.estimate_densities(log)
    with pytest.raises(InputError, match=r"hardly ever played what this policy plays \(mean weight 0.*\); no estimate"):
        manul.evaluate(lambda _: 0.35, log, bandwidth=0.1)


def test_ips_is_refused(estimated):
    with pytest.raises(ParameterError, match="estimator ips needs logged densities"):
        manul.evaluate(lambda _: 0.5, estimated, "ips", bandwidth=1 / 4)


def test_evaluate_and_compare_refuse_rounded_actions_like_optimize():
    log = manul.simulate(manul.Cats(leaves=4, bandwidth=1 / 4), manul.worlds.linear(rounds=500, width=2)).log
    rounded = manul.Log(log.contexts, log.actions.round(1), np.ones(500), log.losses, densities_estimated=True)
    sentence = "The log has only 10 distinct actions in 500 rows, and says nothing about those between; no estimate."
    with pytest.raises(InputError, match=sentence):
        manul.evaluate(manul.Cats(leaves=4, bandwidth=1 / 2), rounded)
    (row,) = manul.compare([manul.Cats(leaves=4, bandwidth=1 / 2)], rounded)
    assert [objection.sentence for objection in row.objections] == [sentence]
    assert manul.optimize(rounded).without_densities.refusal == sentence
