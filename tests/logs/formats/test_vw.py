"""Vowpal Wabbit's two formats, as Vowpal Wabbit itself writes and reads them."""

import pytest

from manul.errors import FileError
from manul.logs.formats import vw, vw_json
from manul.logs.log import Log

# The first rows that `vw --cbify 16 --cbify_reg --bandwidth 0.125 ... -p log.acp` (9.11.9) wrote, and their data.
PREDICTED = "0.000150219:0.780247:0.05\n0.0403132:0.277149:3.85\n"
DATA = "0.780397 | 0:1.28818 1:1.44945 2:0.06634\n0.317462 | 0:-0.76454 1:-1.09217 2:0.03133\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "log.acp").write_text(PREDICTED)
    (tmp_path / "data.vw").write_text(DATA)
    return tmp_path / "log.acp", tmp_path / "data.vw"


def test_predictions_are_joined_with_their_features(files):
    log = Log.read(vw.join(*files))
    assert log.actions.tolist() == [0.000150219, 0.0403132]
    assert log.losses.tolist() == [0.780247, 0.277149]
    assert log.densities.tolist() == [0.05, 3.85]
    assert log.contexts[1].tolist() == pytest.approx([-0.76454, -1.09217, 0.03133])


@pytest.mark.parametrize(("short", "long"), [(0, 1), (1, 0)])
def test_files_of_different_lengths_do_not_join(files, short, long):
    files[short].write_text(files[short].read_text().splitlines()[0])
    with pytest.raises(FileError, match=rf"{files[short].name} has fewer rows than .*{files[long].name}"):
        Log.read(vw.join(*files))


def test_a_prediction_without_a_loss_is_refused(files):
    files[0].write_text("0.5,1.95\n0.25,1.95\n")
    with pytest.raises(FileError, match=r"log\.acp, row 1: label must be ca action:cost:density, got 'ca 0\.5,1\.95'"):
        Log.read(vw.join(*files))


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ("| a b:2", {"a": 1, "b": 2}),
        ("|room cold:3 |user old", {"room^cold": 3, "user^old": 1}),
        ("|room:2 cold:3 wind", {"room^cold": 6, "room^wind": 2}),
        ("| a a:2", {"a": 3}),
        ("| :1.5 :2", {"0": 1.5, "1": 2}),
        ("|r :7", {"r^0": 7}),
        ("|  a\tb  ", {"a": 1, "b": 1}),
        ("", {}),
    ],
)
def test_features_are_read_as_vowpal_wabbit_reads_them(text, context):
    assert vw.parse(f"ca 1:2:3 {text}\r\n").context == context


@pytest.mark.parametrize("tag", ["'a7", "a7"])
def test_a_tag_is_the_id(tag):
    assert vw.parse(f"ca 1:2:3 {tag}|x y").optional == {"id": "a7"}


def test_features_of_json_are_read_as_vowpal_wabbit_reads_them():
    label = '"_label_ca": {"action": 1, "cost": 2, "pdf_value": 3}'
    row = vw_json.parse(f'{{{label}, "a": 1, "n": {{"b": "x", "c": true, "d": null}}, "l": [4, 5], "_skip": 7}}')
    assert row.context == {"a": 1, "n^b=x": 1, "n^c": 1, "l^0": 4, "l^1": 5}


def test_features_without_a_row_are_zero(tmp_path):
    (tmp_path / "run.vw").write_text("ca 1:2:3 |n a:2\nca 1:2:3 |n b:3\n")
    assert Log.read(tmp_path / "run.vw").contexts.tolist() == [[2, 0], [0, 3]]


def test_a_feature_called_as_a_namespace_is_refused_in_json(tmp_path):
    log = Log.from_table({"a": [1.0], "a^b": [2.0], "action": [1], "density": [1], "loss": [0]})
    with pytest.raises(FileError, match="A feature and a namespace are both named"):
        log.write(tmp_path / "run.json")
