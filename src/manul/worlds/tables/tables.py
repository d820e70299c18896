"""Tables as regression worlds: a target scaled to [0, 1], and every other column as numbers of a context.

A column of numbers stays as it is, its gaps filled with the mean: agents standardise for themselves. A column of text
becomes a column of zeros and ones per frequent text, and one for the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from manul.contexts.encoding import GAP, LEVELS, Text
from manul.errors import InputError
from manul.types import Within
from manul.worlds import Regression
from manul.worlds.tables.table_columns import columns, numbers_of, read_columns, target_numbers

if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Dataset:
    """Contexts, and targets scaled from `span` to [0, 1]."""

    name: str
    columns: tuple[str, ...]
    contexts: NDArray[np.float32]
    targets: Floats
    span: Within

    def __len__(self) -> int:
        return len(self.targets)

    def shuffled(self, seed: int, rounds: int | None = None) -> Regression:
        """The first so many rows, or all, in the order of a seed."""
        order = np.random.default_rng(seed).permutation(len(self))[:rounds]
        return Regression(self.contexts[order], self.targets[order])


def read(
    path: str | Path,
    *,
    target: str,
    name: str | None = None,
    rows: int | None = None,
    levels: int = LEVELS,
    percentiles: Within = (0.0, 100.0),
    standardised: bool = False,
) -> Dataset:
    """Read a table from CSV, ARFF or Parquet, also with .gz; with `rows`, that many drawn at random, always the same.

    Targets outside the percentiles are clipped to them. Rows without a target are left out.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "three.csv").write_text("size,kind,price\\n1,a,10\\n,b,20\\n3,a,30\\n")
    ...     table = read(Path(folder, "three.csv"), target="price")
    >>> table.columns, table.contexts[1].tolist(), table.targets.tolist()
    (('size', 'kind=a', 'kind=b'), [2.0, 0.0, 1.0], [0.0, 0.5, 1.0])
    """
    source = Path(path)
    return from_columns(
        read_columns(source),
        target=target,
        name=name or source.name.split(".")[0],
        rows=rows,
        levels=levels,
        percentiles=percentiles,
        standardised=standardised,
    )


def from_columns(
    table: Any,
    *,
    target: str,
    name: str,
    rows: int | None = None,
    levels: int = LEVELS,
    percentiles: Within = (0.0, 100.0),
    standardised: bool = False,
) -> Dataset:
    """The same of columns by name, an Arrow table or a data frame."""
    cells = dict(columns(table)) if not _are_columns(table) else dict(table)
    outcomes = target_numbers(cells, target, name)
    known = np.flatnonzero(np.isfinite(outcomes))
    if rows is not None and rows < len(known):
        known = np.sort(known[np.random.default_rng(0).permutation(len(known))[:rows]])
    span, targets = scaled(outcomes[np.isfinite(outcomes)], percentiles, f"target {target!r} of {name}")
    del cells[target]
    encoded = [encode(each, column.take(known), levels, standardised=standardised) for each, column in cells.items()]
    names = tuple(each for several, _ in encoded for each in several)
    contexts = np.column_stack([part for _, part in encoded] or [np.empty((len(known), 0), dtype=np.float32)]).astype(
        np.float32
    )
    where = np.cumsum(np.isfinite(outcomes)) - 1
    return Dataset(name, names, contexts, targets[where[known]], span)


def encode(
    name: str, column: pa.Array, levels: int = LEVELS, *, standardised: bool = False
) -> tuple[list[str], NDArray[np.float32]]:
    """The columns of a context that one column of a table becomes, and their names.

    >>> import pyarrow as pa
    >>> names, columns = encode("kind", pa.array(["a", "b", "a", "c"]), levels=1)
    >>> names, columns.tolist()
    (['kind=a', 'kind=other'], [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    """
    import pyarrow as pa

    if pa.types.is_string(column.type):
        return _one_hot(name, column, levels)
    numbers = numbers_of(column)
    known = numbers[np.isfinite(numbers)]
    mean = float(known.mean()) if known.size else 0.0
    filled = np.where(np.isfinite(numbers), numbers, mean)
    if standardised:
        spread = float(known.std()) if known.size else 0.0
        filled = (filled - mean) / spread if spread > 0 else np.zeros_like(filled)
    if np.abs(filled).max(initial=0.0) > np.finfo(np.float32).max:
        raise InputError(f"column {name!r} must fit into 32 bits; got {np.abs(filled).max():g}. Scale it.", name)
    return [name], filled[:, np.newaxis].astype(np.float32)


def scaled(outcomes: Floats, percentiles: Within = (0.0, 100.0), what: str = "targets") -> tuple[Within, Floats]:
    """The ends, and the outcomes clipped to them and mapped to [0, 1].

    >>> scaled(np.array([3.0, 3.0, 5.0, 4.0]))
    ((3.0, 5.0), array([0. , 0. , 1. , 0.5]))
    """
    low, high = (float(end) for end in np.percentile(outcomes, percentiles))
    if low == high:
        raise InputError(f"{what} must vary; got {low:g} throughout. Choose another target.", "target")
    return (low, high), np.clip((outcomes - low) / (high - low), 0.0, 1.0)


def _are_columns(table: Any) -> bool:
    import pyarrow as pa

    return isinstance(table, Mapping) and all(
        isinstance(column, pa.Array) and (pa.types.is_string(column.type) or pa.types.is_float64(column.type))
        for column in table.values()
    )


def _one_hot(name: str, column: pa.Array, levels: int) -> tuple[list[str], NDArray[np.float32]]:
    coded = column.fill_null(GAP).dictionary_encode()
    texts: list[str] = coded.dictionary.to_pylist()
    codes: NDArray[np.int32] = coded.indices.to_numpy(zero_copy_only=False)
    counts = np.bincount(codes, minlength=len(texts))
    text = Text.frequent(name, dict(zip(texts, counts.tolist(), strict=True)), levels)
    return text.names, text.encoded(texts).astype(np.float32)[codes]
