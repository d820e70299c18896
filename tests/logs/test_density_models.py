"""Logs without densities: they are estimated on reading, for contexts of any kind, and the mark stays."""

import json

import numpy as np
import pytest

import manul
from manul.errors import FileError, InputError, ParameterError
from manul.logs.log import Log
from manul.offpolicy import estimate_densities


def history(rng, rows=2000):
    """Actions near 0.2 in Oslo and near 0.8 in Rome, without densities."""
    city = np.where(rng.random(rows) < 0.5, "Oslo", "Rome")
    action = np.clip(np.where(city == "Oslo", 0.2, 0.8) + 0.05 * rng.standard_normal(rows), 0, 1)
    return {"city": city.tolist(), "action": action, "loss": rng.random(rows)}


def write(path, table):
    rows = [dict(zip(table, values, strict=True)) for values in zip(*map(list, table.values()), strict=True)]
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".csv":
        lines = [",".join(table), *(",".join(map(str, row.values())) for row in rows)]
        path.write_text("\n".join(lines) + "\n")
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table(table), path)


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_file_without_densities_is_read_with_estimated_ones(tmp_path, rng, suffix):
    path = tmp_path / f"history{suffix}"
    write(path, history(rng))
    with pytest.raises(FileError, match="density"):
        Log.read(path)
    log = Log.read(path, density="estimate")
    assert log.densities_estimated
    assert np.median(log.densities) == pytest.approx(5, rel=0.6)  # a normal density of deviation 0.05 is 5.6 on average
    log.write(tmp_path / "copy.parquet")
    assert Log.read(tmp_path / "copy.parquet").densities_estimated


def test_the_error_says_how_to_estimate(rng):
    with pytest.raises(FileError, match=r"table has no column density, only .*Estimate it with density='estimate'"):
        Log.from_table(history(rng, 10))


def test_the_mean_weight_of_the_model_itself_is_1(rng):
    log = Log.from_table(history(rng, 4000), density="estimate")
    oslo = log.fields["city"] == "Oslo"
    inside = np.abs(log.actions - np.where(oslo, 0.2, 0.8)) < 0.05
    assert np.mean(inside / 0.1 / log.densities) == pytest.approx(1, abs=0.15)


def test_logged_densities_are_replaced_and_floors_dropped(rng):
    given = {**history(rng), "density": np.full(2000, 1.0), "floor": np.full(2000, 0.5)}
    estimated = Log.from_table(given, density="estimate")
    assert estimated.floors is None
    assert estimated.densities.max() > 3


def test_rows_of_numbers_and_ranges_of_rounds_work(rng):
    lows = rng.random(2000)
    ones = np.ones(2000)
    log = manul.Log(
        rng.random((2000, 2), np.float32), 10 * lows + rng.random(2000), ones, ones, 10 * lows, 10 * lows + 1
    )
    densities = estimate_densities(log, actions=(0.0, 11.0)).densities
    assert np.median(densities) == pytest.approx(1, abs=0.3)


def test_sparse_contexts_work(tmp_path, rng):
    actions = rng.random(600)
    rows = [f"ca {0.4 * a if i % 2 else 0.6 + 0.4 * a}:0.5:1 |x odd:{i % 2} b\n" for i, a in enumerate(actions)]
    (tmp_path / "log.vw").write_text("".join(rows))
    densities = Log.read(tmp_path / "log.vw", density="estimate").densities
    assert np.median(densities) == pytest.approx(2.5, rel=0.4)


def test_the_estimate_is_the_same_every_time(rng):
    log = Log.from_table(history(rng, 500), density="estimate")
    assert (estimate_densities(log).densities == log.densities).all()
    assert (estimate_densities(log, seed=1).densities != log.densities).any()


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_the_shortest_logs_have_densities(rng, rows):
    assert (Log.from_table(history(rng, rows), density="estimate").densities > 0).all()


def test_bad_input_is_one_sentence(rng):
    table = history(rng, 10)
    with pytest.raises(ParameterError, match="density must be 'logged' or 'estimate', got 'guess'"):
        Log.from_table(table, density="guess")
    with pytest.raises(InputError, match=r"actions must be in \[0, 0.1\]"):
        estimate_densities(Log.from_table({**table, "density": table["loss"]}), actions=(0.0, 0.1))
    with pytest.raises(ParameterError, match="density model must be one of critic, got 'oracle'"):
        estimate_densities(Log.from_table({**table, "density": table["loss"]}), model="oracle")


def test_an_invalid_row_is_still_refused_or_skipped(rng):
    table = history(rng, 50)
    table["action"][3] = np.nan
    with pytest.raises(FileError, match="row 4: action must be a finite number"):
        Log.from_table(table, density="estimate")
    assert Log.from_table(table, density="estimate", skip_bad=True).skipped == 1


def test_the_model_is_calibrated():
    agent = manul.Cats(leaves=64, bandwidth=1 / 32, epsilon=0.1)
    log = manul.simulate(agent, manul.worlds.linear(rounds=6000, width=4)).log
    assert np.mean(1 / estimate_densities(log).densities) == pytest.approx(1, abs=0.2)  # 1.5 without the calibration
