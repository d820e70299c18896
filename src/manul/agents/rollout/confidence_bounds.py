"""Bounds of a sum of expected values that hold at all times at once, so that looking often costs nothing.

Let x be terms whose expected values, given the past, are m, with x >= -b. For 0 <= r < 1 and y >= -1,
exp(r y - (-log(1 - r) - r) y^2) <= 1 + r y (Fan, Grama and Liu, 2015), so that the product of
exp(r (x - m) / b - (-log(1 - r) - r) (x / b)^2) over the terms is a nonnegative supermartingale, whatever the m are. By
Ville's inequality, it ever exceeds 1 / a with probability at most a. So the sum of x exceeds that of m by at most
`radius`, at all times, with probability 1 - a: the smallest of the bounds of twelve bets r, each with a / 12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from manul.utils.validation import Floats

BETS = 0.9 * 2.0 ** -np.arange(12)
COSTS = -np.log1p(-BETS) - BETS


def radius(squares: float, bound: float, chance: float) -> float:
    """How far a sum of terms can be above that of their expected values, except with a small chance.

    `squares` is the sum of the squared terms, which are at least `-bound`.

    >>> round(radius(squares=100.0, bound=1.0, chance=0.05), 1)
    37.6
    """
    return float(bound * ((math.log(len(BETS) / chance) + COSTS * (squares / bound**2)) / BETS).min())


_UNIT = 2**32  # of whole sums
Pair = tuple[float, float]
NOTHING_UNKNOWN: tuple[Pair, Pair] = (0.0, 0.0), (0.0, 0.0)


@dataclass
class WholeSums:
    """Sums of terms and of their squares that are rounded up to whole units, so that terms can be taken away again."""

    total: int = 0
    squares: int = 0

    def add(self, term: float, square: float, times: int = 1) -> None:
        """Add a term so many times, or take it away."""
        self.total += times * math.ceil(term * _UNIT)
        self.squares += times * math.ceil(square * _UNIT)


@dataclass
class Sums:
    """The number, the sum and the sum of the squares of terms. `unknown` are the sums and squares of further terms whose losses
    never came: first if these were all as low as possible, then if they were all as high as possible. Bounds hold for both.

    >>> sums = Sums()
    >>> sums.add(np.array([1.0, 3.0]))
    >>> sums
    Sums(count=2, total=4.0, squares=10.0, unknown=((0.0, 0.0), (0.0, 0.0)))
    >>> sums.add_unknown(-1.0, 5.0)
    >>> sums.upper(5.0, 0.05) > sums.total + 5.0
    True
    """

    count: int = 0
    total: float = 0.0
    squares: float = 0.0
    unknown: tuple[Pair, Pair] = NOTHING_UNKNOWN

    def add(self, terms: Floats) -> None:
        self.count += len(terms)
        self.total += float(terms.sum())
        self.squares += float(terms @ terms)

    def add_unknown(self, lowest: float, highest: float) -> None:
        """Add a term without a loss: its values with the lowest and the highest loss."""
        (low, low_squares), (high, high_squares) = self.unknown
        self.unknown = (low + lowest, low_squares + lowest**2), (high + highest, high_squares + highest**2)

    def plus(self, *others: WholeSums) -> Sums:
        """The sums with terms that are not certain to stay."""
        total, squares = sum(each.total for each in others), sum(each.squares for each in others)
        return Sums(self.count, self.total + total / _UNIT, self.squares + squares / _UNIT, self.unknown)

    def merged(self, other: Sums) -> Sums:
        pairs = zip(self.unknown, other.unknown, strict=True)
        low, high = ((one[0] + two[0], one[1] + two[1]) for one, two in pairs)
        counts = self.count + other.count, self.total + other.total, self.squares + other.squares
        return Sums(*counts, (low, high))

    @property
    def cases(self) -> list[Pair]:
        """The sum and the sum of the squares of all terms, for the lowest and the highest unknown losses."""
        if self.unknown == NOTHING_UNKNOWN:
            return [(self.total, self.squares)]
        return [(self.total + total, self.squares + squares) for total, squares in self.unknown]

    def lower(self, bound: float, chance: float) -> float:
        """A lower bound of the sum of the expected values of terms that are at least `-bound`."""
        return min(total - radius(squares, bound, chance) for total, squares in self.cases)

    def upper(self, bound: float, chance: float) -> float:
        """An upper bound of the sum of the expected values of terms that are at most `bound`."""
        return max(total + radius(squares, bound, chance) for total, squares in self.cases)
