"""Tables as regression worlds: a target scaled to [0, 1], and the other columns encoded as contexts.

Missing values of a numeric column are filled with its mean; agents standardise contexts themselves. A categorical column
becomes an indicator column per frequent category, and one for the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from manul.actions.decision import Within
from manul.contexts.table_encoding import LEVELS, encode_column
from manul.errors import InputError
from manul.utils.validation import Floats
from manul.worlds.regression import Regression
from manul.worlds.tables.table_columns import read_columns, target_numbers

if TYPE_CHECKING:
    import pyarrow as pa


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

    def shuffle(self, seed: int, rounds: int | None = None) -> Regression:
        """The rows as a world, shuffled with a seed; all or the first `rounds`."""
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
    """Read a table from CSV, ARFF or Parquet, optionally with .gz, and sample `rows` of its rows with a fixed seed.

    Targets are clipped to the percentiles. Rows without a target are dropped. Categorical columns keep `levels` categories.

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
    cells: Mapping[str, pa.Array],
    *,
    target: str,
    name: str,
    rows: int | None = None,
    levels: int = LEVELS,
    percentiles: Within = (0.0, 100.0),
    standardised: bool = False,
) -> Dataset:
    """Create a data set from the columns that `read_columns` gives; see `read`."""
    outcomes = target_numbers(cells, target, name)
    known = np.flatnonzero(np.isfinite(outcomes))
    span, targets = scale_targets(outcomes[known], percentiles, f"target {target!r} of {name}")
    if rows is not None and rows < len(known):
        sample = np.sort(np.random.default_rng(0).permutation(len(known))[:rows])
        known, targets = known[sample], targets[sample]
    encoded = [
        encode_column(label, column.take(known), levels, standardised=standardised)
        for label, column in cells.items()
        if label != target
    ]
    names = tuple(label for labels, _ in encoded for label in labels)
    contexts = np.column_stack([part for _, part in encoded] or [np.empty((len(known), 0), dtype=np.float32)]).astype(
        np.float32
    )
    return Dataset(name, names, contexts, targets, span)


def scale_targets(outcomes: Floats, percentiles: Within = (0.0, 100.0), what: str = "targets") -> tuple[Within, Floats]:
    """Clip the outcomes to the percentiles and scale them to [0, 1]; returns the range before scaling, and the result.

    >>> scale_targets(np.array([3.0, 3.0, 5.0, 4.0]))
    ((3.0, 5.0), array([0. , 0. , 1. , 0.5]))
    """
    low, high = (float(end) for end in np.percentile(outcomes, percentiles))
    if low == high:
        raise InputError(f"{what} must vary, got {low:g} in every row.", "target")
    return (low, high), np.clip((outcomes - low) / (high - low), 0.0, 1.0)
