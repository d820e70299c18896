"""The mark of logs whose densities were estimated."""

import warnings

import numpy as np
import pytest

import manul
from manul.errors import InputError
from manul.logs.log import Log, LogWriter
from manul.logs.sample import Sample
from manul.offpolicy import estimate_densities
from tests.logs.formats.logs import dense, own, rows


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".json", ".csv.gz"])
def test_the_mark_survives_files(tmp_path, suffix):
    log = dense(densities_estimated=True)
    log.write(tmp_path / f"log{suffix}")
    again = Log.read(tmp_path / f"log{suffix}")
    assert again.densities_estimated
    assert rows(again) == rows(log)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl", ".json", ".vw"])
def test_logged_densities_are_not_marked(tmp_path, suffix):
    dense().write(tmp_path / f"log{suffix}")
    assert not Log.read(tmp_path / f"log{suffix}").densities_estimated


def test_the_column_estimated_density_is_a_mark(tmp_path):
    (tmp_path / "log.csv").write_text("action,estimated_density,loss,age\n0.5,1,0.25,7\n")
    log = Log.read(tmp_path / "log.csv")
    assert log.densities_estimated
    assert next(log.context_rows()) == {"age": 7.0}


def test_beside_densities_estimated_density_is_a_column_of_the_context():
    log = own(estimated_density=[1, 2, 3])
    assert not log.densities_estimated
    assert next(log.context_rows())["estimated_density"] == 1.0


def test_vowpal_wabbits_text_cannot_store_the_mark_and_says_so(tmp_path):
    with pytest.warns(UserWarning, match="log.vw omits that densities were estimated"):
        dense(densities_estimated=True).write(tmp_path / "log.vw")


def test_parts_and_pieces_keep_the_mark():
    log = dense(densities_estimated=True)
    assert log.rows(np.array([1, 2])).densities_estimated
    assert log.split(0.5)[1].densities_estimated
    assert Log.concat([log, log]).densities_estimated
    assert next(Sample.of(log).pieces()).estimated


def test_logged_and_estimated_densities_do_not_mix(tmp_path):
    with pytest.raises(InputError, match="all have logged densities or all have estimated ones"):
        Log.concat([dense(), dense(densities_estimated=True)])
    with LogWriter(tmp_path / "log.csv") as writer:
        writer.write(dense())
        with pytest.raises(InputError, match="logged densities"):
            writer.write(dense(densities_estimated=True))


def test_estimated_densities_are_marked():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert estimate_densities(dense(rows=50), actions=(0, 1)).densities_estimated


def test_the_doctor_finds_rounded_actions_whose_densities_were_estimated():
    rng = np.random.default_rng(0)
    table = {"size": rng.random(600), "action": rng.integers(1, 9, 600) / 10, "loss": rng.random(600)}
    log = Log.from_table(table, action_range=(0, 1), loss_range=(0, 1), density="estimate")
    assert "rounded actions" in [finding.title for finding in manul.offpolicy.doctor(log)]
