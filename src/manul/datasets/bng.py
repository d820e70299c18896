"""Grow a table the way OpenML's BNG sets were made: bins, a Bayesian network over them, and noise within the bins.

A column is cut into bins (quantiles of numbers, texts as they are, gaps in one of their own). Columns are drawn one
after the other; each has a few parents among those before it, the ones that tell most about it. The bin of a new cell is
that of a row of the table whose parents have the same bins: as many of the parents as leave enough such rows. Within its
bin a number is drawn anew, between neighbouring values that the table has. What few parents cannot keep of the correlations
is put right in the end (`correlations.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manul.actions import checked_seed
from manul.datasets.columns import columns, numbers_of, read_columns
from manul.datasets.correlations import reordered
from manul.errors import InputError, ParameterError

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.int64]

BINS, COARSE, PARENTS, ENOUGH, SAMPLE = 64, 8, 5, 5, 20_000


@dataclass(frozen=True, eq=False)
class _Column:
    """A column in bins: the rows of the table sorted by its values, where each bin starts among them, and each row's bin."""

    values: NDArray[Any]
    starts: Codes
    codes: Codes
    interpolated: bool

    @property
    def coarse(self) -> Codes:
        return _merged(self.codes, len(self.starts) - 1)

    def drawn(self, codes: Codes, rng: np.random.Generator) -> NDArray[Any]:
        """A value for each bin."""
        first, last = self.starts[codes], self.starts[codes + 1]
        place = first + rng.random(len(codes)) * (last - first)
        below = np.minimum(place.astype(np.int64), last - 1)
        if not self.interpolated:
            return self.values[below]
        share = place - below
        middle = (self.values[np.maximum(below - 1, first)], self.values[np.minimum(below + 1, last - 1)])
        half = np.where(share < 0.5, middle[0], middle[1])
        weight = np.abs(share - 0.5)
        drawn: NDArray[Any] = self.values[below] * (1 - weight) + half * weight
        return drawn


def bng(table: Any, rows: int, seed: int = 0) -> pa.Table:
    """A larger table with the means, spreads and dependencies of a file, data frame, Arrow table or mapping of columns.

    >>> grown = bng({"size": [1.0, 2.0, 3.0, 4.0], "kind": ["a", "a", "b", None]}, rows=100)
    >>> grown.num_rows, grown.column_names, sorted(set(grown["kind"].drop_null().to_pylist()))
    (100, ['size', 'kind'], ['a', 'b'])
    """
    import pyarrow as pa

    if not (isinstance(rows, int) and not isinstance(rows, bool) and rows >= 1):
        raise ParameterError(f"rows must be a whole number of at least 1; got {rows!r}. Try 1000000.")
    rng = np.random.default_rng(checked_seed(seed))
    cells = read_columns(table) if isinstance(table, str | Path) else columns(table)
    if not cells or not len(next(iter(cells.values()))):
        raise InputError("table must have at least one column and one row; got none. Check the file.")
    binned = {name: _binned(column) for name, column in cells.items()}
    order, parents = _network(binned, np.random.default_rng(0))
    codes: dict[str, Codes] = {}
    for name in order:
        codes[name] = _inherited(name, parents[name], binned, codes, rows, rng)
    drawn = {name: _as_arrow(binned[name].drawn(codes[name], rng), cells[name].type) for name in cells}
    return pa.table(reordered(drawn, cells))


def _as_arrow(values: NDArray[Any], kind: pa.DataType) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, kind, from_pandas=True)


def _binned(column: pa.Array) -> _Column:
    import pyarrow as pa

    if pa.types.is_string(column.type):
        coded = column.dictionary_encode()
        texts = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
        codes = coded.indices.fill_null(len(texts) - 1).to_numpy(zero_copy_only=False).astype(np.int64)
        return _Column(texts, np.arange(len(texts) + 1), codes, interpolated=False)
    numbers = numbers_of(column)
    ordered = np.sort(numbers)
    known = ordered[np.isfinite(ordered)]
    edges = np.unique(np.quantile(known, np.arange(1, BINS) / BINS)) if len(known) else known
    codes = np.where(np.isnan(numbers), len(edges) + 1, np.searchsorted(edges, numbers, side="left"))
    codes = np.unique(codes, return_inverse=True)[1].astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes))])
    whole = bool((known == np.round(known)).all())
    return _Column(ordered, starts, codes, interpolated=not whole)


def _network(binned: dict[str, _Column], rng: np.random.Generator) -> tuple[list[str], dict[str, list[str]]]:
    """An order of the columns, and the parents of each among those before it, the most telling one first."""
    names = list(binned)
    count = len(binned[names[0]].codes)
    chosen = rng.permutation(count)[:SAMPLE]
    coarse = {name: binned[name].coarse[chosen] for name in names}
    told = {(a, b): _information(coarse[a], coarse[b]) for i, a in enumerate(names) for b in names[i + 1 :]}
    told |= {(b, a): value for (a, b), value in told.items()}
    order = [max(names, key=lambda name: sum(told[name, other] for other in names if other != name))]
    while len(order) < len(names):
        rest = [name for name in names if name not in order]
        order.append(max(rest, key=lambda name: max(told[name, before] for before in order)))
    return order, {name: _parents(name, order[:place], coarse) for place, name in enumerate(order)}


def _parents(name: str, before: list[str], coarse: dict[str, Codes]) -> list[str]:
    """The columns that tell most about another, each beyond what those before it have told."""
    chosen: list[str] = []
    given = np.zeros_like(coarse[name])
    while len(chosen) < min(PARENTS, len(before)):
        rest = [other for other in before if other not in chosen]
        gains = {other: _information(coarse[name], coarse[other], given) for other in rest}
        best = max(rest, key=lambda other: gains[other])
        if gains[best] <= 0:
            break
        chosen.append(best)
        given = np.unique(given * (coarse[best].max() + 1) + coarse[best], return_inverse=True)[1]
    return chosen


def _information(one: Codes, two: Codes, given: Codes | None = None) -> float:
    """What one tells about another in nats, beyond what is given; corrected for the cells that are seen by chance."""
    base = np.zeros_like(one) if given is None else given
    both = base * (one.max() + 1) + one
    other = base * (two.max() + 1) + two
    return _entropy(both) + _entropy(other) - _entropy(base) - _entropy(both * (two.max() + 1) + two)


def _entropy(codes: Codes) -> float:
    counts = np.unique(codes, return_counts=True)[1]
    shares = counts / len(codes)
    return float(-(shares * np.log(shares)).sum()) + (len(counts) - 1) / (2 * len(codes))


def _inherited(
    name: str,
    parents: list[str],
    binned: dict[str, _Column],
    drawn: dict[str, Codes],
    rows: int,
    rng: np.random.Generator,
) -> Codes:
    """The bins of a new column: those of rows of the table that agree with the new ones on as many parents as can be."""
    own = binned[name].codes
    picked = own[rng.integers(0, len(own), rows)]
    table_key, new_key = np.zeros(len(own), dtype=np.int64), np.zeros(rows, dtype=np.int64)
    for number, parent in enumerate(parents):
        bins = len(binned[parent].starts) - 1
        kept = BINS if number == 0 else COARSE * 2 if number == 1 else COARSE
        table_key = table_key * (bins + 1) + _merged(binned[parent].codes, bins, kept)
        new_key = new_key * (bins + 1) + _merged(drawn[parent], bins, kept)
        keys, table_key, counts = np.unique(table_key, return_inverse=True, return_counts=True)
        at = np.minimum(np.searchsorted(keys, new_key), len(keys) - 1)
        # A key that no row has stays unknown for all parents to come.
        seen = keys[at] == new_key
        new_key = np.where(seen, at, len(keys))
        enough = np.flatnonzero(seen & (counts[at] >= ENOUGH))
        by_key, ends = np.argsort(table_key, kind="stable"), np.cumsum(counts)
        first = ends[at[enough]] - counts[at[enough]]
        row = by_key[first + (rng.random(len(enough)) * counts[at[enough]]).astype(np.int64)]
        picked[enough] = own[row]
    return picked


def _merged(codes: Codes, bins: int, kept: int = COARSE) -> Codes:
    """Neighbouring bins together, so that at most so many are left."""
    return codes if bins <= kept else codes * kept // bins
