"""Defects that are planted in clean logs are found, each with what to do; `python -m benchmarks.doctor` measures the rates."""

import numpy as np
import pytest
from benchmarks.doctor import KINDS, LOGGERS, PLANTED, change, fill, log_of, problems, replace_column

import manul
from manul.offpolicy import doctor


@pytest.fixture(scope="module")
def clean():
    return log_of(1, rows=4000, logger="Cats", kind="independent", losses="absolute", learning=True)


def found(log, title, **settings):
    return next((finding for finding in doctor(log, **settings) if finding.title == title), None)


@pytest.mark.parametrize("defect", PLANTED)
def test_a_planted_defect_is_found_with_advice(clean, rng, defect):
    assert problems(clean) == []
    finding = found(PLANTED[defect](clean, rng), defect)
    assert finding is not None
    assert finding.sentence.count(". ") >= 1  # what is wrong, and what to do


@pytest.mark.parametrize("logger", LOGGERS)
@pytest.mark.parametrize("kind", KINDS)
def test_clean_logs_of_all_kinds_pass(logger, kind):
    assert problems(log_of(7, rows=3000, logger=logger, kind=kind)) == []


@pytest.mark.parametrize("learning", [True, False])
def test_binary_losses_that_become_rare_are_no_default(learning):
    assert problems(log_of(5, logger="Auto, fading", kind="independent", losses="binary", learning=learning)) == []


def test_a_leaked_column_is_named(rng):
    rows, action = 3000, rng.random(3000)
    table = {
        "age": rng.random(rows),
        "echo": 2 - action,
        "action": action,
        "density": np.ones(rows),
        "loss": rng.random(rows),
    }
    assert "Column echo predicts the action" in found(manul.Log.from_table(table), "leaked action").sentence


def test_an_outlier_is_no_leaked_loss(rng):
    losses, contexts = 0.001 * rng.random(2000), np.zeros((2000, 2), np.float32)
    losses[17], contexts[17, 0] = 1.0, 1.0
    log = manul.Log(contexts, rng.random(2000), np.ones(2000), losses)
    assert found(log, "leaked loss") is None


def test_a_short_run_of_a_common_loss_is_no_default(clean, rng):
    assert found(fill(clean, rng, 1.0, rows=4), "end filled with a default") is None
    half = change(clean, losses=np.where(rng.random(len(clean)) < 0.9, 0.0, clean.losses))
    assert found(fill(half, rng, 1.0, rows=20), "end filled with a default") is None


def test_a_column_that_flips_once_is_drift_and_a_counter_is_not(clean):
    middle = np.arange(len(clean)) > len(clean) // 2
    assert "feature 2" in found(replace_column(clean, middle), "context drift").sentence
    assert found(replace_column(clean, np.arange(len(clean))), "context drift") is None


@pytest.mark.parametrize("size", [1000, 4096])
def test_batches_change_no_finding(clean, rng, size):
    for defect in ("repeated ids", "time out of order", "end filled with a default", "leaked action"):
        log = PLANTED[defect](clean, rng)
        assert doctor([log.rows(slice(at, at + size)) for at in range(0, len(log), size)]) == doctor(log)


def test_estimated_densities_are_not_tested_for_leaks(rng):
    contexts = rng.random((2000, 1), np.float32)
    log = manul.Log(contexts, contexts[:, 0].astype(np.float64), np.ones(2000), rng.random(2000))
    assert found(log, "leaked action") is not None
    assert found(manul.offpolicy.estimate_densities(log), "leaked action") is None


def test_the_weights_of_a_policy_are_tested(clean):
    near, narrow = manul.Cats(leaves=8, bandwidth=1 / 4), manul.Cats(leaves=2, bandwidth=1 / 500, epsilon=0.0)
    note = found(clean, "weights of the policy", policy=near)
    assert (note.severity, "mean weight" in note.sentence) == ("note", True)
    assert found(clean, "small effective sample", policy=narrow).severity == "error"
    halved = change(clean, densities=clean.densities / 2)
    assert found(halved, "wrong weights", policy=near).severity == "error"


def test_a_policy_that_the_log_does_not_support_is_an_error(clean):
    never = manul.Log(clean.contexts, 0.2 * clean.actions, np.full(len(clean), 5.0), clean.losses)
    upper = manul.Cats(leaves=2, bandwidth=1 / 4, epsilon=0.0)
    assert found(never, "no support", policy=upper).severity == "error"
    little = manul.Cats(leaves=2, bandwidth=1 / 4, epsilon=0.01)
    assert "instead of 1" in found(never, "no support", policy=little).sentence


def test_one_heavy_row_is_a_warning(rng):
    densities = np.ones(5000)
    densities[40] = 1 / 400
    log = manul.Log(rng.random((5000, 2), np.float32), rng.random(5000), densities, rng.random(5000))
    finding = found(log, "one heavy row", policy=manul.Cats(leaves=2, bandwidth=1 / 2))
    assert "Row 40 has 7 % of the weight" in finding.sentence
