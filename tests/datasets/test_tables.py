"""Tables become contexts and targets as people would expect."""

import gzip

import numpy as np
import pytest
from benchmarks import tables

TEXT = "size,kind,price\n1,a,10\n,b,20\n3,a,30\n5,c,NA\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "shop.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    return path


def test_rows_without_a_target_are_left_out(file):
    table = tables.load(file, target="price")
    assert table.columns == ("size", "kind=a", "kind=b")
    assert table.contexts.shape == (3, 3)


def test_a_missing_number_becomes_the_mean_which_is_zero(file):
    assert tables.load(file, target="price").contexts[:, 0].tolist() == [-1.0, 0.0, 1.0]


def test_levels_beyond_the_most_frequent_share_a_column():
    names, columns = tables.encode("kind", ["b", "a", "c", "b"], levels=2)
    assert names == ["kind=a", "kind=b", "kind=other"]
    assert columns.sum(axis=1).tolist() == [1.0] * 4


def test_targets_beyond_the_percentiles_are_clipped_to_the_ends():
    scaled = tables.scaled(np.concatenate([np.linspace(0, 1, 999), [1e6]]))
    assert scaled.min() == 0.0
    assert scaled.max() == 1.0
    assert np.median(scaled) == pytest.approx(0.5, abs=0.01)


def test_shuffling_keeps_contexts_and_targets_together(file):
    table = tables.load(file, target="price")
    world = table.shuffled(seed=3)
    assert {*zip(world.contexts[:, 0], world.targets, strict=True)} == {
        *zip(table.contexts[:, 0], table.targets, strict=True)
    }


def test_the_rows_drawn_are_the_same_in_every_run(file):
    first, second = (tables.load(file, target="price", rows=2) for _ in range(2))
    assert len(first.targets) == 2
    assert first.contexts.tobytes() == second.contexts.tobytes()


def test_an_unknown_target_is_answered_with_the_columns_there_are(file):
    with pytest.raises(
        ValueError, match=r"target must be a column of shop.csv.gz; got 'cost'. It has size, kind, price."
    ):
        tables.load(file, target="cost")
