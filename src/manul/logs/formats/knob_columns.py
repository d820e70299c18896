"""The columns of logs whose actions are no numbers in a range.

Named knobs are structs of one value per knob, or one column per knob in CSV and data frames. One knob without a name is the
column `action` itself, of the knob's type.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manul.actions.space import ActionSpace
from manul.errors import FileError

if TYPE_CHECKING:
    import pyarrow as pa

STRUCTS = {"action": "action.", "density_by_knob": "density."}  # the prefixes of flat columns
Columns = dict[str, npt.NDArray[Any]]


def is_several(schema: pa.Schema) -> bool:
    """Whether the actions of a table have named knobs."""
    import pyarrow as pa

    return "action" in schema.names and bool(pa.types.is_struct(schema.field("action").type))


def label(name: str, knob: str) -> str:
    """The flat column of a knob in `action` or `density_by_knob`, which is the column itself if the knob has no name.

    >>> label("action", "price"), label("action", "")
    ('action.price', 'action')
    """
    return STRUCTS[name] + knob if knob else name


def column_type(name: str, knobs: ActionSpace) -> pa.DataType:
    """The type of the column `action` or `density_by_knob`."""
    import pyarrow as pa

    types = {each: knob.arrow_type if name == "action" else pa.float64() for each, knob in knobs.knobs}
    return pa.struct([*types.items()]) if knobs.is_named else types[knobs.names[0]]


def to_arrow(name: str, columns: Mapping[str, Sequence[Any]], knobs: ActionSpace) -> pa.Array:
    """The column `action` or `density_by_knob` from columns by knob."""
    import pyarrow as pa

    parts = [
        knob.to_arrow(columns[each]) if name == "action" else pa.array(columns[each], pa.float64())
        for each, knob in knobs.knobs
    ]
    return pa.StructArray.from_arrays(parts, fields=[*column_type(name, knobs)]) if knobs.is_named else parts[0]


def columns_of(table: pa.Table, name: str, knobs: ActionSpace) -> Columns:
    """The columns by knob of `action` or `density_by_knob`; missing numbers are NaN, missing options None."""
    parts = parts_by_knob(table, name, knobs)
    return {
        each: knob.from_arrow(parts[each])
        if name == "action"
        else np.asarray(parts[each].to_numpy(zero_copy_only=False), dtype=np.float64)
        for each, knob in knobs.knobs
    }


def parts_by_knob(table: pa.Table, name: str, knobs: ActionSpace) -> dict[str, pa.Array]:
    """The Arrow arrays of the knobs."""
    if knobs.is_named:
        return struct_parts(table, name)
    return {knobs.names[0]: _whole(table, name)}


def struct_parts(table: pa.Table, name: str) -> dict[str, pa.Array]:
    """The fields of a struct column; those of a missing struct are missing."""
    whole = _whole(table, name)
    return dict(zip((field.name for field in whole.type), whole.flatten(), strict=True))


def _whole(table: pa.Table, name: str) -> pa.Array:
    import pyarrow as pa

    column = table.column(name)
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def nested(table: pa.Table) -> pa.Table:
    """The table with structs instead of the columns action.NAME and density.NAME, if it has no column action.

    >>> import pyarrow as pa
    >>> nested(pa.table({"action.price": [3.0], "density.price": [1.0], "loss": [0.5]})).column_names
    ['action', 'density_by_knob', 'loss']
    """
    import pyarrow as pa

    if "action" in table.column_names or not parts_of("action", table.column_names):
        return table
    for name in STRUCTS:
        parts = parts_of(name, table.column_names)
        if parts:
            place = table.column_names.index(next(iter(parts.values())))
            arrays = [table.column(part).combine_chunks() for part in parts.values()]
            struct = pa.StructArray.from_arrays(arrays, [*parts])
            table = table.add_column(place, name, struct).drop_columns([*parts.values()])
    return table


def nested_names(names: Sequence[str]) -> list[str]:
    """The names of the columns that `nested` makes of columns with these names.

    >>> nested_names(["action.price", "action.days", "density", "density.price", "density.days"])
    ['action', 'density', 'density_by_knob']
    """
    if "action" in names or not parts_of("action", names):
        return [*names]
    structs = {part: name for name in STRUCTS for part in parts_of(name, names).values()}
    return [*dict.fromkeys(structs.get(name, name) for name in names)]


def parts_of(name: str, names: Sequence[str]) -> dict[str, str]:
    """The knobs of the flat columns of `action` or `density_by_knob`, with the names of their columns."""
    prefix = STRUCTS[name]
    return {part.removeprefix(prefix): part for part in names if part.startswith(prefix) and len(part) > len(prefix)}


def check_flat(schema: pa.Schema) -> None:
    """Reject contexts whose names would be those of knobs if each knob has a column."""
    taken = [part for name in STRUCTS for part in parts_of(name, schema.names).values()]
    if taken and is_several(schema):
        raise FileError(
            f"the context {taken[0]!r} has the name of a knob's column. Rename it, or use .jsonl or .parquet.", taken[0]
        )


def flat(table: pa.Table) -> pa.Table:
    if not is_several(table.schema):
        return table
    check_flat(table.schema)
    for name, prefix in STRUCTS.items():
        if name in table.column_names:
            place, parts = table.column_names.index(name), struct_parts(table, name)
            table = table.drop_columns(name)
            for offset, (part, column) in enumerate(parts.items()):
                table = table.add_column(place + offset, prefix + part, column)
    return table
