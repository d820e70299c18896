"""Cards in notebooks: small, escaped, fast, and without matplotlib."""

import sys

import numpy as np
import pytest

import manul
from manul.offpolicy.evaluation.comparison_table import Comparison, ComparisonRow
from manul.offpolicy.optimization.results import Row, Table
from manul.utils.html_cards import LONGEST, card, curve

EVIL = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def run():
    return manul.simulate(manul.Cats(leaves=16, bandwidth=1 / 16), manul.worlds.linear(rounds=50_000, width=3))


def shown_values(run):
    context, agent = [0.1, 0.2, 0.3], manul.Cats(leaves=16, bandwidth=1 / 16)
    knobs = manul.Auto(actions={"price": (10, 50), "days": manul.Stepped(1, 9, 1), "text": manul.Choice(["a", "b"])})
    mapped = manul.Mapped(agent=manul.Auto(), features=manul.maps.Crosses())
    distributions = [agent.distribution(context), manul.agents.DiscreteTree(leaves=8).distribution(context)]
    estimate = manul.evaluate(agent, run.log)
    rollout, part = manul.Rollout(agent, baseline=0.5), run.log.rows(slice(2000))
    best = manul.optimize(part)
    results = [best, best.table, best.verdict, manul.compare({"new": agent}, part), rollout.evidence]
    results += [manul.offpolicy.optimize_without_densities(part), manul.Auto().report(context)]
    drawn = [*distributions, knobs.distribution(context)]
    return [agent, knobs, mapped, rollout, run, run.log, estimate, *drawn, *results]


@pytest.fixture(scope="module")
def values(run):
    return shown_values(run)


def test_every_card_is_small(values):
    for value in values:
        html = value._repr_html_()
        assert html.startswith("<div><b>")
        assert len(html) < 20_000


def test_cards_need_no_matplotlib(values, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    assert all(value._repr_html_() for value in values)


def test_names_and_values_of_users_are_escaped():
    log = manul.Log.from_table({EVIL: [EVIL, "b"], "action": [1, 2], "density": [1, 1], "loss": [0, 1]})
    knobs = manul.Auto(actions={EVIL: (10, 50), "text": manul.Choice([EVIL, "b"])})
    objection = manul.offpolicy.Objection("error", EVIL, EVIL)
    estimate = manul.Estimate(0.2, 0.1, 0.3, 9.0, 1.0, 1.0, 9, estimator=EVIL, objections=(objection,))
    row = ComparisonRow(EVIL, "logged", None, 0.2, -0.1, -0.15, -0.05, 1000, 120.0, (objection,))
    table = Table((Row(EVIL, 0.25, 4, 0.2, 0.01, 0.21, 70),))
    for value in (log, knobs, knobs.distribution([0.5]), estimate, Comparison((row,)), table):
        html = value._repr_html_()
        assert "<script" not in html
        assert "&lt;script&gt;" in html


def test_a_log_shows_its_first_rows_and_a_long_value_is_cut(run):
    assert run.log._repr_html_().count("<tr>") == 6
    assert "a" * LONGEST not in card("x", [("y", "a" * 1000)])


def test_sentences_are_never_cut():
    objection = manul.offpolicy.Objection("error", "x", "a" * 1000)
    row = ComparisonRow("new", "logged", None, 0.2, -0.1, -0.15, -0.05, 1000, 120.0, (objection,))
    assert "a" * 1000 in Comparison((row,))._repr_html_()


@pytest.mark.parametrize("draw", ["axes", "figure", "panels"])
def test_plots_show_themselves_in_notebooks(run, draw):
    knobs = manul.Auto(actions={"price": (10, 50), "text": manul.Choice(["a", "b"])})
    drawn = {
        "axes": run.plot,
        "figure": lambda: manul.inspection.effects(knobs, np.zeros((9, 1)) + np.arange(9)[:, None]).plot(),
        "panels": knobs.distribution([0.5]).plot,
    }[draw]()
    assert drawn._repr_png_().startswith(b"\x89PNG")


def test_what_is_drawn_on_axes_of_the_caller_is_not_shown_twice(run):
    from matplotlib.figure import Figure

    assert not hasattr(run.plot(Figure().add_subplot()), "_repr_png_")


def test_an_empty_run_has_a_card(run):
    empty = manul.worlds.Run(run.log.rows(slice(0)), 0.0)
    assert "<svg" not in empty._repr_html_()
    assert "<svg" in run._repr_html_()


def test_a_curve_of_many_points_is_short():
    assert len(curve(np.arange(100_000), np.zeros(100_000))) < 6000
