"""The loss table says what its definitions say."""

import numpy as np
import pytest
from benchmarks import loss, problems, search

FOUND = {
    "best constant": ((0.5, 0.5), ""),
    "optimum": ((0.1, 0.1), ""),
    "VW CATS, best in hindsight": ((0.3, 0.3), "cats 16, 1/16"),
    "Auto()": ((0.14, 0.16), ""),
}


def test_excess_counts_from_the_optimum_and_share_from_the_best_of_vowpal_wabbit():
    row = loss._rows(FOUND)[-1]
    assert (row.loss, row.excess, row.share) == pytest.approx((0.15, 0.05, 0.25))
    assert row.error == pytest.approx(0.01)


def test_every_player_is_a_line_of_both_tables():
    rows = loss._rows(FOUND)
    assert len(loss.as_text(rows).splitlines()) == 1 + len(FOUND)
    assert "| Auto() | 0.1500 | 0.0100 | 0.0500 | 0.25 |  |" in loss.as_markdown(rows)


def test_a_table_without_its_target_is_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        loss.parse(["--table", "shop.csv"])
    assert "--target must be given once per --table, got 0 for 1." in capsys.readouterr().err


@pytest.mark.parametrize("option", [("--table", "shop.csv", "--target", "price"), ("--encoded", "shop.npz")])
def test_a_file_that_does_not_exist_is_refused(option, capsys):
    with pytest.raises(SystemExit, match="2"):
        loss.parse(list(option))
    assert f"{option[1]}: no such file." in capsys.readouterr().err


def test_only_the_chosen_players_run(tmp_path, rng):
    np.savez(tmp_path / "shop.npz", X=rng.random((300, 2)), y=rng.random(300))
    table = problems.encoded_table(tmp_path / "shop.npz", rows=200)
    rows = loss.measure(problems.table(table, search.LossFile(tmp_path / "losses"), tmp_path), [0], ["auto"])
    assert [row.player for row in rows] == ["best constant", "optimum", "Auto()", "Auto(epsilon=0.05)"]
    assert rows[0].loss == pytest.approx(np.abs(table.targets - np.median(table.targets)).mean(), abs=0.01)
