"""What the tables say is what the sentences say."""

import numpy as np
import pytest

from manul import worlds
from manul.paper.experiments import methods, offline, online, published, timing
from manul.paper.experiments.problem_sets import Problem
from manul.worlds.simulation import simulate


def test_a_cell_that_is_played_in_parts_loses_what_it_loses_at_once(monkeypatch):
    world, player = worlds.ds(rounds=1000), methods.tree(methods.PAPER, 16, 1 / 8)
    monkeypatch.setattr(online, "SECONDS_AT_ONCE", 0.0)
    (row,) = online._measure(Problem("ds", world, 3, ""), player, lambda _: None)["rows"]
    assert row["loss"] == pytest.approx(simulate(player.make(3), world).mean_loss, rel=1e-12)


def test_the_players_are_the_papers_grid_and_our_own():
    counts = {}
    for player in methods.online():
        counts[player.name] = counts.get(player.name, 0) + 1
    assert counts == {
        methods.PAPER: 89, methods.MARGIN: 89, methods.OURS: 89, methods.TREE: 13, methods.LINEAR: 13,
        methods.DEFAULT: 1, methods.ADAPTIVE: 1, methods.AUTO: 1,
    }  # fmt: skip


def online_row(player, loss, **settings):
    return {
        "dataset": "ds",
        "player": player,
        "leaves": 4,
        "bandwidth": None,
        "loss": loss,
        "low": 0,
        "high": 1,
        **settings,
    }


def test_the_best_cell_of_each_player_stands_beside_the_published_best():
    rows = [online_row(methods.TREE, 0.3), online_row(methods.TREE, 0.2, leaves=8), online_row(methods.AUTO, 0.1)]
    tree, auto = online.best(rows)
    assert (tree["loss"], tree["leaves"], tree["cells"], tree["published"]) == (0.2, 8, 2, 0.095645)
    assert auto["published"] is None


@pytest.mark.parametrize(("loss", "credited"), [(0.1, True), (0.4, False)])
def test_smoothing_gets_the_credit_only_where_it_wins(loss, credited):
    rows = [online_row(methods.PAPER, loss), online_row(methods.TREE, 0.3), online_row(methods.LINEAR, 0.2)]
    assert ("Smoothing helps here" in online._many_leaves(rows)) == credited


@pytest.mark.parametrize(("high", "words"), [(0.19, "do not overlap"), (0.21, "overlap")])
def test_overlapping_intervals_are_reported(high, words):
    row = {"dataset": "ds", "leaves": 4, "bandwidth": 0.25, "loss": 0.1, "low": 0.05, "high": high}
    names = methods.RULES.values()
    rows = [
        {**row, "player": methods.INITIAL, "low": 0.2, "high": 0.3},
        *({**row, "player": name} for name in names),
    ]
    assert all(told.endswith(f"the intervals {words}.") for told in offline.explain(rows, "ds"))


def times(player, against, curve):
    powers = range(2, 14)
    values = [2.0**-power if against == "bandwidth" else 2**power for power in powers]
    return [
        {"dataset": "ds", "player": player, "against": against, "leaves": 2**13 if against == "bandwidth" else value,
         "bandwidth": value if against == "bandwidth" else None, "microseconds": curve(value)}
        for value in values
    ]  # fmt: skip


def test_slopes_tell_flat_from_logarithmic_from_linear():
    rows = times(methods.PAPER, "bandwidth", lambda _: 0.7)
    rows += times(methods.PAPER, "leaves", lambda leaves: 0.2 + 0.05 * np.log2(leaves))
    rows += times(methods.LINEAR, "leaves", lambda leaves: 0.03 * leaves)
    flat, logarithmic, linear = timing.slopes(rows)
    assert flat["exponent"] == pytest.approx(0, abs=1e-9)
    assert (logarithmic["microseconds_per_doubling"], logarithmic["doubling_explained"]) == pytest.approx((0.05, 1.0))
    assert linear["exponent"] == pytest.approx(1.0)
    told = " ".join(timing.explain(rows, "ds"))
    assert "time ∝ K^1.00" in told
    assert "+0.050 µs per doubling of K" in told


def test_the_published_figures_are_all_there():
    assert {cell.dataset for cell in published.online()} == set(published.offline()) == set(published.ROWS)
    assert published.offline()["zurich_delay"].optimised == 0.024476
