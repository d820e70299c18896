"""Put the values of drawn columns in another order, so that their correlations are those of a table (Iman and Conover, 1982).

Columns of numbers are moved by the least linear map that gives them the wanted covariances with each other and with the
texts; then each takes its own values back, in the order of the moved ones. What a column holds does not change, only in
which rows. A value that many rows share is spread out to half way to its neighbours before it is moved, so that a small
move takes a small share of those rows over to the next value. Taking values back undoes a part of the move, so each of
several passes aims a little beyond what is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
PASSES, STEP, LEVELS, RARE, RIDGE = 6, 1.5, 256, 1e-3, 1e-6


@dataclass(frozen=True, eq=False)
class Cells:
    """Columns of numbers, with nan for gaps, and columns of texts, each as its place among the texts by falling frequency."""

    numbers: Sequence[Floats]
    texts: Sequence[Codes]

    def __len__(self) -> int:
        return len([*self.numbers, *self.texts][0])


def reordered(drawn: Cells, table: Cells, rng: np.random.Generator) -> list[Floats]:
    """The drawn columns of numbers, in the order that gives them the correlations in the table.

    >>> rng = np.random.default_rng(0)
    >>> one, two = rng.standard_normal((2, 1000))
    >>> after = reordered(Cells([one, two], []), Cells([one, one + two], []), rng)
    >>> round(float(np.corrcoef(after)[0, 1]), 1)
    0.7
    """
    if not drawn.numbers or len(drawn.numbers) + len(drawn.texts) < 2 or len(table) < 3:
        return list(drawn.numbers)
    kept = [_frequent(codes) for codes in table.texts]
    spreads = [_spread(values) for values in table.numbers]
    wanted = _Moments.of(_standard(table.numbers, spreads), _Indicators(table.texts, kept))
    texts = _Indicators(drawn.texts, kept)
    columns = [_Ordered(values) for values in drawn.numbers]
    for _ in range(PASSES):
        moved = _moved(_standard([column.values for column in columns], spreads), texts, wanted)
        for column, towards, spread in zip(columns, moved, spreads, strict=True):
            column.follow(towards * spread, rng)
    return [column.values for column in columns]


class _Ordered:
    """A column whose values stay and whose rows change: the values in order, and the place of each row among them."""

    def __init__(self, values: Floats) -> None:
        self.rows = len(values)
        self.known = np.flatnonzero(np.isfinite(values))
        order = np.argsort(values[self.known], kind="stable")
        self.ordered = values[self.known][order]
        self.places = np.empty(len(order), dtype=np.int64)
        self.places[order] = np.arange(len(order))
        distinct, number = np.unique(self.ordered, return_inverse=True)
        half = np.diff(distinct) / 2 if len(distinct) > 1 else np.zeros(1)
        self.below, self.above = np.append(half[:1], half)[number], np.append(half, half[-1:])[number]

    @property
    def values(self) -> Floats:
        values = np.full(self.rows, np.nan)
        values[self.known] = self.ordered[self.places]
        return values

    def follow(self, towards: Floats, rng: np.random.Generator) -> None:
        """Take the order of other numbers, each spread out as far as its value reaches."""
        below, above = self.below[self.places], self.above[self.places]
        spread = towards[self.known] + rng.random(len(self.known)) * (below + above) - below
        self.places[np.argsort(spread)] = np.arange(len(self.known))


class _Indicators:
    """The frequent texts of columns as centred columns of zeros and ones, which are never written down."""

    def __init__(self, texts: Sequence[Codes], kept: Sequence[int]) -> None:
        self.kept = kept
        self.codes = [np.minimum(codes, most) for codes, most in zip(texts, kept, strict=True)]
        self.shares = np.concatenate([np.empty(0), *map(self._shares, self.codes, kept)])
        self.covariances = self._together() - np.outer(self.shares, self.shares) + RIDGE * np.eye(len(self.shares))

    @staticmethod
    def _shares(codes: Codes, kept: int) -> Floats:
        return np.bincount(codes, minlength=kept + 1)[:kept] / len(codes)

    def with_numbers(self, numbers: Floats) -> Floats:
        """Covariances, a row per text and a column per centred column of numbers."""
        parts = [np.empty((0, len(numbers)))]
        for codes, kept in zip(self.codes, self.kept, strict=True):
            sums = [np.bincount(codes, column, minlength=kept + 1)[:kept] for column in numbers]
            parts.append(np.column_stack(sums) / len(codes))
        return np.concatenate(parts)

    def _together(self) -> Floats:
        """How often two texts are in the same row."""
        numbers = range(len(self.codes))
        rows = [np.concatenate([self._both(one, two) for two in numbers], axis=1) for one in numbers]
        return np.concatenate(rows) if rows else np.empty((0, 0))

    def _both(self, one: int, two: int) -> Floats:
        shape = self.kept[one] + 1, self.kept[two] + 1
        counts = np.bincount(self.codes[one] * shape[1] + self.codes[two], minlength=shape[0] * shape[1])
        shares: Floats = counts.reshape(shape)[:-1, :-1] / len(self.codes[one])
        return shares

    def add(self, coefficients: Floats, total: Floats) -> None:
        """Add linear functions of the indicators; coefficients have a row per text, and a column per row of the total."""
        for own, row in zip(coefficients.T, total, strict=True):
            first = 0
            for codes, kept in zip(self.codes, self.kept, strict=True):
                row += np.append(own[first : first + kept], 0.0)[codes]
                first += kept
            row -= self.shares @ own


@dataclass(frozen=True, eq=False)
class _Moments:
    """The covariances of numbers with each other, and a row per text of its covariances with them."""

    numbers: Floats
    mixed: Floats

    @classmethod
    def of(cls, numbers: Floats, texts: _Indicators) -> _Moments:
        return cls(numbers @ numbers.T / numbers.shape[1], texts.with_numbers(numbers))


def _moved(numbers: Floats, texts: _Indicators, wanted: _Moments) -> Floats:
    """What the texts say is replaced by what they should say, and the rest is mapped to what is then left."""
    now = _Moments.of(numbers, texts)
    aim = _Moments(_beyond(now.numbers, wanted.numbers), _beyond(now.mixed, wanted.mixed))
    before, after = (np.linalg.solve(texts.covariances, moments.mixed) for moments in (now, aim))
    root = _root(now.numbers - before.T @ texts.covariances @ before)
    inverse = np.linalg.inv(root)
    left = _root(root @ (aim.numbers - after.T @ texts.covariances @ after) @ root)
    least = inverse @ left @ inverse
    moved: Floats = least @ numbers
    texts.add(after - before @ least, moved)
    return moved


def _beyond(now: Floats, wanted: Floats) -> Floats:
    return now + STEP * (wanted - now)


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    root: Floats = (vectors * np.sqrt(np.maximum(values, RIDGE))) @ vectors.T
    return root


def _standard(columns: Sequence[Floats], spreads: Sequence[float]) -> Floats:
    """Columns of numbers as centred rows, in units of the given spreads, gaps at the mean."""
    return np.stack(
        [np.nan_to_num(values - _mean(values)) / spread for values, spread in zip(columns, spreads, strict=True)]
    )


def _mean(values: Floats) -> float:
    return float(np.nanmean(values)) if np.isfinite(values).any() else 0.0


def _spread(values: Floats) -> float:
    return float(np.nanstd(values) if np.isfinite(values).any() else 0.0) or 1.0


def _frequent(codes: Codes) -> int:
    """How many texts are frequent enough to be looked after; they have the first codes."""
    return int((np.bincount(codes)[:LEVELS] >= RARE * len(codes)).sum())
