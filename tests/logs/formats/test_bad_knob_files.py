"""Bad rows and files with several knobs: one sentence each, and `skip_bad` skips the row."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manul import Choice, Log, Stepped
from manul.errors import FileError, InputError, ParameterError

KNOBS = {"price": (10, 50), "days": Stepped(1, 14, 1), "density": Choice(["a", "b"])}
GOOD = {
    "action": {"price": 20.0, "days": 3, "density": "a"},
    "density": 0.1,
    "loss": 0.5,
    "density_by_knob": {"price": 0.2, "days": 0.5, "density": 1.0},
    "within": {"price": [12, 30]},
    "age": 31,
}


def changed(**members):
    """A good row with other members; a mapping changes some of its members."""
    row = json.loads(json.dumps(GOOD))
    for name, value in members.items():
        row[name] = {**row[name], **value} if isinstance(value, dict) else value
    return row


def without(name, part):
    row = changed()
    del row[name][part]
    return row


BAD = [
    (without("action", "price"), r"row 2: action.price must be a member of the object, got no value"),
    (
        changed(action={"discount": 1}),
        r"row 2: action must be an object with price, days, density only, got 'discount'",
    ),
    (changed(action=3.0), r"row 2: action must be an object with price, days, density, got 3.0"),
    (changed(action={"days": 3.5}), r"row 2: action.days must be one of 1, 2, …, 14, got 3.5"),
    (changed(action={"price": 51}), r"row 2: action.price must be in \[10, 50\], got 51.0"),
    (changed(action={"price": None}), r"row 2: action.price must be in \[10, 50\], got no value"),
    (changed(action={"price": "cheap"}), r"row 2: action.price must be a number, got 'cheap'"),
    (changed(action={"density": "c"}), r"row 2: action.density must be one of 'a', 'b', got 'c'"),
    (changed(density=0), r"row 2: density must be above 0 and finite, got 0.0"),
    (changed(density=-1), r"row 2: density must be above 0 and finite, got -1.0"),
    (
        changed(density_by_knob={"days": 0}),
        r"row 2: density.days must be a probability, above 0 and at most 1, got 0.0",
    ),
    (
        changed(density_by_knob={"days": 2}),
        r"row 2: density.days must be a probability, above 0 and at most 1, got 2.0",
    ),
    (changed(density=0.2), r"row 2: density must be the product of the densities of the knobs, got 0.2"),
    (changed(density_by_knob=2.0), r"row 2: density_by_knob must be an object with price, days, density, got 2.0"),
    (changed(within={"price": [30, 40]}), r"row 2: action.price must be in the range that within leaves, got 20.0"),
    (changed(within={"price": [60, 70]}), r"row 2: within must be ranges and options of the knobs, got"),
    (changed(within={"discount": [0, 1]}), r"row 2: within must be ranges and options of the knobs, got"),
    (changed(within=[1]), r"row 2: within must be ranges and options of the knobs, got \[1\]"),
    (changed(loss=None), r"row 2: loss must be a finite number, got no value"),
]


def write(rows, path):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize(("row", "sentence"), BAD)
def test_a_bad_row_of_json_lines_is_reported_or_skipped(row, sentence, tmp_path):
    path = write([changed(), row, changed(loss=0.25)], tmp_path / "log.jsonl")
    with pytest.raises(FileError, match=sentence):
        Log.read(path, knobs=KNOBS)
    log = Log.read(path, knobs=KNOBS, skip_bad=True)
    assert (log.losses.tolist(), log.skipped) == ([0.5, 0.25], 1)


def flat(row):
    parts = {f"action.{name}": value for name, value in row["action"].items()}
    parts |= {f"density.{name}": value for name, value in row["density_by_knob"].items()}
    return {
        **parts,
        "density": row["density"],
        "loss": row["loss"],
        "within": json.dumps(row["within"]),
        "age": row["age"],
    }


FLAT = [
    case for case in BAD[3:] if isinstance(case[0]["action"], dict) and isinstance(case[0]["density_by_knob"], dict)
]


@pytest.mark.parametrize(("row", "sentence"), FLAT)
def test_a_bad_row_of_csv_is_reported_or_skipped(row, sentence, tmp_path):
    import csv

    with (tmp_path / "log.csv").open("w") as file:
        writer = csv.DictWriter(file, [*flat(changed())])
        writer.writeheader()
        writer.writerows([flat(changed()), flat(row), flat(changed(loss=0.25))])
    sentence = sentence.replace("row 2", "row 3").replace("ranges and options of the knobs", "ranges and options")
    with pytest.raises(FileError, match=sentence.split(", got")[0]):
        Log.read(tmp_path / "log.csv", knobs=KNOBS)
    log = Log.read(tmp_path / "log.csv", knobs=KNOBS, skip_bad=True)
    assert (log.losses.tolist(), log.skipped) == ([0.5, 0.25], 1)


NUMERIC = [case for case in FLAT if "cheap" not in case[1]]


@pytest.mark.parametrize(("row", "sentence"), NUMERIC)
def test_a_bad_row_of_a_table_is_reported_or_skipped(row, sentence):
    rows = [flat(changed()), flat(row), flat(changed(loss=0.25))]
    table = {name: [each[name] for each in rows] for name in rows[0]}
    with pytest.raises(FileError, match=sentence.split(", got")[0].replace(" of the knobs", "")):
        Log.from_table(table, knobs=KNOBS)
    log = Log.from_table(table, knobs=KNOBS, skip_bad=True)
    assert (log.losses.tolist(), log.skipped) == ([0.5, 0.25], 1)


def test_fields_of_structs_may_have_another_order(tmp_path):
    action = pa.array([{"density": "b", "days": 2, "price": 11}])
    pq.write_table(pa.table({"action": action, "density": [1.0], "loss": [0.5]}), tmp_path / "log.parquet")
    log = Log.read(tmp_path / "log.parquet", knobs=KNOBS)
    assert {name: column.tolist() for name, column in log.actions.items()} == {
        "price": [11.0],
        "days": [2.0],
        "density": ["b"],
    }
    assert [*log.actions] == ["price", "days", "density"]


FILES = [
    ({"action": [{"price": 20.0}]}, "has no column action.days, only knobs price"),
    ({"action": [{**GOOD["action"], "x": 1}]}, "has an unknown knob 'x'. The knobs are price, days, density"),
    ({"action": [1.0]}, "has one value per action, not the knobs price, days, density"),
    ({"action": [{**GOOD["action"], "price": "x"}]}, "column action.price must be numbers, got text"),
    ({"density_by_knob": [{"price": 1.0}]}, "must have density.NAME once for each of the knobs price, days, density"),
    ({"density_by_knob": [1.0]}, "must have density.NAME once for each of the knobs price, days, density"),
    ({"within": [3.0]}, "column within must be JSON text, got double"),
    ({"within": [{"price": [1, 2]}]}, "column within must be numbers or text, got struct"),
    ({"low": [1.0], "high": [2.0]}, "has within instead of the columns low and high"),
]


@pytest.mark.parametrize(("columns", "sentence"), FILES)
def test_a_table_with_wrong_columns_is_refused(columns, sentence):
    table = {"action": [GOOD["action"]], "density": [1.0], "loss": [0.5]} | columns
    with pytest.raises(FileError, match=sentence):
        Log.from_table(table, knobs=KNOBS)


@pytest.mark.parametrize(
    "metadata", ['{"knobs": 3}', '{"knobs": [["price", [3, 1]]]}', '{"knobs": [["a", {"options": [1]}]]}']
)
def test_forged_knobs_in_the_metadata_are_refused(metadata):
    table = pa.table({"action": [{"price": 1.0}], "density": [1.0], "loss": [0.5]})
    with pytest.raises(FileError, match=r"log has invalid metadata|table has invalid metadata"):
        Log.from_table(table.replace_schema_metadata({"manul": metadata}))


ARRAYS = [
    ({"actions": {"price": [20.0]}}, "actions must have the knob 'n' too"),
    ({"actions": {"price": [20.0], "n": [3]}}, "n must be one of 1, 2, got 3 in row 0"),
    ({"actions": {"price": [20.0], "n": [True]}}, "n must be one of 1, 2, got True in row 0"),
    ({"actions": {"price": [9.0], "n": [1]}}, r"price must be in \[10, 50\], got 9.0 in row 0"),
    ({"actions": {"price": ["x"], "n": [1]}}, "price must be a column of numbers"),
    ({"actions": {"price": [20.0], "n": [1], "x": [1]}}, "actions has an unknown knob 'x'"),
    ({"actions": {"price": 20.0, "n": [1]}}, "price must be a column with one value per row, got 20.0"),
    ({"actions": {"price": [[20.0, 3.0]], "n": [1]}}, "price must be a column of numbers"),
    ({"actions": [20.0]}, "actions must map each of price, n"),
    ({"actions": {"price": [20.0, 21.0], "n": [1]}}, r"one length, got lengths \[1, 2\]"),
    ({"lows": [0.0], "highs": [1.0]}, "lows is for logs with one knob"),
    ({"action_range": (0, 1)}, "action_range is for logs with one knob"),
    ({"densities_by_knob": {"price": [1.0]}}, "densities_by_knob must map each of price, n"),
    ({"within": [{"price": (60, 70)}]}, "within of price must be a range inside"),
    ({"densities_by_knob": {"price": ["x"], "n": [1.0]}}, "densities_by_knob must be columns of numbers"),
    ({"within": {"price": (20, 30)}}, "within must have one mapping per row, got a single one"),
    ({"within": [3]}, "within must be a mapping of knobs to ranges, got 3"),
    ({"within": [None, None]}, r"one length, got lengths \[1, 2\]"),
    ({"knobs": {}}, "actions must have 1 to 16 knobs, got 0"),
    ({"knobs": 3}, "knobs must be a mapping of names to knobs, got 3"),
    ({"knobs": None}, "actions are columns by knob, so a log needs knobs="),
]


@pytest.mark.parametrize(("arguments", "sentence"), ARRAYS)
def test_a_log_of_wrong_arrays_is_refused(arguments, sentence):
    good = {"actions": {"price": [20.0], "n": [1]}, "knobs": {"price": (10, 50), "n": Choice([1, 2])}}
    with pytest.raises((InputError, ParameterError), match=sentence):
        Log([[1.0]], densities=[1.0], losses=[0.5], **(good | arguments))
