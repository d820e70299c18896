"""A grown table is like the one it was grown from, only larger."""

import numpy as np
import pyarrow as pa
import pytest
from benchmarks.bng import compare, relative_correlations, synthetic_table

from manul.errors import InputError, ParameterError
from manul.paper import datasets
from manul.paper.datasets.correlations import Cells, reorder
from manul.worlds.tables.table_columns import columns

ROWS = 20_000


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    size = rng.lognormal(1.0, 0.6, ROWS)
    rooms = np.round(size + rng.normal(0, 1, ROWS)).clip(1)
    city = np.where(rng.random(ROWS) < 0.3, "Oslo", "Rome")
    age = rng.uniform(0, 100, ROWS)
    price = 3 * size + 4 * (city == "Oslo") - 0.05 * age + rng.normal(0, 1, ROWS)
    return pa.table({"size": size, "rooms": rooms, "city": city, "age": age, "price": price})


@pytest.fixture(scope="module")
def grown(table):
    return datasets.bng(table, rows=50_000, seed=1)


def matrix(table):
    numbers = [table[name].to_numpy() for name in ("size", "rooms", "age", "price")]
    return np.column_stack([*numbers, np.asarray(table["city"]) == "Oslo"])


def test_means_and_spreads_are_kept(table, grown):
    before, after = matrix(table), matrix(grown)
    assert after.mean(axis=0) == pytest.approx(before.mean(axis=0), rel=0.03)
    assert after.std(axis=0) == pytest.approx(before.std(axis=0), rel=0.03)


def test_pairwise_correlations_are_kept(table, grown):
    before, after = (np.corrcoef(matrix(each).T) for each in (table, grown))
    assert np.abs(after - before).max() < 0.02
    strong = np.abs(before) > 0.1
    assert after[strong] == pytest.approx(before[strong], rel=0.05)


def test_rows_are_new_but_whole_numbers_stay_whole(table, grown):
    assert len(np.unique(grown["size"].to_numpy())) > 2 * ROWS
    assert set(grown["rooms"].to_pylist()) <= set(table["rooms"].to_pylist())


def test_the_same_seed_gives_the_same_table(table):
    first, second, other = (datasets.bng(table, rows=100, seed=seed) for seed in (1, 1, 2))
    assert first.equals(second)
    assert not first.equals(other)


def test_gaps_stay_about_as_many():
    gaps = pa.table({"a": [1.0, None, 3.0, 4.0] * 100, "b": ["x", "y", None, "y"] * 100})
    grown = datasets.bng(gaps, rows=4000)
    assert [grown[name].null_count for name in ("a", "b")] == pytest.approx([1000, 1000], rel=0.1)


def test_a_dependence_that_is_no_line_survives():
    x = np.random.default_rng(0).uniform(-1, 1, 5000)
    grown = datasets.bng({"x": x, "y": x**2}, rows=5000)
    x, y = (grown[name].to_numpy() for name in "xy")
    assert np.corrcoef(x**2, y)[0, 1] > 0.98


@pytest.mark.parametrize("rows", [0, -1, 2.5, True])
def test_an_impossible_number_of_rows_is_refused(table, rows):
    with pytest.raises(ParameterError, match="rows must be a whole number"):
        datasets.bng(table, rows=rows)


def test_an_empty_table_is_refused():
    with pytest.raises(InputError, match="at least one column and one row"):
        datasets.bng({}, rows=10)


def test_texts_keep_their_correlations_with_each_other_and_with_numbers():
    original = columns(synthetic_table(rows=20_000))
    grown = columns(datasets.bng(pa.table(original), rows=100_000, seed=1))
    names, before, after = compare(original, grown)
    pairs, errors = relative_correlations(names, before.correlations, after.correlations)
    assert len(pairs) > 150
    assert dict(zip(pairs, errors, strict=True)) == pytest.approx(dict.fromkeys(pairs, 0.0), abs=0.05)


def test_every_value_comes_up_as_often_as_in_the_table():
    rng = np.random.default_rng(0)
    rain = np.where(rng.random(5000) < 0.95, 0.0, rng.lognormal(0, 1, 5000))
    grown = datasets.bng({"rain": rain, "late": rain * rng.random(5000), "town": ["a", "b"] * 2500}, rows=50_000)
    assert (grown["rain"].to_numpy() == 0).mean() == pytest.approx((rain == 0).mean(), abs=0.001)
    assert grown["rain"].to_numpy().mean() == pytest.approx(rain.mean(), rel=0.01)
    assert grown["town"].to_pylist().count("a") == pytest.approx(25_000, abs=250)


def test_equal_values_are_moved_by_the_share_that_a_correlation_asks_for():
    rng = np.random.default_rng(0)
    whole, town = rng.integers(0, 3, 20_000).astype(float), rng.integers(0, 2, 20_000)
    table = Cells([whole + (town * rng.random(20_000) > 0.8)], [town])
    (after,) = reorder(Cells([rng.permutation(table.numbers[0])], [town]), table, rng)
    assert np.corrcoef(after, town)[0, 1] == pytest.approx(np.corrcoef(table.numbers[0], town)[0, 1], rel=0.1)


@pytest.mark.parametrize("table", [{"a": [1.0, 2.0], "b": ["x"]}, {"a": [1.0, "x"]}])
def test_columns_that_do_not_make_a_table_are_refused(table):
    with pytest.raises(InputError, match="columns must be lists of numbers or text of equal length"):
        datasets.bng(table, rows=10)
