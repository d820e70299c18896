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


# What `vw --cats 8 --bandwidth 3 --min_value 0 --max_value 32 --epsilon 0.1 -p log.txt` (9.11.9) wrote.
CATS = "0.0024034996,0.003125\n3.254608,0.153125\n"


@pytest.mark.parametrize(
    "data", ["0.25 |n x:1\n0.5 |n x:2\n", "ca 0.0024035:0.25:0.003125 |n x:1\nca 3.254608:0.5:0.153125 |n x:2\n"]
)
def test_predictions_of_cats_are_joined_with_the_costs_and_features(files, data):
    files[0].write_text(CATS)
    files[1].write_text(data)
    log = Log.read(vw.join(*files))
    assert (log.actions.tolist(), log.densities.tolist()) == ([0.0024034996, 3.254608], [0.003125, 0.153125])
    assert (log.losses.tolist(), list(log.context_rows())) == ([0.25, 0.5], [{"n^x": 1}, {"n^x": 2}])


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ("|n x:1\n|n x:2\n", "label must be the cost of the predicted action, as a number, got no value"),
        ("ca 9:0.25:1 |n x:1\nca 9:0.5:1 |n\n", "label must be the cost of the predicted action 0.0024034996, got "),
        ("high |n x:1\nhigh |n x:2\n", "loss must be a number, got 'high'"),
    ],
)
def test_a_prediction_without_a_loss_is_refused(files, data, sentence):
    files[0].write_text(CATS)
    files[1].write_text(data)
    with pytest.raises(FileError, match=rf"log\.acp, row 1: {sentence}"):
        Log.read(vw.join(*files))


SERVICE = (
    '{"_label_ca": {"Action": 3.5, "cost": 0.25, "pdf_value": 0.031}, "Timestamp": "2020-11-15T17:09:31.8350000Z", '
)
SERVICE += '"Version": "1", "EventId": "e7", "c": {"User": {"age": 30, "at": {"lat": 2}, "from": "Bath"}, "x": 2.5}, '
SERVICE += '"VWState": {"m": "N/A"}}'


def test_json_of_the_decision_service_has_its_features_in_c():
    row = vw_json.parse(SERVICE)
    assert row[:3] == (3.5, 0.031, 0.25)
    assert row.optional == {"id": "e7", "time": 1605460171.835}
    assert row.context == {"User^age": 30, "User^at^lat": 2, "User^from=Bath": 1, "x": 2.5}


def test_without_the_members_of_the_service_c_is_a_namespace():
    label = '"_label_ca": {"action": 1, "cost": 2, "pdf_value": 3}'
    assert vw_json.parse(f'{{{label}, "c": {{"x": 1}}}}').context == {"c^x": 1}


def test_what_is_nested_without_end_is_refused(tmp_path):
    deep = '{"a":' * 200 + "1" + "}" * 200
    (tmp_path / "run.dsjson").write_text(SERVICE.replace('"x": 2.5', f'"x": {deep}'))
    with pytest.raises(FileError, match="must be nested at most 32 levels deep"):
        Log.read(tmp_path / "run.dsjson")


def test_a_file_of_the_decision_service_is_written_as_it_is_read(tmp_path):
    (tmp_path / "one.dsjson").write_text(SERVICE)
    log = Log.read(tmp_path / "one.dsjson")
    log.write(tmp_path / "two.dsjson")
    again = Log.read(tmp_path / "two.dsjson")
    assert (again.ids, again.times.tolist(), list(again.context_rows())) == (
        log.ids,
        log.times.tolist(),
        list(log.context_rows()),
    )


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
