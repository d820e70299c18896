"""Conversion between the tables of logs and data frames of pandas and polars.

A frame has the columns of a log: `reward` instead of `loss` for a log of rewards, `estimated_density` instead of `density`
if densities were estimated. Contexts that are rows of numbers are in context_0, context_1, ... as in CSV; sparse ones are
in `context`, as dicts in pandas and as lists of name and value in polars.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.contexts import data_frames
from manul.contexts.records import distinct_names, is_missing, is_record, to_fields
from manul.contexts.schema import ContextSchema, Field, context_columns
from manul.errors import InputError
from manul.logs.formats.level_columns import LEVELS, level_texts
from manul.logs.formats.log_schema import (
    INDEX,
    Metadata,
    context_layout,
    dense_column,
    flat_knobs,
    is_part,
    is_several,
    negate_losses,
    nested_knobs,
    reserved_names,
    single_array,
    sparse_features,
    sparse_type,
    stated_name,
)
from manul.utils.foreign import exports_table, is_arrow_table, is_pandas_frame

if TYPE_CHECKING:
    import pyarrow as pa

KEY = "manul"  # of the ranges among the attributes of a pandas frame
DENSE = "context_{}".format


def arrow_table(table: Any, *, has_knobs: bool = False) -> pa.Table:
    """Any table as an Arrow table: a data frame, a dict of columns, a list of rows with names, or an Arrow table itself.

    `has_knobs` says that its actions are declared to be other than numbers in a range.

    >>> arrow_table({"age": [30, 41]}).column_names
    ['age']
    """
    import pyarrow as pa

    if isinstance(table, list | tuple) and table and all(isinstance(row, Mapping) or is_record(row) for row in table):
        rows = [row if isinstance(row, Mapping) else to_fields(row) for row in table]
        return arrow_table(data_frames.from_rows(rows), has_knobs=has_knobs)
    if exports_table(table) and not is_arrow_table(table):
        return _exported(data_frames.arrow_table(table), has_knobs=has_knobs)
    if is_pandas_frame(table):
        return from_pandas(table, has_knobs=has_knobs)
    if isinstance(table, Mapping):
        names = distinct_names([*table], "table")
        table = dict(zip(names, map(_column, names, table.values()), strict=True))
    try:
        return pa.table(table)
    except (pa.ArrowException, TypeError, ValueError) as error:
        expected = "an Arrow table, a data frame, or a dict of columns of one length"
        raise InputError(f"table must be {expected}: {error}.", "table") from None


def context_table(contexts: Any) -> pa.Table | None:
    """Contexts with named fields as an Arrow table in the types of a log; None if they are rows of numbers.

    >>> context_table([{"age": 30}, {"age": 41}]).column_names, context_table([[30.0]])
    (['age'], None)
    """
    columns = context_columns(contexts)
    if columns is None:
        return None
    for name in columns:
        if name in (*reserved_names(several=True), "reward", "estimated_density"):
            raise InputError(f"contexts must not have a column {name!r}, as logs have. Rename it.", "contexts")
    return ContextSchema.of(columns).to_arrow(columns)


def stated_table(table: pa.Table) -> pa.Table:
    """The table of a log with the columns that users know: rewards and estimated densities under their names."""
    metadata = Metadata.from_arrow(table.schema.metadata)
    stated = negate_losses(table) if metadata.rewards else table
    stated = stated.rename_columns([stated_name(name, metadata) for name in stated.column_names])
    flags = replace(metadata, rewards=False, densities_estimated=False)  # the names of the columns say so
    return stated.replace_schema_metadata(flags.to_arrow())


def to_pandas(table: pa.Table) -> Any:
    """The table of a log as a pandas frame, whose attributes have the ranges."""
    metadata = Metadata.from_arrow(table.schema.metadata)
    contexts = None
    if context_layout(table.schema) == "sparse":
        names: Any = metadata.names or [str(index) for index in range(metadata.width or 0)]
        contexts = sparse_features(table, names).to_dicts()
    stated = stated_table(table)
    frame = _flat(stated).replace_schema_metadata(None).to_pandas()
    if contexts is not None:
        frame["context"] = contexts
    frame.attrs[KEY] = stated.schema.metadata[b"manul"].decode()
    return frame


def from_pandas(frame: Any, *, has_knobs: bool = False) -> pa.Table:
    """A pandas frame as a table; an index that has a name or is no row number is refused."""
    import pyarrow as pa

    if frame.columns.nlevels > 1:
        raise InputError("The data frame has columns of several levels. Join their names first.", "table")
    if frame.index.nlevels > 1 or frame.index.name is not None or frame.index.dtype.kind not in "iu":
        names = ", ".join(repr(name) for name in frame.index.names if name is not None) or "without a name"
        raise InputError(
            f"The data frame has an index, {names}. Make it a column with reset_index(), or drop it with "
            "reset_index(drop=True).",
            "table",
        )
    _check_distinct([*frame.columns])
    distinct_names([*frame.columns], "table")
    metadata = _attributes(frame.attrs.get(KEY), [*frame.columns])
    contexts = [*frame["context"]] if "context" in frame.columns else []
    sparse = any(isinstance(context, Mapping) for context in contexts)
    frame = frame.drop(columns="context") if sparse else frame
    # Arrow would take times of several offsets for times of the first one.
    objects = [name for name in frame.columns if frame[name].dtype == object]
    columns = {name: _column(name, frame[name].tolist()) for name in objects}
    try:
        table = pa.Table.from_pandas(frame.drop(columns=objects), preserve_index=False)
        for name in objects:
            table = table.add_column([*frame.columns].index(name), name, [pa.array(columns[name], from_pandas=True)])
        table = table.replace_schema_metadata(metadata.to_arrow())
    except (pa.ArrowException, TypeError) as error:
        raise InputError(f"A column of the data frame cannot be read: {error}.", "table") from None
    return (
        _with_features(table, contexts, metadata)
        if sparse
        else _dense(table, has_knobs=has_knobs or metadata.knobs is not None)
    )


def to_polars(table: pa.Table) -> Any:
    """The table of a log as a polars frame."""
    import polars
    import pyarrow as pa

    metadata, stated = Metadata.from_arrow(table.schema.metadata), _flat(stated_table(table))
    if context_layout(table.schema) == "sparse":
        names: Any = metadata.names or [str(index) for index in range(metadata.width or 0)]
        features = sparse_features(table, names)
        taken = np.array([*names, ""], dtype=object)[features.places]
        values = pa.StructArray.from_arrays(
            [pa.array(taken, pa.string()), pa.array(features.values, pa.float32())], ["name", "value"]
        )
        lists = pa.ListArray.from_arrays(pa.array(features.starts, pa.int32()), values)
        stated = stated.set_column(stated.column_names.index("context"), "context", lists)
    frame: Any = polars.from_arrow(stated.replace_schema_metadata(None))
    frame.columns = stated.column_names  # polars gives a name to a column without one
    return frame


def _exported(table: pa.Table, *, has_knobs: bool = False) -> pa.Table:
    """The table of a frame that has flat columns, as what `to_polars` returns."""
    import pyarrow as pa

    given = table.schema.field("context").type if "context" in table.column_names else pa.null()
    is_list = pa.types.is_list(given) or pa.types.is_large_list(given)
    if is_list and pa.types.is_struct(given.value_type):
        rows = single_array(table, "context").to_pylist()
        contexts = [None if row is None else {item["name"]: item["value"] for item in row} for row in rows]
        metadata = Metadata(parts=any(map(is_part, table.column_names)))
        return _with_features(table.drop_columns("context"), contexts, metadata)
    return _dense(table, has_knobs=has_knobs)


def _column(name: str, column: Any) -> Any:
    """A column of values as Arrow takes it; those of contexts have the types of a log."""
    if not isinstance(column, list | tuple):
        return column
    own = name in (*reserved_names(several=True), "reward", "estimated_density") or "." in name
    if not own:
        return Field.of(column, name).to_arrow(column, name)
    odd = any(isinstance(each, str) or type(each).__name__ in ("NAType", "NaTType") for each in column)
    return [None if is_missing(each) else each for each in column] if odd else column


def _check_distinct(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"The data frame has two columns named {name!r}. Rename one.", "table")


def _attributes(text: object, names: list[str]) -> Metadata:
    """The ranges that `to_pandas` has left; anything else is ignored."""
    if not isinstance(text, str):
        return Metadata(parts=any(is_part(str(name)) for name in names))
    return Metadata.from_arrow({b"manul": text.encode()})


def _flat(table: pa.Table) -> pa.Table:
    """A table with a column for each number of dense contexts, and for each of several knobs, and levels as JSON."""
    import pyarrow as pa

    table = flat_knobs(table)
    if LEVELS in table.column_names:
        texts = pa.array(level_texts(single_array(table, LEVELS)), pa.string())
        table = table.set_column(table.column_names.index(LEVELS), LEVELS, texts)
    if "context" not in table.column_names or context_layout(table.schema) != "dense":
        return table
    context = single_array(table, "context")
    width = context.type.list_size
    flat = np.asarray(context.flatten()).reshape(len(table), width)
    table = table.drop_columns("context")
    for column in range(width):
        table = table.append_column(DENSE(column), [np.ascontiguousarray(flat[:, column])])
    return table


def _dense(table: pa.Table, *, has_knobs: bool) -> pa.Table:
    table = nested_knobs(table)
    several = has_knobs or is_several(table.schema)
    reserved = (*reserved_names(several=several), "reward", "estimated_density")
    others = [name for name in table.column_names if name not in reserved and not is_part(name)]
    width = len(others)
    if not others or {*others} != {DENSE(column) for column in range(width)}:
        return table
    matrix = np.empty((len(table), width), np.float32)
    for column in range(width):
        matrix[:, column] = table.column(DENSE(column)).to_numpy()
    return table.drop_columns(others).append_column("context", dense_column(matrix))


def _with_features(table: pa.Table, contexts: list[Any], metadata: Metadata) -> pa.Table:
    """The table with sparse contexts, given as mappings."""
    import pyarrow as pa

    for row, context in enumerate(contexts):
        if not isinstance(context, Mapping):
            raise InputError(
                f"The context of row {row} must be a mapping, like others, got {context!r:.60}.", "context"
            )
    seen = {str(name) for context in contexts for name in context}
    names = metadata.names if metadata.names is not None and seen <= {*metadata.names} else tuple(sorted(seen))
    width = len(names)
    if metadata.names is None and all(INDEX.fullmatch(name) for name in seen):
        width = max(metadata.width or 0, max((int(name) for name in seen), default=-1) + 1)
        names = tuple(str(index) for index in range(width))
        metadata = replace(metadata, width=width)
    else:
        metadata = replace(metadata, width=width, names=names)
    places = {name: place for place, name in enumerate(names)}
    try:
        rows = [
            {"index": [places[str(name)] for name in context], "value": [float(value) for value in context.values()]}
            for context in contexts
        ]
    except (TypeError, ValueError):
        raise InputError("The features of contexts must be numbers.", "context") from None
    table = table.append_column("context", pa.array(rows, sparse_type()))
    return table.replace_schema_metadata(metadata.to_arrow())
