"""`manul run` on tables with traps: each is pointed out, and clean tables have no warnings."""

import datetime
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

import manul
from manul.cli import main
from manul.worlds.table_run import TargetTable

ROWS = 60
DAY = datetime.date(2024, 1, 1)
DAYS = [DAY + datetime.timedelta(days=7 * n) for n in range(ROWS)]
CLEAN = {
    "size": [f"{n * n % 37}.5" for n in range(ROWS)],
    "city": [("Oslo", "Rome", "Bath")[n % 3] for n in range(ROWS)],
    "gap": ["" if n % 5 == 0 else str(n % 7) for n in range(ROWS)],
    "rent": [str(100 + n % 11) for n in range(ROWS)],
}
TRAPS = {  # row numbers are usually the first column
    "row numbers": ([str(n) for n in range(ROWS)], "has a different value in every row"),
    "numbers with separators": (
        [f"{n % 9 + 1},{n:03}" for n in range(ROWS)],
        "has numbers stored as text, such as '1,000', and is read as text. Write plain numbers, like 20740 or 9.5.",
    ),
    "prices": ([f"${n % 9}.50" for n in range(ROWS)], "has numbers stored as text, such as '$0.50'"),
    "percentages": ([f"{n % 9}%" for n in range(ROWS)], "has numbers stored as text, such as '0%'"),
    "decimal commas": ([f"{n % 9},5" for n in range(ROWS)], "has numbers stored as text, such as '0,5'"),
    "prices and a negative one": (
        [f"€ {n % 9}.50" if n else "€ -0.28" for n in range(ROWS)],
        "has numbers stored as text, such as '€ 1.50'",
    ),
    "codes of currencies": ([f"EUR {n % 9}.50" for n in range(ROWS)], "has numbers stored as text, such as 'EUR 0.50'"),
    "a unit": ([f"{n}.5 km" for n in range(ROWS)], "has numbers stored as text, such as '0.5 km'"),
    "several units": (
        [f"{n}00 g" if n % 2 else f"{n}.5 kg" for n in range(ROWS)],
        "has numbers stored as text, such as '0.5 kg', and is read as text. Write plain numbers in one unit, like",
    ),
    "another minus": ([f"\u2212{n}" for n in range(ROWS)], "has numbers stored as text, such as '\u22120'"),
    "an odd cell": (
        ["free" if n == 7 else f"{n % 9}.5" for n in range(ROWS)],
        "has numbers in 59 of 60 rows, such as '0.5', but is read as text; other cells have texts such as 'free'. If it is a "
        "quantity, write plain numbers, like 20740 or 9.5, and leave the other cells empty.",
    ),
    "many values": (
        [f"town {n % 40}" for n in range(ROWS)],
        "has 40 different values. The 32 most common ones are told apart; the other 8, in 8 rows, are read as one value.",
    ),
    "infinite numbers": (
        ["inf" if n % 20 == 0 else str(n % 7) for n in range(ROWS)],
        "has infinite numbers in 3 rows, which are read as missing values.",
    ),
    "not available": (
        ["n/a" if n % 5 == 0 else str(n % 7) for n in range(ROWS)],
        "has 'n/a' in 12 rows, which is read as a missing value.",
    ),
    "dashes": (
        ["-" if n % 5 == 0 else str(n % 7) for n in range(ROWS)],
        "has '-' in 12 rows, probably for missing values, but it is read as text, and so are the numbers. Leave such "
        "cells empty.",
    ),
    "words": (
        ["unknown" if n == 0 else str(n % 7) for n in range(ROWS)],
        "has 'unknown' in 1 row, probably for missing values",
    ),
    "a dash among texts": (
        ["-" if n % 5 == 0 else ("diesel", "petrol")[n % 2] for n in range(ROWS)],
        "has '-' in 12 rows, probably for missing values, but it is read as text. Leave such cells empty.",
    ),
    "a number for missing values": (
        ["-999" if n % 5 == 0 else str(n % 7) for n in range(ROWS)],
        "has '-999' in 12 rows, probably for missing values, but it is read as a number.",
    ),
    "dates": (
        [day.isoformat() for day in DAYS],
        "has dates such as '2024-01-01', which are used as days since 1970, month, weekday and, if they have times, the hour.",
    ),
    "times": ([f"{day}T{n % 24:02}:30:00Z" for n, day in enumerate(DAYS)], "has dates such as '2024-01-01T00:30:00Z'"),
    "days first": ([f"{day:%d.%m.%Y}" for day in DAYS], "has dates such as '01.01.2024', which are used as days"),
    "american dates": ([f"{day:%m/%d/%Y}" for day in DAYS], "has dates such as '01/01/2024', which are used as days"),
    "months by name": ([f"{day:%d-%b-%y}" for day in DAYS], "has dates such as '01-Jan-24', which are used as days"),
    "ambiguous dates": (
        [f"{n % 12 + 1:02}/{n % 11 + 1:02}/2024" for n in range(ROWS)],
        "has dates such as '01/01/2024', but day and month cannot be told apart, so it is read as text.",
    ),
    "identifiers": (
        [f"row {n * 7919 % 1000}" for n in range(ROWS)],
        "has a different value in every row, so it looks like an identifier. Remove it.",
    ),
    "postal codes": (
        [f"{n * 411 % 5000:05}" for n in range(ROWS)],
        "has leading zeros, as in '00000', but is read as numbers, which have none. If it is a code, write it with a "
        "letter, like 'c00000'.",
    ),
}
NO_TRAPS = {
    "two digits": [f"{n % 12 + 1:02}" for n in range(ROWS)],
    "years": [str(1950 + n) for n in range(ROWS)],
    "signs": [("+", "-")[n % 2] for n in range(ROWS)],
    "unknown among texts": [("unknown", "worker", "nurse")[n % 3] for n in range(ROWS)],
    "usual markers": [("NA", "NaN", "?", "null", "", "3", "4.5")[n % 7] for n in range(ROWS)],
    "measurements": [f"{n * 0.317:.3f}" for n in range(ROWS)],
    "kilometres": [str(1000 + n * 7919 % 100000) for n in range(ROWS)],
    "negative numbers": [str(n % 50 - 25) for n in range(ROWS)],
    "ranges": [("18-25", "26-40", "41-65")[n % 3] for n in range(ROWS)],
    "clocks": [f"{n % 24:02}:30" for n in range(ROWS)],
    "versions": [("1.2.3", "1.10.0", "2.0.1")[n % 3] for n in range(ROWS)],
    "telephone numbers": [f"030 {100 + n % 9} {200 + n % 3}" for n in range(ROWS)],
    "postal codes with letters": [f"c{n % 9:05}" for n in range(ROWS)],
    "decimals below one": [f"0.{n % 9}5" for n in range(ROWS)],
    "one letter": ["a.-b"[n % 4] for n in range(ROWS)],
    "lists": [f"{n % 3},{n % 4},{n % 2}" for n in range(ROWS)],
    "ordinals": [f"{n % 5 + 4}th" for n in range(ROWS)],
    "sizes": [("S", "M", "XL", "2XL", "3XL")[n % 5] for n in range(ROWS)],
    "seats": [f"{n % 9 + 1}{'ABCDEF'[n % 6]}" for n in range(ROWS)],
    "long postal codes": ["90210-1234" if n == 3 else str(90000 + n % 30) for n in range(ROWS)],
    "telephone numbers in groups": [f"555 {100 + n % 9} {200 + n % 3}" for n in range(ROWS)],
    "words with numbers": [f"room {n % 9}" for n in range(ROWS)],
    "networks": [("3G", "4G", "5G")[n % 3] for n in range(ROWS)],
    "results": [("1", "X", "2")[n % 3] for n in range(ROWS)],
    "months": [f"2024-{n % 12 + 1:02}" for n in range(ROWS)],
}


def write(path, **columns):
    table = {**columns, **CLEAN}
    rows = zip(*table.values(), strict=True)
    path.write_text("\n".join([",".join(table), *(",".join(f'"{cell}"' for cell in row) for row in rows)]) + "\n")
    return path


def manul_run(*arguments):
    result = CliRunner().invoke(main, ["run", *map(str, arguments)], catch_exceptions=False)
    assert result.exit_code == 0, result.stderr
    return result


def warnings_of(path, target="rent"):
    return [sentence for column in TargetTable.read(path, target=target).profiles for sentence in column.warnings]


@pytest.mark.parametrize("trap", TRAPS)
def test_each_trap_is_pointed_out(trap, tmp_path):
    cells, sentence = TRAPS[trap]
    (warning,) = warnings_of(write(tmp_path / "t.csv", odd=cells))
    assert warning.startswith(f"column 'odd' {sentence}")


@pytest.mark.parametrize("column", NO_TRAPS)
def test_ordinary_columns_have_no_warnings(column, tmp_path):
    assert warnings_of(write(tmp_path / "t.csv", ordinary=NO_TRAPS[column])) == []


def test_a_table_with_all_traps_prints_every_warning_and_the_types(tmp_path):
    path = write(tmp_path / "t.csv", **{name.replace(" ", "_"): cells for name, (cells, _) in TRAPS.items()})
    result = manul_run(path, "--target", "rent")
    for name, (_, sentence) in TRAPS.items():
        assert f"{path}: column '{name.replace(' ', '_')}' {sentence}" in result.stderr
    lines = {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines()[: len(TRAPS) + len(CLEAN)]}
    assert lines["dates"] == ["date", "2024-01-01"]
    assert lines["city"] == ["text,", "3", "values", "Oslo"]
    assert lines["size"] == ["number", "0.5"]


def test_values_that_share_a_column_are_counted(tmp_path):
    path = write(tmp_path / "t.csv", town=[f"town {n % 40}" for n in range(ROWS)])
    column = next(each for each in TargetTable.read(path, target="rent").profiles if each.name == "town")
    assert (column.summary, column.as_dict()["grouped"]) == ("text, 40 values, 8 as other", 8)


def test_only_rows_with_a_target_count_as_values(tmp_path):
    rows = [f"{'' if n >= 30 else n},town {n}\n" for n in range(60)]
    (tmp_path / "t.csv").write_text("rent,town\n" + "".join(rows))
    table = TargetTable.read(tmp_path / "t.csv", target="rent")
    assert "town=other" not in table.columns.names()
    assert table.profiles[1].grouped == 0


def test_a_target_of_written_numbers_says_what_to_write(tmp_path):
    (tmp_path / "t.csv").write_text("size;rent\n1;7797,81\n2;9,5\n")
    with pytest.raises(
        manul.errors.InputError, match=r"got '7797,81' in row 1. Write plain numbers, like 20740 or 9.5."
    ):
        TargetTable.read(tmp_path / "t.csv", target="rent")


def test_the_examples_are_clean():
    assert warnings_of("examples/cars.csv", "price") == []


def test_the_documentation_shows_what_is_printed():
    shown = Path("docs/how-to/own-table.md").read_text().partition("```text\n")[2].partition("\n```")[0]
    printed = manul_run("examples/cars.csv", "--target", "price").stdout
    varying = ("regression", "seconds")  # with the version of scikit-learn, and with the machine
    one, other = (
        [line for line in text.split("\n") if not line.startswith(varying)] for text in (shown, printed.rstrip())
    )
    assert one == other


def test_a_table_may_have_only_a_target(tmp_path):
    (tmp_path / "t.csv").write_text("rent\n" + "".join(f"{n % 7}\n" for n in range(60)))
    found = json.loads(manul_run(tmp_path / "t.csv", "--target", "rent", "--json").stdout)
    assert found["regression"] == pytest.approx(found["best_constant"], rel=0.1)


def test_json_has_the_columns_and_the_warnings(tmp_path):
    path = write(tmp_path / "t.csv", price=[f"{n},000" for n in range(ROWS)])
    found = json.loads(manul_run(path, "--target", "rent", "--json").stdout)
    assert found["columns"][0] == {"name": "price", "type": "text", "example": "0,000", "values": ROWS, "grouped": 28}
    assert found["warnings"][0].startswith("column 'price' has numbers stored as text")


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_losses_are_also_in_units_of_the_target(loss, tmp_path):
    found = json.loads(manul_run(write(tmp_path / "t.csv"), "--target", "rent", "--loss", loss, "--json").stdout)
    targets = np.array(CLEAN["rent"], dtype=np.float64)
    errors = np.abs(targets - np.median(targets)) if loss == "absolute" else (targets - targets.mean()) ** 2
    mean = errors.mean() if loss == "absolute" else np.sqrt(errors.mean())
    assert found["in_units"]["best_constant"] == pytest.approx(mean)
    assert found["in_units"].keys() == {"mean_loss", "recent_loss", "best_constant", "regression"}
    assert 0 <= found["explored"] <= 1


def test_the_regression_is_about_right_on_a_table_that_it_can_learn(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("size,rent\n" + "".join(f"{n % 100},{3 * (n % 100)}\n" for n in range(1000)))
    result = manul_run(path, "--target", "rent")
    assert "gradient boosting that knows the targets of other rows" in result.stdout
    found = json.loads(manul_run(path, "--target", "rent", "--json").stdout)
    assert found["regression"] < 0.02
    assert found["mean_loss"] < found["best_constant"]


def test_rewards_have_negative_units(tmp_path):
    found = json.loads(manul_run(write(tmp_path / "t.csv"), "--target", "rent", "--rewards", "known", "--json").stdout)
    assert found["in_units"]["mean_reward"] == pytest.approx(10 * found["mean_reward"])
    assert found["regression"] < 0


def test_without_scikit_learn_the_regression_is_linear(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.ensemble", None)
    found = json.loads(manul_run(write(tmp_path / "t.csv"), "--target", "rent", "--json").stdout)
    assert found["regression_model"] == "linear"


def test_the_policy_takes_the_dates_of_the_table(tmp_path):
    rents = {day: 100 + 200 * (day.month > 6) for day in DAYS}
    path, policy = tmp_path / "t.csv", tmp_path / "policy.manul"
    path.write_text("sold,rent\n" + "".join(f"{day},{rent}\n" for day, rent in rents.items() for _ in range(20)))
    manul_run(path, "--target", "rent", "--shuffle", "--out", policy, "--log", tmp_path / "log.csv")
    agent = manul.load(policy)
    assert agent.best({"sold": "2024-03-01"}) < 200 < agent.best({"sold": datetime.date(2024, 9, 1)})
    assert next(manul.Log.read(tmp_path / "log.csv").context_rows())["sold"].startswith("202")
    with pytest.raises(
        manul.errors.InputError, match="field 'sold' must be a date, 2024-02-29, as in the table, got 'soon'"
    ):
        agent.best({"sold": "soon"})


def test_times_in_parquet_are_dates_too(tmp_path):
    times = [datetime.datetime(2024, 1, 1, n % 24) + datetime.timedelta(days=n) for n in range(ROWS)]
    parquet.write_table(pa.table({"at": times, "rent": [float(n % 9) for n in range(ROWS)]}), tmp_path / "t.parquet")
    table = TargetTable.read(tmp_path / "t.parquet", target="rent")
    assert table.columns.names() == ["at.days", "at.month", "at.weekday", "at.hour"]
    days = (datetime.datetime(2024, 1, 6, 5) - datetime.datetime(1970, 1, 1)) / datetime.timedelta(days=1)
    assert table.world().contexts[5].tolist() == pytest.approx([days, 1.0, 5.0, 5.0])
