"""The search finds the best cell, runs none twice, and forgets nothing."""

import json
from dataclasses import replace

from benchmarks import search

from manul.paper.experiments.vowpal_wabbit import Cell

CELLS = [Cell(kind="cats", leaves=2**power, bandwidth=1 / 4) for power in range(2, 22)]


def scripted(runs, winner):
    """A learner that is the better the nearer its leaves are to the winner's, and that keeps a list of its runs."""

    def measure(cell, seed, rounds):
        runs.append((cell, seed, rounds))
        return abs(cell.leaves.bit_length() - winner.leaves.bit_length()) / 20

    return measure


def test_the_best_cell_is_found():
    assert search.best(CELLS, scripted([], CELLS[7]), rounds=200_000, seeds=(0, 1, 2)).cell == CELLS[7]


def test_every_cell_plays_all_rounds_and_a_few_play_every_seed():
    runs = []
    search.best(CELLS, scripted(runs, CELLS[7]), rounds=200_000, seeds=(0, 1, 2))
    assert {rounds for _, _, rounds in runs} == {200_000}
    assert len(runs) == len(CELLS) + 2 * search.FINALISTS


def test_a_cell_that_starts_badly_can_win():
    def measure(cell, _, rounds):
        return 10_000 / rounds if cell == CELLS[3] else 0.1

    assert search.best(CELLS, measure, rounds=200_000, seeds=(0, 1)).cell == CELLS[3]


def test_only_the_finalists_play_the_other_epsilons_and_the_best_one_counts():
    runs = []

    def measure(cell, seed, _):
        runs.append((cell, seed))
        return abs(cell.leaves.bit_length() - 9) / 20 + abs(cell.epsilon - 0.01)

    best = search.best(CELLS, measure, rounds=100, seeds=(0, 1), epsilons=(0.05, 0.01, 0.002))
    assert best.cell == replace(CELLS[6], epsilon=0.01)
    assert len(runs) == len(set(runs)) == len(CELLS) + search.FINALISTS * (2 * 3 - 1)


def test_what_was_measured_once_is_read_from_the_file(tmp_path):
    file, asked = tmp_path / "kept" / "losses.json", []
    for _ in range(2):
        saved = search.LossFile(file)
        loss = saved.get("data", CELLS[0], rounds=10, seed=0, measure=lambda: asked.append(1) or 0.25)
        assert loss == 0.25
    assert asked == [1]
    assert list(json.loads(file.read_text()).values()) == [0.25]


def test_other_data_is_another_run(tmp_path):
    saved = search.LossFile(tmp_path / "losses.json")
    first = saved.get("one", CELLS[0], rounds=10, seed=0, measure=lambda: 0.25)
    second = saved.get("two", CELLS[0], rounds=10, seed=0, measure=lambda: 0.5)
    assert (first, second) == (0.25, 0.5)
