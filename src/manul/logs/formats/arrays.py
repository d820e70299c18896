"""Between NumPy arrays and the columns of a log."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manul.errors import InputError
from manul.logs.formats import log_schema as columns
from manul.logs.formats import row_checks
from manul.logs.formats.arrow_tables import dense_column
from manul.logs.formats.log_schema import Metadata

if TYPE_CHECKING:
    import pyarrow as pa

VIEWS = {"actions": "action", "densities": "density", "losses": "loss", "lows": "low", "highs": "high", "times": "time"}
Contexts = npt.NDArray[np.float32]


def table_of(views: Mapping[str, Any], metadata: Metadata) -> pa.Table:
    """Arrays as a table; no copy where they are of the log's types already."""
    import pyarrow as pa

    contexts = np.ascontiguousarray(views["contexts"], dtype=np.float32)
    if contexts.ndim != 2:
        raise InputError(
            f"contexts must be a table, one row per context; got shape {contexts.shape}. Use reshape(-1, width).",
            "contexts",
        )
    optional = [column for view, column in {**VIEWS, "ids": "id"}.items() if views.get(view) is not None]
    schema = columns.schema_of(optional=optional, width=contexts.shape[1], metadata=metadata)
    found = {column: np.asarray(views[view], dtype=np.float64) for view, column in VIEWS.items() if column in optional}
    if "id" in optional:
        found["id"] = pa.array(views["ids"], pa.string())
    found["context"] = dense_column(contexts)
    return pa.table(found, schema=schema)


def matrix(table: pa.Table, metadata: Metadata) -> Contexts:
    """The contexts as numbers, zeros included."""
    layout = columns.context_layout(table.schema)
    if layout == "columns":
        return _own_matrix(table)
    context = row_checks.single_array(table, "context")
    if layout == "dense":
        flat = np.asarray(context.flatten().to_numpy(zero_copy_only=False), dtype=np.float32)
        return flat.reshape(len(table), context.type.list_size)
    matrix = np.zeros((len(table), metadata.width or 0), dtype=np.float32)
    lists = context.field("index")
    owners = np.repeat(np.arange(len(table)), np.asarray(lists.value_lengths()))
    matrix[owners, np.asarray(lists.flatten())] = np.asarray(context.field("value").flatten())
    return matrix


def _own_matrix(table: pa.Table) -> Contexts:
    names = columns.user_columns(table.schema)
    for name in names:
        if columns.is_text(table.schema, name):
            got = next((value for value in table[name].to_pylist() if value is not None), None)
            raise InputError(
                f"contexts must be numbers; got text in column {name!r}, such as {got!r}. Use context_rows().",
                "contexts",
            )
    matrix = np.empty((len(table), len(names)), dtype=np.float32)
    for place, name in enumerate(names):
        matrix[:, place] = row_checks.numbers(table, name)
    return matrix


def fields(table: pa.Table) -> dict[str, npt.NDArray[Any]] | None:
    """The user's own columns: numbers with nan for gaps, and texts with None for them; None for contexts without names."""
    if columns.context_layout(table.schema) != "columns":
        return None
    found: dict[str, npt.NDArray[Any]] = {}
    for name in columns.user_columns(table.schema):
        if columns.is_text(table.schema, name):
            found[name] = np.array(table[name].to_pylist(), dtype=object)
        else:
            found[name] = row_checks.numbers(table, name)
    return found


def optional(table: pa.Table, name: str) -> npt.NDArray[np.float64] | None:
    """A column that not every log has."""
    return row_checks.numbers(table, name) if name in table.column_names else None
