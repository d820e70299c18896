"""Cells: the parts of a knob in which decisions are counted. A range has 32 equal parts, steps and options have one cell each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.actions.knobs import Choice, Knob, KnobValue, Span, Stepped
from manul.utils.validation import Floats

# The most cells of a knob; there are no more options, and more steps share cells.
CELLS = 32


def cell_count(knob: Knob) -> int:
    """The number of cells of a knob.

    >>> cell_count(Span(0.0, 1.0)), cell_count(Stepped(1, 14, 1)), cell_count(Choice(["a", "b"]))
    (32, 14, 2)
    """
    return CELLS if isinstance(knob, Span) else min(CELLS, knob.kind[1])


def positions(knob: Knob, values: Sequence[Any]) -> Floats:
    """The positions of values that the knob has: shares of its range, or numbers of options."""
    if isinstance(knob, Span):
        return (np.array(values) - knob.low) / (knob.high - knob.low)
    return np.array([knob.position(value, "action") for value in values])


def cells(knob: Knob, places: Floats) -> npt.NDArray[np.int64]:
    """The cells of positions.

    >>> cells(Stepped(1, 14, 1), positions(Stepped(1, 14, 1), [1.0, 14.0]))
    array([ 0, 13])
    """
    scaled = places if isinstance(knob, Choice) else places * cell_count(knob)
    return scaled.astype(np.int64).clip(0, cell_count(knob) - 1)


def cell_volumes(knob: Knob) -> Floats:
    """The length of each cell, or the number of its steps or options.

    >>> cell_volumes(Choice(["a", "b"])), cell_volumes(Stepped(1, 33, 1))[-3:]
    (array([1., 1.]), array([1., 1., 1.]))
    """
    if isinstance(knob, Stepped):
        steps = (np.arange(knob.count) + 0.5) / knob.count
        return np.bincount(cells(knob, steps), minlength=cell_count(knob)).astype(np.float64)
    return np.full(cell_count(knob), knob.volume / cell_count(knob))


def middles(knob: Knob, count: int | None = None) -> list[KnobValue]:
    """The option or the value in the middle of each cell, or of `count` equal parts of a knob that has more.

    >>> middles(Choice(["a", "b"])), middles(Stepped(1, 3, 1)), middles(Span(0.0, 1.0), 2)
    (['a', 'b'], [1.0, 2.0, 3.0], [0.25, 0.75])
    """
    if isinstance(knob, Choice):
        return list(knob.options)
    parts = min(cell_count(knob), count or CELLS)
    return [knob.value((part + 0.5) / parts) for part in range(parts)]


def cell_densities(knob: Knob, marginal: Any) -> Floats:
    """The distribution of a knob over its cells: the density of a range, the probability of steps and options."""
    count = cell_count(knob)
    if isinstance(knob, Choice):
        return np.array([marginal.density(option) for option in knob.options])
    if isinstance(knob, Stepped):
        places = cells(knob, positions(knob, marginal.positions.tolist()))
        return np.bincount(places, marginal.masses, count).astype(np.float64, copy=False)
    assert isinstance(knob, Span)
    means: Floats = marginal.mean_densities(np.linspace(knob.low, knob.high, count + 1))
    return means
