"""Many contexts with named fields, in the forms that the core reads: dicts, columns of a table, or sparse rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.contexts import conversion, data_frames
from manul.utils.foreign import is_sparse

SparseRows = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.float64]]


@dataclass(frozen=True)
class NamedBatch:
    """Contexts for the batch methods of a player, and their number.

    >>> len(NamedBatch([{"age": 31}, {"age": 7}], 2))
    2
    """

    contexts: list[conversion.Fields] | dict[str, data_frames.Values] | SparseRows
    count: int

    def __len__(self) -> int:
        return self.count

    def is_empty(self) -> bool:
        if isinstance(self.contexts, tuple):
            return not len(self.contexts[2])
        return not self.contexts if isinstance(self.contexts, dict) else not any(self.contexts)

    def __getitem__(self, row: int) -> conversion.Fields:
        if isinstance(self.contexts, list):
            return self.contexts[row]
        if isinstance(self.contexts, dict):
            return {name: values[row] for name, values in self.contexts.items()}
        starts, columns, values = self.contexts
        part = slice(starts[row], starts[row + 1])
        return {str(column): float(value) for column, value in zip(columns[part], values[part], strict=True)}


def named_batch(contexts: Any) -> NamedBatch | None:
    """Convert many contexts with named fields; return None if they are rows of numbers.

    >>> named_batch([{"age": 31}, {"age": 7}])
    NamedBatch(contexts=[{'age': 31}, {'age': 7}], count=2)
    >>> named_batch([[31], [7]])
    """
    if isinstance(contexts, NamedBatch):
        return contexts
    if is_sparse(contexts):
        return _sparse(contexts)
    columns = data_frames.columns(contexts := data_frames.arrow_table(contexts))
    if columns is not None:
        return NamedBatch(columns, data_frames.row_count(contexts))
    rows = conversion.to_dicts(contexts)
    return None if rows is None else NamedBatch(rows, len(rows))


def _sparse(table: Any) -> NamedBatch:
    rows = table.tocsr()
    if rows.has_canonical_format and rows.data.dtype.kind in "biuf":
        arrays = rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.float64)
        return NamedBatch(arrays, rows.shape[0])
    fields = [conversion.to_dict(rows[[number]]) for number in range(rows.shape[0])]
    return NamedBatch(fields, len(fields))


def rows_with(batch: conversion.Row | NamedBatch, names: Sequence[str]) -> Iterator[Mapping[str, Any] | None]:
    """The rows of a batch, of tables only the columns that these names begin with; None for rows of numbers."""
    columns = batch.contexts if isinstance(batch, NamedBatch) else None
    if isinstance(columns, dict):
        firsts = {name.partition(".")[0] for name in names} | {*names}
        columns = {name: values for name, values in columns.items() if name in firsts}
        return ({name: values[row] for name, values in columns.items()} for row in range(len(batch)))
    return (batch[row] if isinstance(batch, NamedBatch) else None for row in range(len(batch)))
