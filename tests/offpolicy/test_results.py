"""The printed table of candidates."""

import manul
from manul.offpolicy.optimization.optimize import Optimized
from manul.offpolicy.optimization.results import Row, Table
from manul.outcomes import LOSSES


def rows(count):
    return tuple(Row("Cats", 0.25, 4, 0.0, 0.0, float(n * 7 % count)) for n in range(count))


def test_the_ten_best_of_many_candidates_are_printed_best_first():
    head, *lines, last = str(Table(rows(40))).splitlines()
    assert head.split()[-1] == "objective"
    assert [float(line.split()[5]) for line in lines] == list(range(10))
    assert lines[0].endswith("<- lowest")
    assert last == "and 30 more candidates"


def test_the_chosen_candidate_is_always_printed():
    lines = str(Table(rows(40), chosen=3)).splitlines()
    assert [line for line in lines if line.endswith("<- chosen")] == [lines[11]]
    assert lines[-2] == "and 29 more candidates"
    assert lines[-1].startswith("Of candidates that this log cannot distinguish")


def test_few_candidates_are_printed_in_their_order():
    lines = str(Table(rows(10), (Row("logged", None, None, 0.5, 0.0, 0.5),))).splitlines()
    assert [float(line.split()[5]) for line in lines[1:11]] == [float(n * 7 % 10) for n in range(10)]
    assert lines[11].startswith("logged")


def optimized(chosen, outcome=LOSSES):
    sign = outcome.to_loss(1)
    losses = (("auto", None, 0.2), ("Cats", 16, 0.15), ("Cats", 128, 0.3))
    table = tuple(Row(name, 0.25, leaves, sign * each, 0.0, sign * each) for name, leaves, each in losses)
    return Optimized(Table(table, chosen=chosen, outcome=outcome), manul.Auto())


def test_the_title_of_the_plot_names_the_chosen_candidate_and_its_value():
    assert optimized(2).plot().get_title() == "chosen tree: bandwidth 1/4 and 128 leaves, objective 0.3000"
    lowest = "tree with the lowest objective: bandwidth 1/4 and 16 leaves, objective 0.1500"
    assert optimized(0).plot().get_title() == f"chosen: auto, objective 0.2000\n{lowest}"


def test_the_title_of_the_plot_has_rewards_if_the_log_has_them():
    highest = "tree with the highest objective: bandwidth 1/4 and 128 leaves, objective 0.3000"
    assert (
        optimized(0, manul.Outcome.of(rewards="auto")).plot().get_title()
        == f"chosen: auto, objective 0.2000\n{highest}"
    )
