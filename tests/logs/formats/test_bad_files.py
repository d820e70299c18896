"""A file that cannot be used is refused in a sentence with the file, the row, the column and what to do."""

import contextlib
import gzip
import re

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from manul.errors import FileError, ManulError, ParameterError
from manul.logs.log import Log
from tests.logs.formats.logs import SUFFIXES, dense

HEADER = "action,density,loss,context_0,context_1\n"
GOOD = {
    "csv": "0.5,1,0.25,1,2\n",
    "jsonl": '{"action": 0.5, "density": 1, "loss": 0.25, "context": [1, 2]}\n',
    "vw": "ca 0.5:0.25:1 | 0:1 1:2\n",
    "json": '{"_label_ca": {"action": 0.5, "cost": 0.25, "pdf_value": 1}, "0": 1, "1": 2}\n',
}
TEMPLATES = {
    "csv": "{action},{density},{loss},{first},2\n",
    "jsonl": '{{"action": {action}, "density": {density}, "loss": {loss}, "context": [{first}, 2]}}\n',
    "vw": "ca {action}:{loss}:{density} | 0:{first} 1:2\n",
    "json": '{{"_label_ca": {{"action": {action}, "cost": {loss}, "pdf_value": {density}}}, "0": {first}, "1": 2}}\n',
}
VALUES = {"action": 0.5, "density": 1, "loss": 0.25, "first": 1}
BAD_VALUES = [
    ({"density": 0}, "density", "above 0 and finite, got 0.0."),
    ({"density": -1}, "density", "above 0 and finite, got -1.0."),
    ({"density": "NaN"}, "density", "above 0 and finite, got "),
    ({"loss": 7}, "loss", "in [0, 1], got 7.0. Declare the range with loss_range=(low, high)"),
    (
        {"action": 9},
        "action",
        "in [0, 2], got 9.0. Declare the range with action_range=(low, high)",
    ),
    ({"action": "1e999"}, "action", "a finite number, got inf"),
    ({"first": "NaN"}, "context", "finite numbers without missing values, got "),
]
BAD_LINES = [
    ("csv", "0.5,1\n", "line", "5 values, like the header, got 2."),
    ("csv", "0.5,1,high,1,2\n", "loss", "a number, got 'high'."),
    ("csv", "0.5,1,0.25,1,much\n", "context_1", "a number, got 'much'."),
    ("csv", "0.5,,0.25,1,2\n", "density", "above 0 and finite, got no value."),
    ("csv", b"0.5,1,0.25,1,\xff\n", "line", "UTF-8 text, got "),
    ("csv", '0.5,1,0.25,1,"2"x\n', "line", "a complete CSV row, got "),
    ("jsonl", '{"action": 0.5, "den\n', "line", "a complete JSON object, got "),
    ("jsonl", "[1, 2]\n", "line", "a JSON object, got "),
    (
        "jsonl",
        '{"action": 0.5, "density": 1, "context": [1, 2]}\n',
        "loss",
        "a member of the object, got no value.",
    ),
    (
        "jsonl",
        '{"action": 0.5, "density": 1, "loss": 0, "context": [1]}\n',
        "context",
        "2 numbers, like the first one, got 1.",
    ),
    ("jsonl", '{"action": 0.5, "density": 1, "loss": 0, "context": [1, "x"]}\n', "context", "a number, got 'x'."),
    ("jsonl", '{"action": true, "density": 1, "loss": 0, "context": [1, 2]}\n', "action", "a number, got True."),
    (
        "jsonl",
        '{"action": 1, "density": 1, "loss": 0, "context": 7}\n',
        "context",
        "a list of numbers or an object, got 7.",
    ),
    ("vw", "0.25 | 0:1\n", "label", "ca action:cost:density, got '0.25'."),
    ("vw", "ca 0.5:0.25 | 0:1\n", "label", "ca action:cost:density, got 'ca 0.5:0.25'."),
    ("vw", "ca 0.5:x:1 | 0:1 1:2\n", "loss", "a number, got 'x'."),
    ("vw", "ca 0.5:0:1 | 0:one 1:2\n", "0", "a number, got 'one'."),
    ("json", '{"action": 0.5}\n', "_label_ca", "an object with action, cost and pdf_value"),
    (
        "json",
        '{"_label_ca": {"action": 1, "cost": 0}, "0": 1, "1": 2}\n',
        "density",
        "above 0 and finite, got no value.",
    ),
]


def bad_file(tmp_path, suffix, line):
    """A file whose third row is bad, and what number that row has in it."""
    path = tmp_path / f"run.{suffix}"
    before = (HEADER if suffix == "csv" else "") + 2 * GOOD[suffix]
    text = line if isinstance(line, bytes) else line.encode()
    path.write_bytes(before.encode() + text + GOOD[suffix].encode())
    return path, 4 if suffix == "csv" else 3


def check_refused_or_skipped(path, row, column, rule, **ranges):
    sentence = f"{path}, row {row}: {column} must be {rule}"
    with pytest.raises(FileError, match=re.escape(sentence)) as refused:
        Log.read(path, **ranges)
    assert "skip_bad=True" in str(refused.value)
    log = Log.read(path, **ranges, skip_bad=True)
    assert (len(log), log.skipped) == (3, 1)


@pytest.mark.parametrize(("suffix", "line", "column", "rule"), BAD_LINES)
def test_a_broken_row_is_named_or_skipped(tmp_path, suffix, line, column, rule):
    path, row = bad_file(tmp_path, suffix, line)
    check_refused_or_skipped(path, row, column, rule)


@pytest.mark.parametrize("suffix", TEMPLATES)
@pytest.mark.parametrize(("values", "column", "rule"), BAD_VALUES)
def test_a_value_that_cannot_be_is_named_or_skipped(tmp_path, suffix, values, column, rule):
    path, row = bad_file(tmp_path, suffix, TEMPLATES[suffix].format(**(VALUES | values)))
    check_refused_or_skipped(path, row, column, rule, action_range=(0, 2), loss_range=(0, 1))


@pytest.mark.parametrize(("column", "value", "rule"), [
    ("density", 0.0, "above 0 and finite, got 0.0."),
    ("density", None, "above 0 and finite, got no value."),
    ("loss", float("nan"), "a finite number, got nan."),
    ("context", [1.0], "2 numbers, like the first one, got 1."),
    ("context", None, "2 numbers, like the first one, got no value."),
    ("context", [1.0, None], "finite numbers without missing values, got no value."),
])  # fmt: skip
def test_a_bad_row_of_a_foreign_parquet_file_is_named_or_skipped(tmp_path, column, value, rule):
    columns = {"action": [0.5] * 4, "density": [1.0] * 4, "loss": [0.5] * 4, "context": [[1.0, 2.0]] * 4}
    columns[column] = [*columns[column][:2], value, columns[column][3]]
    pq.write_table(pa.table(columns), tmp_path / "run.parquet")
    check_refused_or_skipped(tmp_path / "run.parquet", 3, column, rule)


@pytest.mark.parametrize("name", ["action", "density", "loss"])
def test_a_missing_column_is_named_with_those_that_are_there(tmp_path, name):
    names = [column for column in ("action", "density", "loss", "age") if column != name]
    (tmp_path / "run.csv").write_text(",".join(names) + "\n1,1,1\n")
    pq.write_table(pa.table({column: [1.0] for column in names}), tmp_path / "run.parquet")
    for suffix in ("csv", "parquet"):
        path = tmp_path / f"run.{suffix}"
        with pytest.raises(FileError, match=re.escape(f"{path} has no column {name}, only {', '.join(names)}.")):
            Log.read(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_an_empty_log_is_refused(tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
    path.write_text(HEADER if suffix == ".csv" else "")
    if suffix == ".parquet":
        pq.write_table(dense().table.slice(0, 0), path)
    with pytest.raises(FileError, match=re.escape(f"{path} has no rows.")):
        Log.read(path)


def test_a_log_of_nothing_but_bad_rows_is_refused(tmp_path):
    (tmp_path / "run.vw").write_text("ca 1:1:0 | 0:1\nca 1:1:0 | 0:1\n")
    with pytest.raises(FileError, match=r"has no valid rows \(2 skipped"):
        Log.read(tmp_path / "run.vw", skip_bad=True)


@pytest.mark.parametrize("suffix", [".parquet", *(suffix + ".gz" for suffix in SUFFIXES)])
@pytest.mark.parametrize("skip_bad", [False, True])
def test_a_file_that_is_cut_off_is_refused(tmp_path, suffix, skip_bad):
    path = tmp_path / f"run{suffix}"
    dense(rows=500).write(path)
    whole = path.read_bytes()
    for share in (0.02, 0.5, 0.99):
        path.write_bytes(whole[: int(len(whole) * share)])
        with pytest.raises(FileError, match=r"is truncated, damaged or not a (Parquet|gzip) file"):
            Log.read(path, skip_bad=skip_bad)


@pytest.mark.parametrize("suffix", [".parquet", ".csv.gz"])
def test_flipped_bytes_are_never_a_crash(tmp_path, suffix):
    path = tmp_path / f"run{suffix}"
    dense(rows=50).write(path)
    whole = bytearray(path.read_bytes())
    for position in range(0, len(whole), 41):
        whole[position] ^= 0x15
        path.write_bytes(whole)
        assert reads_or_refuses(path)
        whole[position] ^= 0x15


def reads_or_refuses(path):
    with contextlib.suppress(ManulError):
        Log.read(path)
    return True


def test_a_plain_file_with_a_gzip_name_is_refused(tmp_path):
    (tmp_path / "run.csv.gz").write_text(HEADER + GOOD["csv"])
    with pytest.raises(FileError, match="not a gzip file"):
        Log.read(tmp_path / "run.csv.gz")
    (tmp_path / "run.csv").write_bytes(gzip.compress(b"x"))
    with pytest.raises(FileError):
        Log.read(tmp_path / "run.csv")


@pytest.mark.parametrize(
    ("name", "remedy"), [("run.parqet", "Did you mean .parquet?"), ("run", "use format='vw' or another name.")]
)
def test_an_unknown_suffix_names_the_known_ones_and_the_closest(name, remedy):
    with pytest.raises(ParameterError, match=r"has the unknown suffix '\.parqet'|run has no suffix") as refused:
        Log.read(name)
    assert str(refused.value).endswith(remedy)


def test_a_file_that_is_not_there_is_refused(tmp_path):
    for suffix in SUFFIXES:
        with pytest.raises(FileError, match=r": no such file\."):
            Log.read(tmp_path / f"run{suffix}")


@pytest.mark.parametrize(("columns", "sentence"), [
    ({"low": [0.0]}, "must have both columns low and high, or neither"),
    ({"low": [0.9], "high": [1.0]}, "table, row 1: action must be between low and high, got 0.5"),
    ({"low": [2.0], "high": [1.0]}, "table, row 1: low must be below high, got 2.0"),
    ({"context": ["hot"]}, "table: column context must be lists of numbers or structs of index and value, got string"),
    ({"context": [[1.0]], "age": [1]}, "has a column 'context' and also 'age'"),
    ({"age": pa.array([b"x"])}, "table: column 'age' must have numbers, text, flags, dates, times, lists or objects, got"),
    ({"age": [float("inf")]}, "table, row 1: age must be finite or missing, got inf"),
])  # fmt: skip
def test_columns_that_contradict_each_other_are_refused(columns, sentence):
    with pytest.raises(FileError, match=re.escape(sentence)):
        Log.from_table({"action": [0.5], "density": [1.0], "loss": [0.5], **columns})


def test_a_newer_format_says_what_reads_it(tmp_path):
    table = dense().table.replace_schema_metadata({b"manul": b'{"format": 5, "colour": "red"}'})
    pq.write_table(table, tmp_path / "run.parquet")
    with pytest.raises(FileError, match=r"run\.parquet has format 5, but this version reads format 4\. Update manul"):
        Log.read(tmp_path / "run.parquet")


@pytest.mark.parametrize(("mark", "word"), [(";", "semicolons"), ("\t", "tabs")])
def test_columns_that_are_not_separated_by_commas_are_explained(tmp_path, mark, word):
    (tmp_path / "run.csv").write_text(f"x{mark}action{mark}density{mark}loss\n1{mark}0,5{mark}1{mark}0\n")
    with pytest.raises(FileError, match=f"Its columns are separated by {word}. Separate them by commas, with points"):
        Log.read(tmp_path / "run.csv")
