"""The mass of a policy on the pieces of the logged distributions, in cells in which both densities are constant.

In such a cell, the importance weight is constant, and it and the policy's probability of the cell are known, whatever action was
logged. Several knobs are independent, so that their cells are combinations of those of each knob, with the product of the
weights and of the masses. If a row has more than `MOST_CELLS` combinations, `DRAWS` of them are drawn from the policy instead, each
with the same share of its mass: sums over them are then right on average, independently of the logged action. The variance of the
covered mass of a row is then at most 1 / 256, and that of weights is usually above 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.actions.pieces import KnobPieces
from manul.utils.validation import Floats

MOST_CELLS, DRAWS = 256, 64
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Masses:
    """Cells of `count` rows, those of a row together: the `rows` they belong to, their weights and the policy's mass of each.

    `pieces` are the numbers of the policy's pieces in which they are, counted over all rows.

    >>> target = KnobPieces.of_rows([[(0.25, 0.75, 2.0)]])
    >>> logged = KnobPieces.of_rows([[(0.0, 0.5, 1.6), (0.5, 1.0, 0.4)]])
    >>> masses = overlay(target, logged)
    >>> masses.weights, masses.masses, masses.covered(2.0)
    (array([1.25, 5.  ]), array([0.5, 0.5]), array([0.5]))
    """

    count: int
    rows: Numbers
    weights: Floats
    masses: Floats
    pieces: Numbers

    def covered(self, bound: float) -> Floats:
        """The mass of the policy in each row where its weights are at most `bound`."""
        return self.integrate(bound, 1.0)

    def integrate(self, bound: float, values: Floats | float) -> Floats:
        """The integral of the `values` of the cells over the mass of the policy where its weights are at most `bound`."""
        kept = np.where(self.weights <= bound, self.masses * values, 0.0)
        return np.asarray(np.bincount(self.rows, kept, self.count), np.float64)

    def select(self, which: slice | npt.NDArray[Any]) -> Masses:
        """The cells of a selection of the rows, in ascending order."""
        chosen = np.zeros(self.count, bool)
        chosen[which] = True
        places, cells = np.cumsum(chosen) - 1, chosen[self.rows]
        rows = places[self.rows[cells]]
        return Masses(int(chosen.sum()), rows, self.weights[cells], self.masses[cells], self.pieces[cells])

    @cached_property
    def largest(self) -> float:
        """The largest weight of any action of these rows; infinite if the policy plays what is never logged."""
        if (self.covered(np.inf) < 1 - 1e-6).any():
            return np.inf
        return float(self.weights.max(initial=0.0))


def overlay(target: KnobPieces, logged: KnobPieces, *, discrete: bool = False) -> Masses:
    """The cells of one knob, from the pieces of the policy and the logged ones; the numbers of steps and options are `discrete`."""
    played = np.flatnonzero(target.densities > 0)
    own_rows = np.repeat(np.arange(len(target)), np.diff(target.starts))[played]
    theirs = np.diff(logged.starts)[own_rows]
    # Every piece that the policy plays is paired with all logged ones of its row.
    own, rows = np.repeat(played, theirs), np.repeat(own_rows, theirs)
    other = np.arange(len(own)) + np.repeat(logged.starts[own_rows] - np.cumsum(theirs) + theirs, theirs)
    lengths = np.minimum(target.highs[own], logged.highs[other]) - np.maximum(target.lows[own], logged.lows[other])
    lengths = lengths + 1.0 if discrete else lengths
    cells = np.flatnonzero((lengths > 0) & (logged.densities[other] > 0))
    own, densities = own[cells], target.densities[own[cells]]
    weights, masses = densities / logged.densities[other[cells]], densities * lengths[cells]
    return Masses(len(target), rows[cells], weights, masses, own)


def combine(knobs: Sequence[Masses], first: int) -> Masses:
    """The cells of several independent knobs; `first` is the number of the first row in the log, which seeds the draws."""
    if len(knobs) == 1:
        return knobs[0]
    counts = np.array([np.bincount(knob.rows, minlength=knob.count) for knob in knobs])
    combinations = counts.prod(axis=0, dtype=np.float64)
    few = combinations <= MOST_CELLS
    parts = [_products(knobs, counts, few), _draws(knobs, counts, ~few, first)]
    order = np.argsort(np.concatenate([part.rows for part in parts]), kind="stable")
    rows, weights, masses = (
        np.concatenate([vars(part)[name] for part in parts])[order] for name in ("rows", "weights", "masses")
    )
    return Masses(knobs[0].count, rows, weights, masses, np.full(len(order), -1))


def _products(knobs: Sequence[Masses], counts: Numbers, which: npt.NDArray[np.bool_]) -> Masses:
    """All combinations of the cells of these rows."""
    pairs = np.where(which, counts.prod(axis=0), 0)
    rows = np.repeat(np.arange(len(pairs)), pairs)
    numbers = np.arange(len(rows)) - np.repeat(np.cumsum(pairs) - pairs, pairs)
    weights, masses = np.ones(len(rows)), np.ones(len(rows))
    for knob, own in zip(knobs, counts, strict=True):
        numbers, places = np.divmod(numbers, own[rows])
        cells = (np.cumsum(own) - own)[rows] + places
        weights, masses = weights * knob.weights[cells], masses * knob.masses[cells]
    return Masses(len(pairs), rows, weights, masses, np.full(len(rows), -1))


def _draws(knobs: Sequence[Masses], counts: Numbers, which: npt.NDArray[np.bool_], first: int) -> Masses:
    """As many combinations of these rows as `DRAWS`, drawn in proportion to their mass."""
    if not which.any():
        return Masses(len(which), *(np.empty(0, kind) for kind in (np.int64, np.float64, np.float64, np.int64)))  # type: ignore[arg-type]
    rows = np.repeat(np.flatnonzero(which), DRAWS)
    rng, weights = np.random.default_rng([first, len(which)]), np.ones(len(rows))
    covered = np.ones(len(which))
    for knob, own in zip(knobs, counts, strict=True):
        ends = np.cumsum(knob.masses)
        starts = np.cumsum(own) - own
        below = np.where(starts > 0, ends[starts - 1], 0.0)
        totals = ends[starts + own - 1] - below
        covered = covered * np.where(which, totals, 1.0)
        cells = np.searchsorted(ends, below[rows] + rng.random(len(rows)) * totals[rows], side="right")
        weights = weights * knob.weights[np.clip(cells, starts[rows], (starts + own - 1)[rows])]
    return Masses(len(which), rows, weights, covered[rows] / DRAWS, np.full(len(rows), -1))
