"""Columns for the named contexts of a log, fitted to all of its rows, so that they do not depend on its batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.contexts.sparse_features import Features
from manul.contexts.table_encoding import LEVELS, MISSING, Columns, LogColumns, Number, Text, flat_table
from manul.contexts.time_encoding import ISO, PARTS, Time, count_parts, has_clock, is_time, parts
from manul.errors import InputError
from manul.logs.log import Log
from manul.utils.validation import Floats

BLOCK = 65_536  # rows after which the texts of a column are thinned out
MOST_TEXTS = 100_000  # distinct texts of a column that are counted, to bound the memory
_UNIT = 1126  # sums are whole multiples of 2**-_UNIT, of which every float is one
_LOW = 27  # bits of the lower part of a float's 53 bits; sums of 2**26 such parts are exact in floats
_ROWS = 2**26


def fit_columns(log: Log | Iterable[Log]) -> LogColumns | None:
    """Fit columns to the contexts of a log, in one pass; None if they are rows of numbers.

    Texts are counted over the whole log, and means are exact, so batches do not matter.
    """
    fit = _Fit()
    for batch in [log] if isinstance(log, Log) else log:
        if len(batch):
            fit.add(batch)
    return fit.columns()


class _Fit:
    def __init__(self) -> None:
        self.rows = 0
        self.plain = False
        self.fields: dict[str, _Column] = {}
        self.features: set[str] | None = None
        self.names: tuple[str, ...] | None = None

    def add(self, batch: Log) -> None:
        if batch.features is not None:
            if batch.features.names != self.names:
                self.names, self.features = batch.features.names, (self.features or set()) | {*batch.features.names}
        elif batch.fields is not None:
            self._add_fields(batch.fields, len(batch))
        else:
            self.plain = self.plain or batch.contexts.shape[1] > 0
        self.rows += len(batch)
        if self.plain + bool(self.fields) + (self.features is not None) > 1:
            raise InputError("All batches must have rows of numbers, or all must have named contexts.", "contexts")

    def _add_fields(self, fields: dict[str, npt.NDArray[Any]], count: int) -> None:
        for name, values in flat_table(fields).items():
            column = self.fields.setdefault(name, _Column(name))
            for first in range(-(self.rows % BLOCK), count, BLOCK):
                column.add(values[max(first, 0) : first + BLOCK])
                if first + BLOCK <= count:
                    column.thin_out()

    def columns(self) -> LogColumns | None:
        if self.features is not None:
            return Features(tuple(sorted(self.features)))
        return Columns(tuple(column.fitted(self.rows) for column in self.fields.values())) if self.fields else None


class _Column:
    """The texts of a column with their counts, or the sum of its numbers."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.texts: Counter[str] = Counter()
        self.text_rows = self.numbers = self.total = self.dates = 0
        self.parts, self.has_clock = [0] * len(PARTS), False

    def add(self, values: Any) -> None:
        """Add values; a column without any value in a batch may be of any kind."""
        known = [value for value in values if value is not None and value == value]
        if is_time(known):
            self.dates += len(known)
            self.has_clock |= has_clock(known)
            columns = np.array([parts(value) for value in known]).T
            self.parts = [add_exactly(total, column) for total, column in zip(self.parts, columns, strict=True)]
        elif any(isinstance(value, str) for value in known):
            self.texts.update(map(str, known))
            self.text_rows += len(known)
        else:
            self.total = add_exactly(self.total, np.array(known, np.float64))
            self.numbers += len(known)
        if bool(self.numbers) + bool(self.text_rows) + bool(self.dates) > 1:
            kinds = {"numbers": self.numbers, "text": self.text_rows, "dates": self.dates}
            one, other = [kind for kind, count in kinds.items() if count][:2]
            raise InputError(f"column {self.name!r} has {one} in one batch and {other} in another.", self.name)

    def thin_out(self) -> None:
        """Forget the rarest texts if there are too many to be categories."""
        if len(self.texts) > MOST_TEXTS:
            ranked = sorted(self.texts.items(), key=lambda item: (-item[1], item[0]))
            self.texts = Counter(dict(ranked[: MOST_TEXTS // 2]))

    def fitted(self, rows: int) -> Number | Text | Time:
        """The column, given the number of rows of the log."""
        if self.dates:
            means = [exact_mean(total, self.dates) for total in self.parts]
            return Time(self.name, ISO, tuple(means[: count_parts(clock=self.has_clock)]), self.dates < rows)
        if not self.text_rows:
            return Number(self.name, exact_mean(self.total, self.numbers), self.numbers < rows)
        missing = Counter({MISSING: rows - self.text_rows} if self.text_rows < rows else {})
        return Text.from_counts(self.name, self.texts + missing, LEVELS)


def add_exactly(total: int, values: Floats) -> int:
    """A sum in multiples of the unit, with finite values added without rounding: their order and batches do not matter.

    >>> exact_mean(add_exactly(add_exactly(0, np.array([1e100, 1.0])), np.array([-1e100])), 3)
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


def exact_mean(total: int, count: int) -> float:
    """The mean of a sum, rounded once; 0 if there are no values.

    >>> exact_mean(add_exactly(0, np.array([0.1, 0.2, 0.3])), 3)
    0.2
    """
    return total / (count << _UNIT) if count else 0.0
