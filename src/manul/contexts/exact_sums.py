"""Sums of floats without rounding, so that a mean depends neither on the order of the rows nor on their batches."""

from __future__ import annotations

import numpy as np

from manul.utils.validation import Floats

_UNIT = 1126  # sums are whole multiples of 2**-_UNIT, of which every float is one
_LOW = 27  # bits of the lower part of a float's 53 bits; sums of 2**26 such parts are exact in floats
_ROWS = 2**26


def add(total: int, values: Floats) -> int:
    """A sum in multiples of the unit, with finite values added.

    >>> mean(add(add(0, np.array([1e100, 1.0])), np.array([-1e100])), 3)
    0.3333333333333333
    """
    for first in range(0, len(values), _ROWS):
        fractions, exponents = np.frexp(values[first : first + _ROWS])
        whole = np.ldexp(fractions, 53).astype(np.int64)
        base = int(exponents.min()) if len(exponents) else 0
        bins = exponents - base
        high = np.bincount(bins, weights=(whole >> _LOW).astype(np.float64))
        low = np.bincount(bins, weights=(whole & (2**_LOW - 1)).astype(np.float64))
        for place in np.flatnonzero((high != 0) | (low != 0)).tolist():
            total += ((int(high[place]) << _LOW) + int(low[place])) << (place + base - 53 + _UNIT)
    return total


def mean(total: int, count: int) -> float:
    """The mean of a sum, rounded once; 0 if there are no values.

    >>> mean(add(0, np.array([0.1, 0.2, 0.3])), 3)
    0.2
    """
    return total / (count << _UNIT) if count else 0.0
