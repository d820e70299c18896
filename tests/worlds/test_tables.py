"""Tables become contexts and targets as people would expect."""

import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import manul
from manul.contexts.table_encoding import encode_column
from manul.errors import FileError, InputError, ParameterError
from manul.paper import datasets
from manul.worlds.tables import dataset
from manul.worlds.tables.table_columns import read_columns

TEXT = "size,kind,price\n1,a,10\n,b,20\n3,a,30\n5,c,NA\n"
ARFF = """% words
@relation shop
@attribute size numeric
@attribute 'the kind' {a,'b, c'}
@attribute price real
@data
1,a,10
?,'b, c',20
% more
3,a,30
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "shop.csv.gz"
    path.write_bytes(gzip.compress(TEXT.encode()))
    return path


def test_rows_without_a_target_are_left_out(file):
    table = datasets.read(file, target="price")
    assert table.columns == ("size", "kind=a", "kind=b")
    assert table.contexts.shape == (3, 3)
    assert table.span == (10.0, 30.0)


def test_a_missing_number_becomes_the_mean(file):
    assert datasets.read(file, target="price").contexts[:, 0].tolist() == [1.0, 2.0, 3.0]
    standard = datasets.read(file, target="price", standardised=True).contexts[:, 0]
    assert standard == pytest.approx([-1.0, 0.0, 1.0])


def test_levels_beyond_the_most_frequent_share_a_column():
    names, columns = encode_column("kind", pa.array(["b", "a", "c", "b"]), levels=2)
    assert names == ["kind=a", "kind=b", "kind=other"]
    assert columns.sum(axis=1).tolist() == [1.0] * 4


def test_targets_beyond_the_percentiles_are_clipped_to_the_ends():
    _, scaled = dataset.scale_targets(np.concatenate([np.linspace(0, 1, 999), [1e6]]), (0.5, 99.5))
    assert (scaled.min(), scaled.max()) == (0.0, 1.0)
    assert np.median(scaled) == pytest.approx(0.5, abs=0.01)


def test_shuffling_keeps_contexts_and_targets_together(file):
    table = datasets.read(file, target="price")
    world = table.shuffle(seed=3)
    pairs = [{*zip(each.contexts[:, 0], each.targets, strict=True)} for each in (world, table)]
    assert pairs[0] == pairs[1]


def test_the_rows_drawn_are_the_same_in_every_run(file):
    first, second = (datasets.read(file, target="price", rows=2) for _ in range(2))
    assert len(first) == 2
    assert first.contexts.tobytes() == second.contexts.tobytes()


def test_csv_arff_and_parquet_of_the_same_table_are_the_same(tmp_path):
    (tmp_path / "shop.arff").write_text(ARFF)
    (tmp_path / "shop.csv").write_text('size,the kind,price\n1,a,10\n,"b, c",20\n3,a,30\n')
    arrow = pa.table({"size": [1, None, 3], "the kind": ["a", "b, c", "a"], "price": [10.0, 20.0, 30.0]})
    pq.write_table(arrow, tmp_path / "shop.parquet")
    (tmp_path / "packed.parquet.gz").write_bytes(gzip.compress((tmp_path / "shop.parquet").read_bytes()))
    names = ("shop.arff", "shop.csv", "shop.parquet", "packed.parquet.gz")
    read = [datasets.read(tmp_path / name, target="price") for name in names]
    assert {each.contexts.tobytes() for each in read} == {read[0].contexts.tobytes()}
    assert {each.columns for each in read} == {("size", "the kind=a", "the kind=b, c")}


def test_an_unknown_target_is_answered_with_the_columns_there_are(file):
    with pytest.raises(ParameterError, match=r"target must be a column of shop, got 'cost'. It has size, kind, price."):
        datasets.read(file, target="cost")


def test_a_target_with_text_names_the_row(file):
    with pytest.raises(InputError, match=r"target 'kind' of shop must be numeric, got 'a' in row 1\."):
        datasets.read(file, target="kind")


def test_a_constant_target_is_refused(tmp_path):
    (tmp_path / "flat.csv").write_text("a,b\n1,5\n2,5\n")
    with pytest.raises(InputError, match=r"target 'b' of flat must vary, got 5 in every row\."):
        datasets.read(tmp_path / "flat.csv", target="b")


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("ragged.csv", "a,b\n1,2\n3\n", "not a valid .csv file"),
        ("broken.parquet", "no", "not a valid .parquet file"),
        ("short.arff", "@attribute a real\n", "no @data line"),
        ("sparse.arff", "@attribute a real\n@attribute b real\n@data\n{0 1}\n", "sparse ARFF rows are not supported"),
        ("broken.csv.gz", "no", "not a valid .csv file"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_sentence(tmp_path, name, content, sentence):
    (tmp_path / name).write_text(content)
    with pytest.raises(FileError, match=sentence) as caught:
        datasets.read(tmp_path / name, target="b")
    assert "\n" not in str(caught.value)


def test_a_header_in_another_encoding_is_one_sentence(tmp_path):
    (tmp_path / "t.csv").write_bytes("größe,b\n1,2\n".encode("latin-1"))
    with pytest.raises(FileError, match=r"the header is not UTF-8 text. Save the file as UTF-8\."):
        datasets.read(tmp_path / "t.csv", target="b")


def test_an_unknown_suffix_offers_the_close_one(tmp_path):
    with pytest.raises(ParameterError, match=r"Did you mean \.parquet\?"):
        datasets.read(tmp_path / "shop.parkett", target="b")


@pytest.mark.parametrize("cell", ["", "?", "NA", "n/a", "NaN", "null", "None"])
def test_tables_and_logs_agree_on_missing_values(tmp_path, cell):
    path = tmp_path / "run.csv"
    path.write_text(f"action,density,loss,size\n0.5,1,0.5,{cell}\n0.25,1,0.5,3\n")
    assert np.isnan(manul.Log.read(path).fields["size"]).tolist() == [True, False]
    assert read_columns(path)["size"].to_pylist() == [None, 3.0]
