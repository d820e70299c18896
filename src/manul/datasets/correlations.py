"""Put the values of drawn columns in another order, so that their correlations are those of a table (Iman and Conover, 1982).

Columns are moved by the least linear map that gives them the wanted covariances; then each takes its own values back, in
the order of the moved ones. What a column holds does not change, only in which rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from manul.datasets.columns import numbers_of
from manul.datasets.tables import encode

if TYPE_CHECKING:
    import pyarrow as pa

Floats = NDArray[np.float64]
PASSES, LEVELS, RIDGE = 3, 8, 1e-6


def reordered(drawn: dict[str, pa.Array], table: Mapping[str, pa.Array]) -> dict[str, pa.Array]:
    """The drawn columns, those of numbers in the order that gives them the correlations in the table.

    >>> import pyarrow as pa
    >>> rng = np.random.default_rng(0)
    >>> one, two = rng.standard_normal((2, 1000))
    >>> table = {"a": pa.array(one), "b": pa.array(one + two)}
    >>> after = reordered({"a": pa.array(one), "b": pa.array(two)}, table)
    >>> round(float(np.corrcoef(after["a"], after["b"])[0, 1]), 1)
    0.7
    """
    import pyarrow as pa

    names = [name for name, column in table.items() if not pa.types.is_string(column.type)]
    texts = [name for name in table if name not in names]
    if len(names) + len(texts) < 2 or not names or len(next(iter(table.values()))) < 3:
        return drawn
    wanted = _Moments(_standard(table, names, table), _indicators(table, texts, table))
    fixed = _indicators(drawn, texts, table)
    numbers = {name: numbers_of(drawn[name]) for name in names}
    for _ in range(PASSES):
        columns = {name: pa.array(values, from_pandas=True) for name, values in numbers.items()}
        moved = _moved(_standard(columns, names, table), fixed, wanted)
        numbers = {name: _in_order_of(numbers[name], moved[:, place]) for place, name in enumerate(names)}
    return {**drawn, **{name: pa.array(values, from_pandas=True) for name, values in numbers.items()}}


class _Moments:
    """The covariances of numbers with each other, with texts, and of texts."""

    def __init__(self, numbers: Floats, texts: Floats) -> None:
        self.numbers = numbers.T @ numbers / len(numbers)
        self.mixed = texts.T @ numbers / len(numbers)
        self.texts = texts.T @ texts / len(texts) + RIDGE * np.eye(texts.shape[1])


def _moved(numbers: Floats, texts: Floats, wanted: _Moments) -> Floats:
    """What the texts say is replaced by what they should say, and the rest is mapped to what is then left."""
    now = _Moments(numbers, texts)
    before, after = (np.linalg.solve(now.texts, moments.mixed) for moments in (now, wanted))
    root = _root(now.numbers - before.T @ now.texts @ before)
    inverse = np.linalg.inv(root)
    left = _root(root @ (wanted.numbers - after.T @ now.texts @ after) @ root)
    moved: Floats = (numbers - texts @ before) @ (inverse @ left @ inverse) + texts @ after
    return moved


def _root(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    root: Floats = (vectors * np.sqrt(np.maximum(values, RIDGE))) @ vectors.T
    return root


def _standard(columns: Mapping[str, pa.Array], names: list[str], table: Mapping[str, pa.Array]) -> Floats:
    """Columns of numbers on the scale that each has in the table, gaps at the mean."""
    parts = []
    for name in names:
        known = numbers_of(table[name])
        known = known[np.isfinite(known)]
        spread = (known.std() if len(known) else 0.0) or 1.0
        here = numbers_of(columns[name])
        mean = np.nanmean(here) if np.isfinite(here).any() else 0.0
        parts.append(np.where(np.isfinite(here), (here - mean) / spread, 0.0))
    return np.column_stack(parts)


def _indicators(columns: Mapping[str, pa.Array], names: list[str], table: Mapping[str, pa.Array]) -> Floats:
    """The frequent texts of the table as centred columns of zeros and ones."""
    parts = [np.empty((len(next(iter(columns.values()))), 0))]
    for name in names:
        frequent, _ = encode(name, table[name], LEVELS)
        for text in (each.removeprefix(f"{name}=") for each in frequent[:LEVELS]):
            here = columns[name].fill_null("?").to_numpy(zero_copy_only=False) == text
            parts.append((here - here.mean())[:, np.newaxis])
    return np.column_stack(parts)


def _in_order_of(values: Floats, moved: Floats) -> Floats:
    known = np.flatnonzero(np.isfinite(values))
    placed = values.copy()
    placed[known[np.argsort(moved[known], kind="stable")]] = np.sort(values[known])
    return placed
