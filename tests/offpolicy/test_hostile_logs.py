"""Logs and folders that a stranger brings: wrong densities, empty batches, other contexts, damaged checkpoints."""

import numpy as np
import pytest

import manul
from manul.errors import FileError, InputError, ParameterError

SMALL = {"candidates": ["auto", "cats"], "grid": manul.offpolicy.Grid(bandwidths=[1 / 8], leaves=[8])}


def uniform_log(rows=600, *, scale=1.0, **columns):
    rng = np.random.default_rng(0)
    actions, contexts = rng.random(rows), rng.random((rows, 2)).astype(np.float32)
    losses = np.abs(actions - contexts[:, 0])
    given = {"contexts": contexts, "actions": actions, "densities": np.full(rows, scale), "losses": losses}
    return manul.Log(**given | columns)


@pytest.mark.parametrize("columns", [{"scale": 0.1}, {"actions": np.full(600, 0.5)}])
def test_nothing_is_proven_by_a_log_with_wrong_densities_or_one_action(columns):
    verdict = manul.optimize(uniform_log(**columns), **SMALL).verdict
    assert verdict.status == "not shown"
    assert str(verdict).startswith("This log cannot show a gain over the logged policy. ")


def test_nothing_is_proven_by_estimated_densities():
    log = uniform_log(floors=np.ones(600))
    assert manul.optimize(log, **SMALL).verdict.status == "proven"
    verdict = manul.optimize(log.with_estimated_densities(log.densities), **SMALL).verdict
    assert verdict.status == "likely"
    assert "The densities of this log were estimated, so nothing is proven." in str(verdict)


def test_an_empty_first_batch_declares_its_ranges():
    log = uniform_log(losses=np.full(600, -15.0), loss_range=(-20.0, -10.0))
    both = [str(manul.optimize(batches, **SMALL)) for batches in (log, [log.rows(slice(0)), log])]
    assert both[0] == both[1]


def test_a_first_batch_without_contexts_does_not_hide_those_of_the_next():
    log = uniform_log()
    bare = uniform_log(50, contexts=np.empty((50, 0), np.float32))
    columns = {"city": ["a", "b"] * 300, "action": log.actions, "density": log.densities, "loss": log.losses}
    best = manul.optimize([bare, manul.Log.from_table(columns)], **SMALL)
    assert best.policy.distribution({"city": "a"}).density(0.5) >= 0


def test_a_run_does_not_resume_on_a_log_with_other_contexts(tmp_path):
    log = uniform_log()
    best = manul.optimize(log, resume=tmp_path, **SMALL)
    cut = [log.rows(slice(7)), log.rows(slice(7, None))]
    assert str(manul.optimize(cut, resume=tmp_path, **SMALL)) == str(best)
    with pytest.raises(ParameterError, match="different log"):
        manul.optimize(uniform_log(contexts=log.contexts[::-1]), resume=tmp_path, **SMALL)


@pytest.mark.parametrize("text", ["[]", "{}", "1", '{"folder": "x", "position": {}}'])
@pytest.mark.parametrize("phase", ["settings", "in-order", "values", "all-rows", "verdict-5"])
def test_a_damaged_checkpoint_is_one_sentence(tmp_path, phase, text):
    manul.optimize(uniform_log(300), resume=tmp_path, **SMALL)
    path = next(tmp_path.rglob(f"{phase}.json"))
    path.write_text(text)
    with pytest.raises((FileError, ParameterError), match=r"annot (read the checkpoint|resume from) .*\."):
        manul.optimize(uniform_log(300), resume=tmp_path, **SMALL)


@pytest.mark.parametrize("floor", [5.0, -1.0, np.inf])
def test_a_floor_above_the_density_or_below_0_is_refused(floor):
    log = uniform_log(floors=np.full(600, floor))
    for judge in (manul.evaluate, lambda policy, log, bandwidth: manul.compare([policy], log, bandwidth=bandwidth)):
        with pytest.raises(InputError, match="floor must be from 0 to the density of its row, or NaN"):
            judge(lambda _: 0.5, log, bandwidth=0.1)


def test_a_tiny_floor_says_no_more_than_none():
    tiny, none = (manul.optimize(uniform_log(floors=each), **SMALL).verdict for each in (np.full(600, 1e-300), None))
    assert (tiny.low, tiny.high) == (pytest.approx(none.low, abs=0.01), pytest.approx(none.high, abs=0.01))


@pytest.mark.parametrize("density", [1e-300, 1e-310])
def test_densities_beyond_the_usable_ones_are_named_by_slope_and_doctor(density):
    log = uniform_log(scale=density)
    with pytest.raises(InputError, match="density must be in"):
        manul.evaluate(lambda _: 0.5, log)
    assert any("densities are not in" in finding.sentence for finding in manul.offpolicy.doctor(log))


def test_a_candidate_without_matching_rows_has_no_estimate():
    table = manul.optimize(uniform_log(1)).table
    assert all(np.isnan(row.estimate) for row in table if row.candidate == "auto")
