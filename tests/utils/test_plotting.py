import csv
import importlib
import sys
from itertools import pairwise

import numpy as np
import pytest

import manul
from manul import plotting as plots
from manul.errors import FileError, InputError, MissingDependency, ParameterError


@pytest.fixture
def world():
    return manul.worlds.linear(rounds=200, width=3)


def drawn(axes, label):
    return next(line for line in axes.lines if line.get_label() == label)


def test_a_loss_curve_ends_at_the_mean_loss():
    losses = np.random.default_rng(0).random(1000)
    axes = plots.loss_curve(losses)
    assert drawn(axes, "running mean").get_ydata()[-1] == pytest.approx(losses.mean())
    assert drawn(axes, "mean of last 50").get_ydata()[-1] == pytest.approx(losses[-50:].mean())


def test_a_run_of_one_round_can_be_drawn():
    assert plots.loss_curve([0.5]).get_xlabel() == "rounds"


def test_no_rounds_are_refused():
    with pytest.raises(InputError, match="losses must not be empty"):
        plots.loss_curve([])


def test_several_runs_fit_on_the_same_axes_in_their_own_colours():
    axes = plots.loss_curve([0.1, 0.1], label="low")
    plots.loss_curve([0.9, 0.9], axes, label="high")
    assert axes.get_ylim()[0] == 0
    assert axes.get_ylim()[1] > 0.9
    assert drawn(axes, "low: running mean").get_color() != drawn(axes, "high: running mean").get_color()


def test_a_distribution_and_a_run_draw_themselves_on_given_axes(world):
    axes = plots.new_axes()
    assert manul.Distribution.uniform(0.0, 2.0).plot(axes) is axes
    assert manul.simulate(manul.Cats(leaves=8, bandwidth=1 / 8), world).plot().get_ylabel() == "loss"


def test_a_density_is_drawn_from_edge_to_edge():
    line = plots.density_plot([0.0, 1.0, 3.0], [0.5, 0.25]).lines[0]
    assert line.get_xydata().tolist() == [[0.0, 0.5], [1.0, 0.25], [3.0, 0.25]]


def test_the_window_of_a_policy_map_is_two_bandwidths_wide(world):
    axes = plots.policy_map(manul.Cats(leaves=8, bandwidth=1 / 8), world.contexts, 1, world.targets)
    low, high = (drawn(axes, f"_window {end}").get_ydata() for end in ("low", "high"))
    assert np.allclose(high - low, 1 / 4)
    assert np.allclose(drawn(axes, plots.CENTRE).get_ydata(), (low + high) / 2)


def test_a_policy_map_needs_no_targets(world):
    axes = plots.policy_map(manul.Cats(leaves=8, bandwidth=1 / 8), world.contexts, 2)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == [plots.CENTRE, "window"]


def test_a_policy_on_names_is_drawn_along_numbers_and_texts():
    cities = {"city": ["Oslo", "Rome", None, "Rome"], "age": [20.0, 30.0, np.nan, 60.0]}
    policy = manul.Mapped(agent=manul.Cats(leaves=8, bandwidth=1 / 8), features=manul.maps.Columns.fit(cities))
    assert policy.plot("age", cities).get_xlabel() == "age"
    axes = policy.plot("city", cities)
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["Oslo", "Rome"]
    with pytest.raises(ParameterError, match=r"unknown feature 'ag'\. Did you mean age\?"):
        policy.plot("ag", cities)


def test_a_policy_is_drawn_along_a_log(world):
    log = manul.simulate(manul.Cats(leaves=8, bandwidth=1 / 8), world).log
    assert manul.Cats(leaves=8, bandwidth=1 / 8).plot(1, log).get_xlabel() == "feature 1"


def test_cells_are_labelled_as_people_write_them_and_saved_as_they_are(tmp_path):
    axes = plots.cell_map([(0.25, 16, 0.3), (0.0625, 16, 0.2), (0.0625, 128, 0.1)])
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["1/16", "1/4"]
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["16", "128"]
    plots.save(axes, tmp_path / "cells.png")
    assert (tmp_path / "cells.csv").read_text().splitlines() == [
        "series,leaves,bandwidth,objective",
        "lowest,128.0,0.0625,",
        "objective,16.0,0.0625,0.2",
        "objective,128.0,0.0625,0.1",
        "objective,16.0,0.25,0.3",
    ]


def test_the_title_of_cells_names_the_chosen_one():
    axes = plots.cell_map([(0.25, 16, 0.3), (0.0625, 128, 0.1)], chosen=(0.25, 16, 0.3))
    assert axes.get_title() == "chosen tree: bandwidth 1/4 and 16 leaves, objective 0.3000"
    assert axes.lines[0].get_xydata().tolist() == [[16, 0.25]]


def test_estimates_are_named_beside_their_intervals():
    axes = plots.interval_plot(0.25, 0.2, 0.3, label="ours")
    plots.interval_plot(0.4, 0.3, 0.5, axes, label="theirs")
    assert [tick.get_text() for tick in axes.get_yticklabels()] == ["ours", "theirs"]
    assert axes.get_legend() is None


def test_a_feature_that_is_not_there_is_refused(world):
    with pytest.raises(ParameterError, match="feature must be a column from 0 to 2, got 3"):
        plots.policy_map(manul.Cats(leaves=8, bandwidth=1 / 8), world.contexts, 3)


def test_targets_of_another_length_are_refused(world):
    with pytest.raises(InputError, match="one number for each of the 200 contexts"):
        plots.policy_map(manul.Cats(leaves=8, bandwidth=1 / 8), world.contexts, 0, [0.5])


def test_a_picture_is_saved_with_its_table(tmp_path):
    plots.save(plots.level(0.3, plots.loss_curve([0.5, 0.25]), label="to beat"), tmp_path / "loss.png")
    with (tmp_path / "loss.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["series"] == "to beat"]
    assert rows == [{"series": "to beat", "rounds": str(x), "loss": "0.3"} for x in (1.0, 2.0)]
    assert (tmp_path / "loss.png").read_bytes().startswith(b"\x89PNG")


def test_a_figure_of_several_axes_has_one_table(tmp_path):
    figure = plots.Figure()
    left, right = figure.subplots(1, 2)
    plots.loss_curve([0.5], left)
    plots.density_plot([0, 1], [1], right)
    plots.save(figure, tmp_path / "both.png")
    assert (tmp_path / "both.csv").read_text().splitlines()[0] == "series,rounds,loss,action,density"


def test_a_picture_that_cannot_be_written_is_one_sentence(tmp_path):
    with pytest.raises(FileError, match=r"Cannot write .*: No such file or directory"):
        plots.save(plots.loss_curve([0.5]), tmp_path / "nowhere" / "loss.png")


def test_a_picture_of_an_unknown_kind_is_refused(tmp_path):
    with pytest.raises(ParameterError, match=r"path must end in \.png"):
        plots.save(plots.loss_curve([0.5]), tmp_path / "loss.doc")


def test_without_matplotlib_the_error_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    monkeypatch.delitem(sys.modules, "manul.plotting")
    with pytest.raises(MissingDependency, match=r"pip install 'manul\[plot\]'"):
        importlib.import_module("manul.plotting")


def test_years_are_years_and_only_whole_ones():
    fields = {"year": [2015.0, 2016.0, 2017.0, 2018.0]}
    policy = manul.Mapped(agent=manul.Cats(leaves=8, bandwidth=1 / 8), features=manul.maps.Columns.fit(fields))
    axes = policy.plot("year", fields)
    axes.figure.canvas.draw()
    texts = [tick.get_text() for tick in axes.get_xticklabels()]
    assert {"2015", "2016", "2017", "2018"} <= set(texts)
    assert not [text for text in texts if "," in text or "." in text]


@pytest.mark.parametrize("span", [(0, 1), (0.0001, 0.0005), (500, 40_000), (0, 250_000), (1e6, 9e7), (-1234.5, 1234.5)])
def test_labels_of_ticks_do_not_overlap(span):
    panels = plots.new_grid(3)
    for axes in panels:
        plots.style(axes.plot(span, [0, 1])[0].axes, "action", "loss")
    panels[0].figure.canvas.draw()
    for axes in panels:
        boxes = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        inside = [box for box in boxes if axes.bbox.x0 - 1 <= (box.x0 + box.x1) / 2 <= axes.bbox.x1 + 1]
        assert len(inside) >= 2
        assert all(left.x1 < right.x0 for left, right in pairwise(inside))


def test_long_options_are_written_aslant():
    names = [f"an option with a long name {number}" for number in range(6)]
    assert plots.label_options(plots.new_axes(), names).get_xticklabels()[0].get_rotation() == 30
    assert plots.label_options(plots.new_axes(), ["a", "b"]).get_xticklabels()[0].get_rotation() == 0
