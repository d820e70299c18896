"""Conversion between NumPy arrays and the columns of a log."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manul.actions.space import ActionSpace
from manul.contexts import data_frames
from manul.contexts.schema import ContextSchema, Field, cast_column
from manul.contexts.sparse_features import SparseFeatures
from manul.errors import InputError
from manul.logs.formats import log_schema as columns
from manul.logs.formats.level_columns import LEVELS, level_array, level_type
from manul.logs.formats.log_schema import Metadata

if TYPE_CHECKING:
    import pyarrow as pa

VIEWS = {
    "actions": "action",
    "densities": "density",
    "losses": "loss",
    "lows": "low",
    "highs": "high",
    "floors": "floor",
    "times": "time",
}
TEXTS = {"ids": "id", "arms": columns.ARM}
Contexts = npt.NDArray[np.float32]


def table_of(views: Mapping[str, Any], metadata: Metadata) -> pa.Table:
    """Build a table from arrays, without a copy if they have the log's types."""
    import pyarrow as pa

    contexts = np.ascontiguousarray(views["contexts"], dtype=np.float32)
    if contexts.ndim != 2:
        raise InputError(
            f"contexts must be a table with one row per context, got shape {contexts.shape}. Use reshape(-1, width).",
            "contexts",
        )
    given = {**VIEWS, **TEXTS, "densities_by_knob": "density_by_knob", "within": "within", "levels": LEVELS}
    optional = [column for view, column in given.items() if views.get(view) is not None]
    parts = {columns.PART + name: column for name, column in (views.get("parts") or {}).items()}
    optional += parts
    schema = columns.schema_of(optional=optional, width=contexts.shape[1], metadata=metadata)
    data: dict[str, Any] = {
        column: np.asarray(views[view], dtype=np.float64)
        for view, column in VIEWS.items()
        if column in optional and not (metadata.knobs is not None and column == "action")
    }
    data |= parts
    if metadata.knobs is not None:
        data |= _knob_data(views, metadata.knobs)
    data |= {column: pa.array(views[view], pa.string()) for view, column in TEXTS.items() if column in optional}
    if LEVELS in optional:
        data[LEVELS] = level_array(views["levels"], metadata.knobs)
    data["context"] = columns.dense_column(contexts)
    return pa.table(data, schema=schema)


def named_table_of(views: Mapping[str, Any], metadata: Metadata) -> pa.Table:
    """Build a table from arrays and an Arrow table of contexts."""
    contexts: pa.Table = views["contexts"]
    table = table_of({**views, "contexts": np.empty((len(contexts), 0))}, metadata).drop_columns("context")
    for name in contexts.column_names:
        table = table.append_column(name, contexts[name])
    return table


def _knob_data(views: Mapping[str, Any], knobs: ActionSpace) -> dict[str, Any]:
    import pyarrow as pa

    data = {"action": columns.knob_array("action", views["actions"], knobs)}
    if views.get("densities_by_knob") is not None:
        data["density_by_knob"] = columns.knob_array("density_by_knob", views["densities_by_knob"], knobs)
    if views.get("within") is not None:
        data["within"] = pa.array([columns.within_text(each) for each in views["within"]], pa.string())
    return data


def matrix(table: pa.Table, metadata: Metadata) -> Contexts:
    layout = columns.context_layout(table.schema)
    if layout == "columns":
        return _column_matrix(table)
    context = columns.single_array(table, "context")
    if layout == "dense":
        flat = np.asarray(context.flatten().to_numpy(zero_copy_only=False), dtype=np.float32)
        return flat.reshape(len(table), context.type.list_size)
    names: tuple[Any, ...] = metadata.names or tuple(range(metadata.width or 0))
    columns_of_names = {name: column for column, name in enumerate(sorted(names))}
    return columns.sparse_features(table, names).matrix(columns_of_names)


def _column_matrix(table: pa.Table) -> Contexts:
    names = columns.user_columns(table.schema)
    for name in names:
        if Field.of_arrow(table.schema.field(name).type, name).kind not in ("number", "flag", "missing"):
            example = next((value for value in table[name].to_pylist() if value is not None), None)
            rule = f"Column {name!r} has values such as {example!r:.60}, so contexts are not numbers"
            raise InputError(f"{rule}. Use fields or context_rows().", "contexts")
    matrix = np.empty((len(table), len(names)), dtype=np.float32)
    for index, name in enumerate(names):
        matrix[:, index] = columns.numbers(table, name)
    return matrix


def fields(table: pa.Table) -> dict[str, npt.NDArray[Any]] | None:
    """The columns of the context: numbers with NaN, other values with None for missing ones; None if it has no names."""
    if columns.context_layout(table.schema) != "columns":
        return None
    return {columns.field_name(name): _field(table.column(name)) for name in columns.user_columns(table.schema)}


def _field(column: pa.ChunkedArray) -> npt.NDArray[Any]:
    values = data_frames.from_arrow(column)
    if isinstance(values, np.ndarray):
        return values
    if not any(value is not None for value in values):
        return np.full(len(values), np.nan)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def features(table: pa.Table, metadata: Metadata) -> SparseFeatures | None:
    """The features of sparse contexts by name; None if contexts are stored otherwise or have no names."""
    if columns.context_layout(table.schema) != "sparse" or metadata.names is None:
        return None
    return columns.sparse_features(table, metadata.names)


def with_names(table: pa.Table, names: tuple[str, ...]) -> pa.Table:
    """A table of sparse contexts with other names, which include its own."""
    import pyarrow as pa

    metadata = Metadata.from_arrow(table.schema.metadata)
    assert metadata.names is not None
    features, places = columns.sparse_features(table, metadata.names), {name: place for place, name in enumerate(names)}
    moved = np.array([places[name] for name in metadata.names], dtype=np.int32)[features.places]
    starts = pa.array(features.starts, pa.int32())
    lists = [pa.ListArray.from_arrays(starts, pa.array(flat)) for flat in (moved, features.values.astype(np.float32))]
    contexts = pa.StructArray.from_arrays(lists, ["index", "value"]).cast(columns.sparse_type())
    renamed = table.set_column(table.column_names.index("context"), "context", contexts)
    return renamed.replace_schema_metadata(replace(metadata, names=names, width=len(names)).to_arrow())


def with_levels(table: pa.Table, *, wanted: bool) -> pa.Table:
    """The table with a column of levels if it is `wanted`, which are unknown unless it has them already."""
    import pyarrow as pa

    if wanted == (LEVELS in table.column_names):
        return table
    metadata = Metadata.from_arrow(table.schema.metadata)
    if not wanted:
        return table.drop_columns(LEVELS).replace_schema_metadata(replace(metadata, levels=False).to_arrow())
    # Before the contexts, as `schema_of` has it, so that tables with levels have the same schema.
    others = {*columns.user_columns(table.schema), *columns.part_columns(table.schema), "context"}
    place = next(place for place, name in enumerate([*table.column_names, "context"]) if name in others)
    table = table.add_column(place, LEVELS, pa.nulls(len(table), level_type(metadata.knobs)))
    return table.replace_schema_metadata(replace(metadata, levels=True).to_arrow())


def with_types(table: pa.Table, schema: ContextSchema) -> pa.Table:
    """A table whose columns of contexts have the types of a schema that is at least as wide."""
    own = {*columns.user_columns(table.schema)}
    for place, name in enumerate(table.column_names):
        if name in own:
            field = schema.fields[columns.field_name(name)]
            table = table.set_column(place, name, cast_column(table.column(name), field, name))
    return table
