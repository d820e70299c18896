"""What a grid holds."""

import pytest

import manul
from manul.errors import ParameterError
from manul.offpolicy.optimization.grid import Grid

SETTINGS = {"actions": (0.0, 32.0), "losses": (0.0, 1.0), "epsilon": 0.0, "seed": 0}


def test_the_papers_grid_is_the_papers():
    shares, leaves = zip(*Grid.paper().cells, strict=True)
    assert (min(shares), max(shares), min(leaves), max(leaves)) == (2**-13, 1 / 2, 4, 2**13)
    assert all(1 <= share * count <= 2**11 for share, count in Grid.paper().cells)


def test_the_authors_left_half_the_range_out():
    assert set(Grid.paper().cells) - set(Grid.paper(half=False).cells) == {(1 / 2, 2**k) for k in range(2, 13)}


def test_bandwidths_are_shares_of_the_range():
    agents = [each.agent for each in Grid(bandwidths=[1 / 4], leaves=[8]).candidates(rule="paper", **SETTINGS)]
    assert [(agent.bandwidth, agent.leaves) for agent in agents] == [(8.0, 8)]


def test_the_rule_says_how_trees_learn():
    grid = Grid(cells=[(1 / 4, 8)])
    assert repr(grid.candidates(rule="path", **SETTINGS)[0].agent).startswith("Cats(")
    assert repr(grid.candidates(rule="paper", **SETTINGS)[0].agent).startswith("Cats.paper(")


def test_a_cell_given_twice_is_one_cell():
    assert len(Grid(cells=[(1 / 4, 8)], bandwidths=[1 / 4, 1 / 8], leaves=[8])) == 2


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "grid must have at least one cell"),
        ({"cells": [(0.75, 8)]}, r"bandwidth must be in \(0, 0.5\]"),
        ({"cells": [(1 / 4, 6)]}, "leaves must be a power of two"),
    ],
)
def test_a_grid_that_cannot_work_is_refused(settings, sentence):
    with pytest.raises(ParameterError, match=sentence):
        Grid(**settings)


def test_an_unknown_rule_is_refused():
    with pytest.raises(ParameterError, match="rule must be 'path', 'paper' or 'margin', got 'best'"):
        manul.optimize(None, rule="best")
