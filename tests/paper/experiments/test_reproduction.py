"""One command makes tables, figures and a page, goes on where it was stopped, and gives the same losses every time."""

import csv
import importlib.util
import json
import pathlib
import re

import pytest

from manul.errors import FileError, MissingDependency, ParameterError
from manul.paper.experiments import online, reproduce
from manul.paper.experiments.problem_sets import Selection
from manul.paper.experiments.timed_tasks import ResultsFile, TaskRunner

pytestmark = [pytest.mark.usefixtures("few_cells"), pytest.mark.whole]


def run(out, *experiments, **settings):
    return reproduce(experiments, out=out, **{"datasets": ["ds"], "rounds": 400, "vw": False, "threads": 2, **settings})


def table(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def whole(tmp_path_factory, few_cells):  # noqa: ARG001 - it has to come first
    return run(tmp_path_factory.mktemp("whole"), "online", "offline", "timing")


def test_every_experiment_leaves_its_table_and_figures(whole):
    folder = whole.page.parent
    tables = {"online.csv", "online-best.csv", "offline.csv", "timing.csv", "timing-slopes.csv"}
    figures = {
        f"{name}.{kind}" for name in ("online", "online-grid-ds", "offline", "timing-ds") for kind in ("png", "svg")
    }
    assert {path.name for path in folder.iterdir()} == tables | figures | {"cells.json", "index.html"}
    assert len(whole.tables["online"]) == len(table(folder / "online.csv"))
    assert all(float(row["low"]) < float(row["loss"]) < float(row["high"]) for row in table(folder / "online.csv"))


def test_the_page_needs_nothing_from_elsewhere_and_shows_the_published_numbers(whole):
    page = whole.page.read_text()
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)""", page)
    assert page.count("data:image/svg+xml;base64,") == 4
    assert all(number in page for number in ("0.0947", "0.0956", "0.0935", "0.2071", "0.0853"))


def played(problem, folder, threads=1):
    rows = online.sweep(problem, TaskRunner(ResultsFile(folder / "cells.json"), threads), folder=None)
    return [(row["player"], row["leaves"], row["bandwidth"], row["loss"]) for row in rows]


@pytest.fixture
def problem():
    return Selection(["ds"], rounds=400).problems()[0]


def test_a_finished_run_is_not_run_again(whole, problem, monkeypatch):
    monkeypatch.setattr(online, "_measure", lambda *_: 1 / 0)
    assert len(played(problem, whole.page.parent)) == len(whole.tables["online"])


def test_losses_do_not_depend_on_the_number_of_threads(whole, problem, tmp_path):
    rows = whole.tables["online"]
    assert played(problem, tmp_path) == [(row["player"], row["leaves"], row["bandwidth"], row["loss"]) for row in rows]


def test_a_run_that_was_stopped_goes_on(problem, tmp_path, monkeypatch):
    started, whole = [], online._measure

    def stopping(problem, player, report):
        started.append(player)
        if len(started) == 5:
            raise KeyboardInterrupt
        return whole(problem, player, report)

    monkeypatch.setattr(online, "_measure", stopping)
    with pytest.raises(KeyboardInterrupt):
        played(problem, tmp_path)
    kept = len(json.loads((tmp_path / "cells.json").read_text()))
    assert kept >= 4
    before = len(started)
    rows = played(problem, tmp_path)
    assert len(started) - before <= len(rows) - kept


def test_other_rounds_are_other_results(tmp_path):
    first, second = (run(tmp_path, "offline", rounds=rounds).tables["offline"] for rounds in (400, 500))
    assert [row["rounds"] for row in first] != [row["rounds"] for row in second]


def test_a_full_disk_is_one_sentence_and_leaves_no_half_written_file(tmp_path, monkeypatch):
    whole = pathlib.Path.write_bytes

    def full(path, content):
        if "index.html" in path.name:
            whole(path, content[:100])
            raise OSError(28, "No space left on device")
        return whole(path, content)

    monkeypatch.setattr(pathlib.Path, "write_bytes", full)
    with pytest.raises(FileError, match=r"Cannot write .*index.html: No space left on device. Free some space"):
        run(tmp_path, "offline")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("index.html")]


def test_a_damaged_memory_is_one_sentence(tmp_path):
    (tmp_path / "cells.json").write_text("{")
    with pytest.raises(FileError, match=r"cells.json: cannot read earlier results: .* Delete it to start over"):
        run(tmp_path, "online")


@pytest.mark.parametrize(
    ("experiments", "settings", "sentence"),
    [
        (["onlien"], {}, "got 'onlien'. Did you mean online"),
        ([], {"datasets": ["sd"]}, "got 'sd'. Did you mean ds"),
        ([], {"rounds": 3}, "rounds must be a whole number of at least 100, got 3"),
        ([], {"target": "price"}, "target requires data"),
        ([], {"data": "mine.csv", "target": "a"}, "datasets and data cannot be combined"),
        ([], {"data": "mine.csv"}, "mine.csv needs a target"),
        ([], {"seed": -1}, "seed must be"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_written(tmp_path, experiments, settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        run(tmp_path / "out", *experiments, **settings)
    assert not (tmp_path / "out").exists()


def test_vowpal_wabbit_that_is_asked_for_but_not_there_says_how_to_install_it(tmp_path, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(MissingDependency, match="Install it: pip install vowpalwabbit"):
        run(tmp_path, vw=True)
