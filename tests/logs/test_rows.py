"""Rows of logs keep what their actions were drawn from."""

import numpy as np

import manul
from manul.logs.log import Log
from manul.logs.rows import Rows, join_rows


def logs():
    """A log that says what its actions were drawn from, and one that does not."""
    log = manul.simulate(manul.Auto(losses=(0, 1), nearby=0.3), manul.worlds.linear(rounds=30)).log
    return log, Log(log.contexts, log.actions, log.densities, log.losses, action_range=log.action_range)


def test_selected_rows_have_their_own_pieces():
    rows = Rows.of(logs()[0])
    chosen = rows.select(np.array([7, 3]))
    assert [chosen.pieces[""].row(0), chosen.pieces[""].row(1)] == [rows.pieces[""].row(7), rows.pieces[""].row(3)]


def test_joined_rows_have_pieces_or_unknown_ones():
    known, unknown = map(Rows.of, logs())
    joined = join_rows([unknown, known], 0)
    assert unknown.pieces is None
    assert joined.pieces[""].row(29) == []
    assert joined.pieces[""].row(30) == known.pieces[""].row(0)


def test_estimated_densities_have_no_pieces():
    log = logs()[0]
    assert log.with_estimated_densities(log.densities).pieces is None
