"""Grow a table the way OpenML's BNG sets were made: bins, a Bayesian network over them, and noise within the bins.

The texts of a new row are those of one row of the table: together they are the root of the network, so that what they say
of each other is kept as it is. A column of numbers is cut into bins (quantiles, gaps in one of their own). These columns are
drawn one after the other; each has a few parents among the texts and the columns before it, the ones that tell most about
it. The bin of a new cell is that of a row of the table whose parents have the same bins: as many of the parents as leave
enough such rows. Within its bin a number is drawn anew, between neighbouring values that the table has, and each of those as
often as there. What few parents cannot keep of the correlations is put right in the end (`correlations.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manul.errors import InputError
from manul.paper.datasets.correlations import Cells, reordered
from manul.utils.validation import check_seed, check_whole_number
from manul.worlds.tables.table_columns import columns, numbers_of, read_columns

if TYPE_CHECKING:
    import pyarrow as pa

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

BINS, COARSE, TEXTS, ENOUGH, SAMPLE = 64, 8, 256, 5, 20_000
KEPT = (BINS, 2 * COARSE, COARSE, COARSE, COARSE)


@dataclass(frozen=True, eq=False)
class _Column:
    """A column in bins: the rows of the table sorted by its values, where each bin starts among them, and each row's bin."""

    values: NDArray[Any]
    starts: Codes
    codes: Codes
    interpolated: bool
    text: bool = False

    def merged(self, codes: Codes, kept: int = COARSE) -> Codes:
        """Neighbouring bins together, so that at most so many are left; of texts, the rare ones."""
        if self.text:
            return np.minimum(codes, TEXTS)
        bins = len(self.starts) - 1
        return codes if bins <= kept else codes * kept // bins

    def drawn(self, codes: Codes, rng: np.random.Generator) -> NDArray[Any]:
        """A value for each bin; every value of the table comes up as often as there."""
        if self.text:
            return self.values[codes]
        first, last = self.starts[codes], self.starts[codes + 1]
        place: Floats = rng.uniform(first, last)
        count = int(np.isfinite(self.values).sum())
        known = np.flatnonzero(place < count)
        place[known[np.argsort(place[known])]] = _evenly(count, len(known), rng)
        return self._at(place)

    def _at(self, place: Floats) -> Floats:
        """The values at places among them; where they have fractions, between neighbouring ones. Repeated values stay."""
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
    """A larger table with the means, spreads and dependencies of a file, data frame, Arrow table or mapping of columns.

    >>> grown = bng({"size": [1.0, 2.0, 3.0, 4.0], "kind": ["a", "a", "b", None]}, rows=100)
    >>> grown.num_rows, grown.column_names, sorted(set(grown["kind"].drop_null().to_pylist()))
    (100, ['size', 'kind'], ['a', 'b'])
    """
    import pyarrow as pa

    check_whole_number("rows", rows, 1, None, "Try 1000000.")
    rng = np.random.default_rng(check_seed(seed))
    cells = read_columns(table) if isinstance(table, str | Path) else columns(table)
    if not cells or not len(next(iter(cells.values()))):
        raise InputError("table must have at least one column and one row; got none. Check the file.", "table")
    binned = {name: _binned(column) for name, column in cells.items()}
    texts = [name for name in cells if binned[name].text]
    names = [name for name in cells if not binned[name].text]
    row = rng.permutation(_evenly(len(next(iter(cells.values()))), rows, rng).astype(np.int64))
    codes = {name: binned[name].codes[row] for name in texts}
    for name, parents in _network(binned, texts, names, np.random.default_rng(0)).items():
        codes[name] = _inherited(binned[name].codes, {each: binned[each] for each in parents}, codes, rows, rng)
    numbers = reordered(
        Cells([binned[name].drawn(codes[name], rng) for name in names], [codes[name] for name in texts]),
        Cells([numbers_of(cells[name]) for name in names], [binned[name].codes for name in texts]),
        rng,
    )
    drawn = dict(zip(names, numbers, strict=True)) | {name: binned[name].drawn(codes[name], rng) for name in texts}
    return pa.table({name: pa.array(drawn[name], cells[name].type, from_pandas=True) for name in cells})


def _evenly(length: float, count: int, rng: np.random.Generator) -> Floats:
    """Rising numbers below a length, one by chance in each of as many equal parts."""
    places: Floats = (np.arange(count) + rng.random(count)) * (length / max(count, 1))
    return np.minimum(places, np.nextafter(length, 0))


def _binned(column: pa.Array) -> _Column:
    import pyarrow as pa

    if pa.types.is_string(column.type):
        coded = column.dictionary_encode("encode")
        texts = np.array(coded.dictionary.to_pylist(), dtype=object)
        codes = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
        order = np.argsort(-np.bincount(codes), kind="stable")
        return _Column(texts[order], np.arange(len(texts) + 1), np.argsort(order)[codes], interpolated=False, text=True)
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
    binned: dict[str, _Column], texts: list[str], numbers: list[str], rng: np.random.Generator
) -> dict[str, list[str]]:
    """The columns of numbers in the order of drawing, each with its parents before it, the most telling one first."""
    names = [*texts, *numbers]
    chosen = rng.permutation(len(binned[names[0]].codes))[:SAMPLE]
    coarse = {name: binned[name].merged(binned[name].codes[chosen]) for name in names}
    told = {(a, b): _information(coarse[a], coarse[b]) for a in numbers for b in names if a != b}
    before = list(texts)
    parents: dict[str, list[str]] = {}
    while len(parents) < len(numbers):
        rest = [name for name in numbers if name not in parents]
        known = before or rest
        name = max(rest, key=lambda each: max((told[each, other] for other in known if other != each), default=0.0))
        parents[name] = _parents(name, before, coarse)
        before.append(name)
    return parents


def _parents(name: str, before: list[str], coarse: dict[str, Codes]) -> list[str]:
    """The columns that tell most about another, each beyond what those before it have told."""
    chosen: list[str] = []
    given = np.zeros_like(coarse[name])
    while len(chosen) < min(len(KEPT), len(before)):
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
    own: Codes, parents: dict[str, _Column], drawn: dict[str, Codes], rows: int, rng: np.random.Generator
) -> Codes:
    """The bins of a new column: those of rows of the table that agree with the new ones on as many parents as can be."""
    picked = own[rng.integers(0, len(own), rows)]
    old, new = np.arange(len(own)), np.arange(rows)
    old_key, new_key = np.zeros_like(old), np.zeros_like(new)
    for (name, column), kept in zip(parents.items(), KEPT, strict=False):
        bins = len(column.starts)
        old_key = old_key * bins + column.merged(column.codes[old], kept)
        new_key = new_key * bins + column.merged(drawn[name][new], kept)
        keys, old_key, counts = np.unique(old_key, return_inverse=True, return_counts=True)
        at = np.minimum(np.searchsorted(keys, new_key), len(keys) - 1)
        # With one more parent a key has fewer rows: those that have too few now are done.
        enough = (keys[at] == new_key) & (counts[at] >= ENOUGH)
        new, new_key = new[enough], at[enough]
        by_key, starts = old[np.argsort(old_key, kind="stable")], np.cumsum(counts) - counts
        picked[new] = own[by_key[starts[new_key] + (rng.random(len(new)) * counts[new_key]).astype(np.int64)]]
        alive = counts[old_key] >= ENOUGH
        old, old_key = old[alive], old_key[alive]
    return picked
