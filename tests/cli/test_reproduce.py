import re

import pytest
from click.testing import CliRunner

from manul.cli import main
from tests.paper.experiments.conftest import few_cells  # noqa: F401 - a fixture

CSV = "size,city,price\n" + "".join(
    f"{row % 17},{'Oslo' if row % 3 else 'Rome'},{row % 17 + row % 3}\n" for row in range(300)
)


def reproduce(*arguments):
    return CliRunner().invoke(main, ["reproduce", *map(str, arguments)])


@pytest.mark.usefixtures("few_cells")
@pytest.mark.whole
def test_a_table_of_ones_own_takes_the_place_of_the_six(tmp_path):
    (tmp_path / "mine.csv").write_text(CSV)
    result = reproduce(
        "online", "--no-vw", "--data", tmp_path / "mine.csv", "--target", "price", "--out", tmp_path / "out"
    )
    assert result.exit_code == 0
    assert "Order on mine: " in result.stdout
    assert f"Results: {tmp_path / 'out' / 'index.html'}" in result.stdout
    assert "left" in result.stderr
    page = (tmp_path / "out" / "index.html").read_text()
    assert "mine.csv, target price" in page
    assert "published" not in re.sub(r"base64,[^\"]*", "", page)


@pytest.mark.parametrize(
    ("content", "target", "code", "sentence"),
    [
        (
            CSV,
            "city",
            1,
            "target 'city' of mine must be numeric, got 'Rome' in row 1.",
        ),
        (CSV, "prise", 2, "--target must be a column of mine, got 'prise'. Did you mean price?"),
        (CSV, "gdp", 2, "--target must be a column of mine, got 'gdp'. It has size, city, price."),
        ("a,b\n" + "1,5\n" * 200, "b", 1, "target 'b' of mine must vary, got 5 in every row."),
    ],
)
def test_a_target_that_cannot_be_predicted_is_one_sentence(tmp_path, content, target, code, sentence):
    (tmp_path / "mine.csv").write_text(content)
    result = reproduce("online", "--data", tmp_path / "mine.csv", "--target", target, "--out", tmp_path / "out")
    assert (result.exit_code, result.stderr) == (code, sentence + "\n")
    assert not (tmp_path / "out").exists()


def test_an_unknown_dataset_offers_the_close_ones(tmp_path):
    result = reproduce("online", "--datasets", "ds,wisconsni", "--out", tmp_path)
    assert result.exit_code == 2
    assert result.stderr.endswith("got 'wisconsni'. Did you mean wisconsin?\n")
