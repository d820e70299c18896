"""Tables as people have them, as regression worlds: a CSV file (also .gz) with a target column.

Targets are clipped to the 0.5 and 99.5 percentiles and scaled to [0, 1]. A column is a number if all its cells are; its
missing cells become the mean, and it is standardised, without which Vowpal Wabbit loses up to a third more. Any other
column is one-hot, its rarest levels in one column together.
"""

from __future__ import annotations

import csv
import gzip
import tempfile  # noqa: F401 (the example)
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from manul import worlds

MISSING = frozenset({"", "NA", "N/A", "NaN", "nan", "null", "None", "?"})
PERCENTILES = (0.5, 99.5)


@dataclass(frozen=True, eq=False)
class Table:
    """Contexts, targets in [0, 1], and what to call the table."""

    name: str
    columns: tuple[str, ...]
    contexts: NDArray[np.float32]
    targets: NDArray[np.float64]

    def shuffled(self, seed: int) -> worlds.Regression:
        """The rows in the order of a seed."""
        order = np.random.default_rng(seed).permutation(len(self.targets))
        return worlds.Regression(self.contexts[order], self.targets[order])


def load(path: Path, *, target: str, rows: int | None = None, levels: int = 32) -> Table:
    """Read a table; with `rows`, that many of them drawn at random, the same in every run.

    >>> file = Path(tempfile.mkdtemp()) / "three.csv"
    >>> _ = file.write_text("size,kind,price\\n1,a,10\\n,b,20\\n3,a,30\\n")
    >>> table = load(file, target="price")
    >>> table.columns, table.contexts[1].tolist()
    (('size', 'kind=a', 'kind=b'), [0.0, 0.0, 1.0])
    """
    header, lines = _read(path)
    if target not in header:
        raise ValueError(f"target must be a column of {path.name}; got {target!r}. It has {', '.join(header)}.")
    cells = dict(zip(header, zip(*lines, strict=True), strict=True))
    known = [row for row, cell in enumerate(cells.pop(target)) if cell not in MISSING]
    outcomes = np.array([float(line[header.index(target)]) for line in (lines[row] for row in known)])
    encoded = [encode(name, [column[row] for row in known], levels) for name, column in cells.items()]
    names = tuple(name for names, _ in encoded for name in names)
    contexts = np.column_stack([columns for _, columns in encoded]).astype(np.float32)
    chosen = np.sort(np.random.default_rng(0).permutation(len(known))[:rows])
    return Table(path.name.split(".")[0], names, contexts[chosen], scaled(outcomes)[chosen])


def encode(name: str, cells: Sequence[str], levels: int) -> tuple[list[str], NDArray[np.float64]]:
    """The columns of numbers that one column of text becomes, and their names.

    >>> names, columns = encode("kind", ["a", "b", "a", "c"], levels=1)
    >>> names, columns.tolist()
    (['kind=a', 'kind=other'], [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0], [0.0, 1.0]])
    """
    try:
        numbers = np.array([np.nan if cell in MISSING else float(cell) for cell in cells])
    except ValueError:
        return _one_hot(name, cells, levels)
    return [name], _standardised(numbers)[:, np.newaxis]


def scaled(outcomes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Clipped to the percentiles, and these mapped to 0 and 1.

    >>> scaled(np.array([3.0, 3.0, 5.0, 4.0])).round(2).tolist()
    [0.0, 0.0, 1.0, 0.5]
    """
    low, high = np.percentile(outcomes, PERCENTILES)
    if low == high:
        raise ValueError(f"targets must vary between the percentiles {PERCENTILES}; got {low:g} throughout.")
    return np.clip((outcomes - low) / (high - low), 0.0, 1.0)


def _standardised(numbers: NDArray[np.float64]) -> NDArray[np.float64]:
    known = numbers[np.isfinite(numbers)]
    if not known.size or known.std() == 0:
        return np.zeros_like(numbers)
    return np.where(np.isfinite(numbers), (numbers - known.mean()) / known.std(), 0.0)


def _one_hot(name: str, cells: Sequence[str], levels: int) -> tuple[list[str], NDArray[np.float64]]:
    # Ties by name: the same columns in every run.
    ranked = sorted(Counter(cells).items(), key=lambda item: (-item[1], item[0]))
    frequent = sorted(level for level, _ in ranked[:levels])
    place = {level: number for number, level in enumerate(frequent)}
    names = [f"{name}={level}" for level in frequent] + ([f"{name}=other"] if len(ranked) > levels else [])
    columns = np.zeros((len(cells), len(names)))
    columns[np.arange(len(cells)), [place.get(cell, len(frequent)) for cell in cells]] = 1.0
    return names, columns


def _read(path: Path) -> tuple[list[str], list[list[str]]]:
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as text:
        header, *lines = csv.reader(text)
    return header, [line for line in lines if line]
