"""Defects that are planted in clean logs are found, each with what to do; `python -m benchmarks.doctor` measures the rates."""

import numpy as np
import pytest
from benchmarks.doctor import KINDS, LOGGERS, PLANTED, ROWS, change, fill, log_of, problems, replace_column
from benchmarks.hostile_logs import HOSTILE

import manul
from manul.offpolicy import doctor


@pytest.fixture(scope="module")
def clean():
    return log_of(1, rows=4000, logger="Cats", kind="independent", losses="absolute", learning=True)


def found(log, title, **settings):
    return next((finding for finding in doctor(log, **settings) if finding.title == title), None)


SEEN = [name for name, defect in PLANTED.items() if defect.rows == ROWS and defect.losses == "absolute"]


@pytest.mark.parametrize("name", SEEN)
def test_a_planted_defect_is_found_with_advice(clean, rng, name):
    defect = PLANTED[name]
    findings = [finding for finding in doctor(defect.plant(clean, rng)) if finding.title in defect.titles]
    assert [finding.sentence.count(". ") >= 1 for finding in findings] == [True]  # what is wrong, and what to do


def test_a_clean_log_has_no_problem(clean):
    assert doctor(clean) == []


@pytest.fixture(scope="module")
def of_auto():
    return log_of(1003, rows=4000, logger="Auto, fading", kind="independent", losses="absolute", learning=True)


@pytest.mark.parametrize("name", [name for name in SEEN if "Auto, fading" in PLANTED[name].loggers])
def test_a_defect_is_found_in_a_log_that_hardly_explores(of_auto, rng, name):
    titles = {finding.title for finding in doctor(PLANTED[name].plant(of_auto, rng))}
    assert titles & {*PLANTED[name].titles}


@pytest.mark.parametrize("logger", ["Cats", "Auto, epsilon .05", "uniform"])
def test_zeros_in_place_of_large_losses_are_found(rng, logger):
    log = log_of(1, rows=4000, logger=logger, kind="independent", losses="positive", learning=True)
    assert problems(log) == []
    assert problems(PLANTED["zeros for large losses"].plant(log, rng)) == ["losses filled with a default"]


def test_densities_that_are_10_percent_too_large_are_found_if_enough_rows_explored(rng):
    log = log_of(1, rows=2000, logger="uniform", kind="independent", losses="absolute", learning=True)
    assert {"missing exploration", "actions with no support"} & {
        *problems(PLANTED["densities 10 % too large"].plant(log, rng))
    }


@pytest.mark.whole
@pytest.mark.parametrize("world", HOSTILE)
def test_what_is_natural_in_a_hostile_world_is_no_problem(world):
    titles = problems(HOSTILE[world](1))
    assert [title for title in titles if title != "small effective sample"] == []


@pytest.mark.parametrize("seed", [807, 827, 829])
def test_rare_losses_look_neither_shifted_nor_like_rewards(seed):
    assert problems(HOSTILE["rare"](seed)) == []


def test_shuffled_losses_get_a_note_because_a_world_where_nothing_matters_looks_the_same(clean, rng):
    note = found(PLANTED["shuffled losses"].plant(clean, rng), "unexplained losses")
    assert (note.severity, note.sentence.endswith("otherwise all is well.")) == ("note", True)


def test_a_policy_worse_than_random_gets_a_warning_that_says_so():
    log = log_of(1, rows=3000, logger="Cats, epsilon .2", kind="independent", losses="binary", learning=True)
    warning = found(change(log, losses=1 - log.losses), "explored actions cost less")
    assert (warning.severity, "or the logged policy is worse than random." in warning.sentence) == ("warning", True)


def test_a_log_of_rewards_is_told_about_rewards(clean):
    def rewards(values):
        return manul.Log(clean.contexts, clean.actions, clean.densities, -values, rewards=True, reward_range=(0.0, 1.0))

    assert doctor(rewards(1 - clean.losses)) == []
    assert (
        "The rewards depend on the action of the row before"
        in found(rewards(1 - np.roll(clean.losses, 1)), "shifted rewards").sentence
    )
    assert found(rewards(clean.losses), "explored actions earn more") is not None
    assert (
        "are 0.8, the smallest" in found(rewards(np.maximum(1 - clean.losses, 0.8)), "rewards end at a floor").sentence
    )


def test_a_mirrored_log_is_a_correct_log_of_a_mirrored_world(clean):
    assert doctor(change(clean, actions=1 - clean.actions)) == []


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


@pytest.mark.parametrize(
    "defect",
    ["repeated ids", "time out of order", "end filled with a default", "leaked action", "shuffled contexts"],
)
def test_batches_change_no_finding(clean, rng, defect):
    log = PLANTED[defect].plant(clean, rng)
    assert doctor([log.rows(slice(at, at + 1000)) for at in range(0, len(log), 1000)]) == doctor(log)


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


@pytest.mark.parametrize("rows", [1, 2, 5, 40, 2000])
def test_equal_losses_are_no_problem_however_many_there_are(rows):
    log = log_of(1, rows=4000, logger="Cats", kind="independent", losses="absolute", learning=True).rows(slice(0, rows))
    titles = problems(change(log, losses=np.full(rows, 0.5)))
    assert [title for title in titles if title != "small effective sample"] == []
