"""Bounds of a sum of expected values that hold at all times at once, so that looking often costs nothing.

Let y be terms of at most 1 whose expected values, given the past, are m. For 0 <= r < 1, 1 - r y is not negative and has the
expected value 1 - r m <= exp(-r m), so that the product of (1 - r y) exp(r m) over the terms is a nonnegative supermartingale,
whatever the m are: the wealth of somebody who bets the share r on low terms. So is a weighted mean of the products of twelve bets. By
Ville's inequality, it ever exceeds 1 / a with probability at most a. So the sum of m is at most `upper_end`, the number at which the
mean is 1 / a, at all times, with probability 1 - a. The mean is never much below the best of its bets, which fits how large and
how scattered the terms are.

Terms that are known only to be at most some number count as that number, which makes every product smaller and the end higher.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from manul.utils.validation import Floats

# The best bet is the mean of the terms divided by their variance. The smallest one fits tests of millions of decisions; large ones,
# which fit losses of small variance and tests of a few hundred decisions, get somewhat larger weights.
_SHARES = 0.97 * 1.7 ** -np.arange(12)
_WEIGHTS = np.arange(1, 13) ** -0.5
BETS: tuple[float, ...] = tuple(_SHARES.tolist())
LOG_WEIGHTS: tuple[float, ...] = tuple(np.log(_WEIGHTS / _WEIGHTS.sum()).tolist())
Logs = tuple[float, ...]
NOTHING: Logs = (0.0,) * len(BETS)
_UNIT = 2.0**32  # of whole sums
_PRECISION = 1e-9  # of an end


def upper_end(logs: Sequence[float], chance: float) -> float:
    """An upper bound of the sum of expected values, except with a small chance, given the logarithms of the products.

    >>> round(upper_end(NOTHING, chance=0.05), 1)
    4.7
    >>> upper_end([100 * math.log1p(bet / 2) for bet in BETS], chance=0.05) < -35
    True
    """
    target, logs = -math.log(chance), list(map(float.__add__, logs, LOG_WEIGHTS))
    # A convex, increasing function of the end: Newton's method comes down from the end of the best bet alone.
    end = min((target - log) / bet for log, bet in zip(logs, BETS, strict=True))
    for _ in range(100):
        exponents = [log + bet * end for log, bet in zip(logs, BETS, strict=True)]
        largest = max(exponents)
        weights = [math.exp(each - largest) for each in exponents]
        total = sum(weights)
        slope = sum(map(float.__mul__, weights, BETS)) / total
        step = (largest + math.log(total) - target) / slope
        end -= step
        if step <= _PRECISION * max(abs(end), 1.0):
            break
    return end


def bet_logs(terms: Floats) -> Floats:
    """The logarithms of 1 - r y for terms of at most 1, a row per bet."""
    logs: Floats = np.log1p(-np.multiply.outer(_SHARES, terms))
    return logs


@dataclass
class WholeLogs:
    """Logarithms of products that are rounded down to whole units, so that terms can be taken away again."""

    logs: tuple[int, ...] = (0,) * len(BETS)

    @classmethod
    def of(cls, term: float) -> WholeLogs:
        """Those of one term of at most 1."""
        return cls(tuple([math.floor(math.log1p(-bet * term) * _UNIT) for bet in BETS]))

    @property
    def negative(self) -> WholeLogs:
        """What takes the terms away if it is added."""
        return WholeLogs(tuple([-log for log in self.logs]))

    def add(self, other: WholeLogs) -> None:
        """Add the terms of others."""
        self.logs = tuple(map(int.__add__, self.logs, other.logs))

    def remove(self, other: WholeLogs) -> None:
        """Take the terms of others away."""
        self.logs = tuple(map(int.__sub__, self.logs, other.logs))


@dataclass
class Wealth:
    """The number and the sum of terms of at most 1, and the logarithms of the products of 1 - r y for each bet r. `unknown` are those of
    further terms whose losses never came: first if these were all as low as possible, then if they were all as high as possible.
    The upper end holds for both.

    >>> wealth = Wealth()
    >>> wealth.add(np.array([-1.0, 0.5]))
    >>> wealth.count, wealth.total
    (2, -0.5)
    >>> before = wealth.upper(0.05)
    >>> wealth.add_unknown(-1.0, 1.0)
    >>> wealth.upper(0.05) > before
    True
    """

    count: int = 0
    total: float = 0.0
    logs: Logs = NOTHING
    unknown: tuple[Logs, Logs] | None = None

    def add(self, terms: Floats) -> None:
        self.count += len(terms)
        self.total += float(terms.sum())
        self.logs = _sum(self.logs, bet_logs(terms).sum(1).tolist())

    def add_unknown(self, lowest: float, highest: float) -> None:
        """Add a term without a loss: its values with the lowest and the highest loss."""
        low, high = self.unknown or (NOTHING, NOTHING)
        self.unknown = _sum(low, _logs(lowest)), _sum(high, _logs(highest))

    def plus(self, *others: WholeLogs) -> Wealth:
        """The wealth with terms that are not certain to stay."""
        whole = [sum(logs) / _UNIT for logs in zip(*(each.logs for each in others), strict=True)]
        return Wealth(self.count, self.total, _sum(self.logs, whole), self.unknown)

    def merged(self, other: Wealth) -> Wealth:
        unknown = None
        if self.unknown or other.unknown:
            pairs = zip(self.unknown or (NOTHING,) * 2, other.unknown or (NOTHING,) * 2, strict=True)
            low, high = (_sum(*pair) for pair in pairs)
            unknown = low, high
        return Wealth(self.count + other.count, self.total + other.total, _sum(self.logs, other.logs), unknown)

    @property
    def cases(self) -> list[Logs]:
        """The logarithms with all terms, for the lowest and the highest unknown losses."""
        return [self.logs] if self.unknown is None else [_sum(self.logs, each) for each in self.unknown]

    def upper(self, chance: float) -> float:
        """An upper bound of the sum of the expected values."""
        return max(upper_end(logs, chance) for logs in self.cases)


def _logs(term: float) -> list[float]:
    return [math.log1p(-bet * term) for bet in BETS]


def _sum(one: Sequence[float], other: Sequence[float]) -> Logs:
    return tuple(map(float.__add__, one, other))
