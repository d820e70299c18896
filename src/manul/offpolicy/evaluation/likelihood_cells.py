"""Rows of a log in cells of similar weight and loss, from which empirical likelihoods are computed in constant memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manul.utils.validation import Floats

_PER_OCTAVE = 8  # cells per doubling of a weight
_OCTAVES = 64  # weights beyond 2^-32 ... 2^32 share the outermost cells
_LOSSES = 32  # cells of a loss
_SMALLEST = 2.0**-32


class Sums(NamedTuple):
    """For each cell: the number of rows, and the means of the weight and of the weight times the loss."""

    counts: Floats
    weights: Floats
    losses: Floats


class Cells:
    """Counts and sums of rows by weight and loss; weights of 0 share a cell, and weights may be negative.

    The edges of the cells do not depend on the rows, and a cell keeps the exact mean of its rows.

    >>> cells = Cells()
    >>> cells.add(np.array([0.0, 0.0, 2.0, 2.1]), np.array([0.1, 0.9, 0.5, 0.51]))
    >>> cells.sums().counts, cells.sums().weights
    (array([2., 2.]), array([0.  , 2.05]))
    """

    def __init__(self) -> None:
        self.keys: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self.totals = np.empty((0, 3))

    def add(self, weights: Floats, losses: Floats) -> None:
        shares = np.clip((losses * _LOSSES).astype(np.int64), 0, _LOSSES - 1)
        keys = (_level(weights) << 8) + np.where(np.abs(weights) < _SMALLEST, 0, shares)
        rows = np.column_stack([np.ones(len(weights)), weights, weights * losses])
        self.keys, cells = np.unique(np.concatenate([self.keys, keys]), return_inverse=True)
        parts = np.concatenate([self.totals, rows])
        self.totals = np.column_stack([np.bincount(cells, column, len(self.keys)) for column in parts.T])

    def sums(self) -> Sums:
        counts = self.totals[:, 0]
        return Sums(counts, *(self.totals[:, 1:] / counts[:, np.newaxis]).T)


def _level(weights: Floats) -> npt.NDArray[np.int64]:
    """The number of the cell of each weight: 0 for weight 0, and even for negative ones."""
    sizes = np.abs(weights)
    octaves = np.log2(np.maximum(sizes, _SMALLEST)) + _OCTAVES / 2
    level = np.minimum((octaves * _PER_OCTAVE).astype(np.int64), _OCTAVES * _PER_OCTAVE) + 1
    return np.where(sizes < _SMALLEST, 0, 2 * level + (weights > 0))
