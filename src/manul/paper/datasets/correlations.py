"""Reorders sampled columns so that their correlations are those of a table (Iman and Conover, 1982).

The smallest linear map that gives the numeric columns the target covariances, with each other and with the categories,
defines a new order of the rows; each column then keeps its values but takes that order. A value that many rows share is
first spread out half way to its neighbours, so that a small change moves a small share of those rows to the next value.
Keeping the values undoes a part of the change, so each of several passes overshoots a little.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manul.utils.validation import Floats

Codes = NDArray[np.int64]
PASSES, OVERSHOOT = 6, 1.5
# Only frequent categories keep their correlations: at most so many per column, each in at least this share of the rows.
MOST_CATEGORIES, RARE = 256, 1e-3
RIDGE = 1e-6  # keeps the covariance matrices invertible


@dataclass(frozen=True, eq=False)
class Cells:
    """Numeric columns, NaN for missing values, and categorical columns as codes, 0 for the most frequent category."""

    numbers: Sequence[Floats]
    categories: Sequence[Codes]

    def __len__(self) -> int:
        return len([*self.numbers, *self.categories][0])


def reorder(sample: Cells, table: Cells, rng: np.random.Generator) -> list[Floats]:
    """Reorder the numeric columns of a sample so that they have the correlations of the table."""
    if not sample.numbers or len(sample.numbers) + len(sample.categories) < 2 or len(table) < 3:
        return list(sample.numbers)
    counts = [_frequent_categories(codes) for codes in table.categories]
    spreads = [_spread(values) for values in table.numbers]
    target = _Moments.of(_standardise(table.numbers, spreads), _Indicators(table.categories, counts))
    indicators = _Indicators(sample.categories, counts)
    columns = [_Ordered(values) for values in sample.numbers]
    for _ in range(PASSES):
        scores = _map(_standardise([column.values for column in columns], spreads), indicators, target)
        for column, score, spread in zip(columns, scores, spreads, strict=True):
            column.follow(score * spread, rng)
    return [column.values for column in columns]


class _Ordered:
    """A column whose values are fixed and whose order changes: the sorted values, and the rank of each row."""

    def __init__(self, values: Floats) -> None:
        self.rows = len(values)
        self.known = np.flatnonzero(np.isfinite(values))
        order = np.argsort(values[self.known], kind="stable")
        self.ordered = values[self.known][order]
        self.ranks = np.empty(len(order), dtype=np.int64)
        self.ranks[order] = np.arange(len(order))
        distinct, number = np.unique(self.ordered, return_inverse=True)
        half = np.diff(distinct) / 2 if len(distinct) > 1 else np.zeros(1)
        self.below, self.above = np.append(half[:1], half)[number], np.append(half, half[-1:])[number]

    @property
    def values(self) -> Floats:
        values = np.full(self.rows, np.nan)
        values[self.known] = self.ordered[self.ranks]
        return values

    def follow(self, scores: Floats, rng: np.random.Generator) -> None:
        """Order the rows by scores, each spread out half way to the neighbouring values."""
        below, above = self.below[self.ranks], self.above[self.ranks]
        spread = scores[self.known] + rng.random(len(self.known)) * (below + above) - below
        self.ranks[np.argsort(spread)] = np.arange(len(self.known))


class _Indicators:
    """Centred indicator columns of the frequent categories, without building them."""

    def __init__(self, columns: Sequence[Codes], counts: Sequence[int]) -> None:
        self.counts = counts
        self.codes = [np.minimum(codes, count) for codes, count in zip(columns, counts, strict=True)]
        self.shares = np.concatenate([np.empty(0), *map(self._shares, self.codes, counts)])
        self.covariances = self._joint_shares() - np.outer(self.shares, self.shares) + RIDGE * np.eye(len(self.shares))

    @staticmethod
    def _shares(codes: Codes, count: int) -> Floats:
        return np.bincount(codes, minlength=count + 1)[:count] / len(codes)

    def covariances_with(self, numbers: Floats) -> Floats:
        """Covariances, a row per category and a column per centred numeric column."""
        parts = [np.empty((0, len(numbers)))]
        for codes, count in zip(self.codes, self.counts, strict=True):
            sums = [np.bincount(codes, column, minlength=count + 1)[:count] for column in numbers]
            parts.append(np.column_stack(sums) / len(codes))
        return np.concatenate(parts)

    def _joint_shares(self) -> Floats:
        """The share of rows with both of two categories."""
        numbers = range(len(self.codes))
        rows = [np.concatenate([self._joint_shares_of(one, two) for two in numbers], axis=1) for one in numbers]
        return np.concatenate(rows) if rows else np.empty((0, 0))

    def _joint_shares_of(self, one: int, two: int) -> Floats:
        shape = self.counts[one] + 1, self.counts[two] + 1
        counts = np.bincount(self.codes[one] * shape[1] + self.codes[two], minlength=shape[0] * shape[1])
        return counts.reshape(shape)[:-1, :-1] / len(self.codes[one])

    def add(self, coefficients: Floats, total: Floats) -> None:
        """Add linear functions of the indicators; coefficients have a row per category, and a column per row of the total."""
        for own, row in zip(coefficients.T, total, strict=True):
            first = 0
            for codes, count in zip(self.codes, self.counts, strict=True):
                row += np.append(own[first : first + count], 0.0)[codes]
                first += count
            row -= self.shares @ own


@dataclass(frozen=True, eq=False)
class _Moments:
    """The covariances of numeric columns with each other, and those of categories (rows) with them."""

    numbers: Floats
    mixed: Floats

    @classmethod
    def of(cls, numbers: Floats, indicators: _Indicators) -> _Moments:
        return cls(numbers @ numbers.T / numbers.shape[1], indicators.covariances_with(numbers))


def _map(numbers: Floats, indicators: _Indicators, target: _Moments) -> Floats:
    """Replace the part that the categories explain by its target, and map the residuals to the remaining covariances."""
    now = _Moments.of(numbers, indicators)
    aim = _Moments(_overshoot(now.numbers, target.numbers), _overshoot(now.mixed, target.mixed))
    before, after = (np.linalg.solve(indicators.covariances, moments.mixed) for moments in (now, aim))
    root = _root(now.numbers - before.T @ indicators.covariances @ before)
    inverse = np.linalg.inv(root)
    remaining = _root(root @ (aim.numbers - after.T @ indicators.covariances @ after) @ root)
    smallest = inverse @ remaining @ inverse
    result: Floats = smallest @ numbers
    indicators.add(after - before @ smallest, result)
    return result


def _overshoot(now: Floats, target: Floats) -> Floats:
    return now + OVERSHOOT * (target - now)


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    root: Floats = (vectors * np.sqrt(np.maximum(values, RIDGE))) @ vectors.T
    return root


def _standardise(columns: Sequence[Floats], spreads: Sequence[float]) -> Floats:
    """Numeric columns as centred rows in units of the given spreads, with missing values at the mean."""
    return np.stack(
        [np.nan_to_num(values - _mean(values)) / spread for values, spread in zip(columns, spreads, strict=True)]
    )


def _mean(values: Floats) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else 0.0


def _spread(values: Floats) -> float:
    return float(np.nanstd(values) if np.isfinite(values).any() else 0.0) or 1.0


def _frequent_categories(codes: Codes) -> int:
    """The number of frequent categories; they have the first codes."""
    return int((np.bincount(codes)[:MOST_CATEGORIES] >= RARE * len(codes)).sum())
