"""Samples a larger table in the way of OpenML's BNG data sets: bins, a Bayesian network over them, and noise within bins.

The categorical columns are the root of the network: a new row copies all of them from one row of the table, which keeps
their joint distribution. A numeric column is divided into quantile bins, with a separate bin for missing values. Numeric
columns are sampled one after the other; the parents of each are the few categorical and earlier numeric columns with the
highest mutual information. The bin of a new cell is that of a random row of the table with the same parent bins, for as
many parents as leave enough such rows. Within its bin, a number is interpolated between neighbouring values, and each
value of the table occurs as often as there. `correlations.py` then restores the correlations that few parents lose.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manul.errors import InputError
from manul.paper.datasets.correlations import Cells, reorder
from manul.utils.validation import Floats, check_seed, check_whole_number
from manul.worlds.tables.table_columns import columns, numbers_of, read_columns

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.int64]

# Numeric columns have BINS bins, merged to COARSE for mutual information, which is estimated from SAMPLE rows.
BINS, COARSE, SAMPLE = 64, 8, 20_000
CATEGORIES = 256  # that are distinguished as parents; rarer ones are merged
MINIMUM_ROWS = 5  # of the table for a combination of parent bins
PARENT_BINS = (BINS, 2 * COARSE, COARSE, COARSE, COARSE)  # of the first, second, ... parent


@dataclass(frozen=True, eq=False)
class _Column:
    """A binned column: its sorted values or its categories, the index at which each bin starts, and the bin of each row."""

    values: NDArray[Any]
    starts: Codes
    codes: Codes
    interpolated: bool
    categorical: bool = False

    def merge(self, codes: Codes, most: int = COARSE) -> Codes:
        """Merge neighbouring bins so that at most `most` are left, or rare categories."""
        if self.categorical:
            return np.minimum(codes, CATEGORIES)
        bins = len(self.starts) - 1
        return codes if bins <= most else codes * most // bins

    def sample(self, codes: Codes, rng: np.random.Generator) -> NDArray[Any]:
        """Sample a value for each bin; the values have the same frequencies as in the table."""
        if self.categorical:
            return self.values[codes]
        first, last = self.starts[codes], self.starts[codes + 1]
        place: Floats = rng.uniform(first, last)
        count = int(np.isfinite(self.values).sum())
        known = np.flatnonzero(place < count)
        place[known[np.argsort(place[known])]] = _stratified_positions(count, len(known), rng)
        return self._at(place)

    def _at(self, place: Floats) -> Floats:
        """The values at positions in the sorted column, interpolated between neighbours unless a value is repeated."""
        top = len(self.values) - 1
        at = np.minimum(place.astype(np.int64), top)
        here: Floats = self.values[at]
        if not self.interpolated:
            return here
        below, above = self.values[np.maximum(at - 1, 0)], self.values[np.minimum(at + 1, top)]
        there = np.where(place - at < 0.5, below, above)
        there = np.where(np.isnan(there) | (here == below) | (here == above), here, there)
        weight = np.abs(place - at - 0.5)
        between: Floats = here * (1 - weight) + there * weight
        return between


def bng(table: Any, rows: int, seed: int = 0) -> pa.Table:
    """Sample a table with the means, spreads and dependencies of a file, data frame, Arrow table or mapping of columns.

    >>> larger = bng({"size": [1.0, 2.0, 3.0, 4.0], "kind": ["a", "a", "b", None]}, rows=100)
    >>> larger.num_rows, larger.column_names, sorted(set(larger["kind"].drop_null().to_pylist()))
    (100, ['size', 'kind'], ['a', 'b'])
    """
    import pyarrow as pa

    check_whole_number("rows", rows, 1, None, "Try 1000000.")
    rng = np.random.default_rng(check_seed(seed))
    cells = read_columns(table) if isinstance(table, str | Path) else columns(table)
    if not cells or not len(next(iter(cells.values()))):
        raise InputError("table must have at least one column and one row, got none.", "table")
    bins = {name: _bin(column) for name, column in cells.items()}
    categorical = [name for name in cells if bins[name].categorical]
    numeric = [name for name in cells if not bins[name].categorical]
    row = rng.permutation(_stratified_positions(len(next(iter(cells.values()))), rows, rng).astype(np.int64))
    codes = {name: bins[name].codes[row] for name in categorical}
    for name, parents in _network(bins, categorical, numeric, np.random.default_rng(0)).items():
        codes[name] = _sample_bins(bins[name].codes, {parent: bins[parent] for parent in parents}, codes, rows, rng)
    numbers = reorder(
        Cells([bins[name].sample(codes[name], rng) for name in numeric], [codes[name] for name in categorical]),
        Cells([numbers_of(cells[name]) for name in numeric], [bins[name].codes for name in categorical]),
        rng,
    )
    values = dict(zip(numeric, numbers, strict=True))
    values |= {name: bins[name].sample(codes[name], rng) for name in categorical}
    return pa.table({name: pa.array(values[name], cells[name].type, from_pandas=True) for name in cells})


def _stratified_positions(length: float, count: int, rng: np.random.Generator) -> Floats:
    """Sorted random numbers in [0, length), one in each of `count` equal parts."""
    places: Floats = (np.arange(count) + rng.random(count)) * (length / max(count, 1))
    return np.minimum(places, np.nextafter(length, 0))


def _bin(column: pa.Array) -> _Column:
    import pyarrow as pa

    if pa.types.is_string(column.type):
        encoded = column.dictionary_encode("encode")
        categories = np.array(encoded.dictionary.to_pylist(), dtype=object)
        codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        order = np.argsort(-np.bincount(codes), kind="stable")
        starts, codes = np.arange(len(categories) + 1), np.argsort(order)[codes]
        return _Column(categories[order], starts, codes, interpolated=False, categorical=True)
    numbers = numbers_of(column)
    ordered = np.sort(numbers)
    known = ordered[np.isfinite(ordered)]
    edges = np.unique(np.quantile(known, np.arange(1, BINS) / BINS)) if len(known) else known
    codes = np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers, side="left"))
    codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    whole = bool((known == np.round(known)).all())
    return _Column(ordered, starts, codes, interpolated=not whole)


def _network(
    bins: dict[str, _Column], categorical: list[str], numeric: list[str], rng: np.random.Generator
) -> dict[str, list[str]]:
    """The numeric columns in the order of sampling, each with its parents, the most informative one first."""
    names = [*categorical, *numeric]
    chosen = rng.permutation(len(bins[names[0]].codes))[:SAMPLE]
    coarse = {name: bins[name].merge(bins[name].codes[chosen]) for name in names}
    information = {(a, b): _information(coarse[a], coarse[b]) for a in numeric for b in names if a != b}
    before = list(categorical)
    parents: dict[str, list[str]] = {}
    while len(parents) < len(numeric):
        rest = [name for name in numeric if name not in parents]
        known = before or rest
        name = max(rest, key=lambda a: max((information[a, b] for b in known if b != a), default=0.0))
        parents[name] = _parents(name, before, coarse)
        before.append(name)
    return parents


def _parents(name: str, before: list[str], coarse: dict[str, Codes]) -> list[str]:
    """The columns with the most information about another one, each given those before it."""
    chosen: list[str] = []
    given = np.zeros_like(coarse[name])
    while len(chosen) < min(len(PARENT_BINS), len(before)):
        rest = [other for other in before if other not in chosen]
        gains = {other: _information(coarse[name], coarse[other], given) for other in rest}
        best = max(rest, key=lambda other: gains[other])
        if gains[best] <= 0:
            break
        chosen.append(best)
        given = np.unique(given * (coarse[best].max() + 1) + coarse[best], return_inverse=True)[1]
    return chosen


def _information(one: Codes, two: Codes, given: Codes | None = None) -> float:
    """The conditional mutual information in nats, corrected for its bias in finite samples (Miller and Madow)."""
    base = np.zeros_like(one) if given is None else given
    both = base * (one.max() + 1) + one
    other = base * (two.max() + 1) + two
    return _entropy(both) + _entropy(other) - _entropy(base) - _entropy(both * (two.max() + 1) + two)


def _entropy(codes: Codes) -> float:
    counts = np.unique(codes, return_counts=True)[1]
    shares = counts / len(codes)
    return float(-(shares * np.log(shares)).sum()) + (len(counts) - 1) / (2 * len(codes))


def _sample_bins(
    own: Codes, parents: dict[str, _Column], sampled: dict[str, Codes], rows: int, rng: np.random.Generator
) -> Codes:
    """Sample the bins of a column from rows of the table that agree with the new rows on as many parents as possible."""
    result = own[rng.integers(0, len(own), rows)]
    old, new = np.arange(len(own)), np.arange(rows)
    old_key, new_key = np.zeros_like(old), np.zeros_like(new)
    for (name, column), most in zip(parents.items(), PARENT_BINS, strict=False):
        bins = len(column.starts)
        old_key = old_key * bins + column.merge(column.codes[old], most)
        new_key = new_key * bins + column.merge(sampled[name][new], most)
        keys, old_key, counts = np.unique(old_key, return_inverse=True, return_counts=True)
        at = np.minimum(np.searchsorted(keys, new_key), len(keys) - 1)
        # Each parent leaves fewer rows per key; new rows whose key has too few keep their result from the parents before.
        enough = (keys[at] == new_key) & (counts[at] >= MINIMUM_ROWS)
        new, new_key = new[enough], at[enough]
        by_key, starts = old[np.argsort(old_key, kind="stable")], np.cumsum(counts) - counts
        result[new] = own[by_key[starts[new_key] + (rng.random(len(new)) * counts[new_key]).astype(np.int64)]]
        usable = counts[old_key] >= MINIMUM_ROWS
        old, old_key = old[usable], old_key[usable]
    return result
