"""The columns of logs with several knobs: structs of one value per knob, or one column per knob in CSV and data frames.

A range or step is a number. The options of a choice are texts, truth values or numbers if all of them are, and otherwise
JSON texts.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manul.actions.kinds.choice import Choice
from manul.actions.kinds.knob import Option
from manul.actions.space import ActionSpace
from manul.errors import FileError

if TYPE_CHECKING:
    import pyarrow as pa

STRUCTS = {"action": "action.", "density_by_knob": "density."}  # the prefixes of flat columns
Columns = dict[str, npt.NDArray[Any]]


class Options:
    """The options of a choice, as they are stored.

    >>> options = Options(Choice(["1", 1, 2.5]))
    >>> options.stored("1"), options.stored(1), options.parse('"1"'), options.parse("1"), options.find(1.0)
    ('"1"', '1', '1', 1, 1)
    """

    def __init__(self, knob: Choice[Any]) -> None:
        self.type = option_type(knob)
        all_text = all(isinstance(option, str) for option in knob.options)
        self._is_json = str(self.type) == "string" and not all_text
        self._texts = [str(o) if all_text else json.dumps(o, ensure_ascii=False) for o in knob.options]
        self._by_value = {(isinstance(option, bool), option): option for option in knob.options}
        self._by_text = dict(zip(self._texts, knob.options, strict=True))
        self._text_of = dict(zip(self._by_value, self._texts, strict=True))

    def find(self, value: object) -> Option | None:
        """The option that is equal to a value, or None."""
        return self._by_value.get((isinstance(value, bool), value)) if isinstance(value, str | int | float) else None

    def parse(self, text: str) -> Option | None:
        """The option of a text in a file, or None."""
        option = self._by_text.get(text)
        option = self.find(text) if option is None else option  # a text without the quotes of JSON
        if option is not None or self._is_json:
            return option
        try:
            return self.find(float(text))
        except ValueError:
            return self._by_text.get(text.lower())  # spreadsheets write TRUE

    def text(self, option: Option) -> str:
        return self._text_of[isinstance(option, bool), option]

    def stored(self, option: Option) -> Option:
        """An option as it is stored in a column of `type`."""
        return self.text(option) if str(self.type) == "string" else option

    def from_stored(self, value: object) -> Option | None:
        """The option that is stored as a value, or equal to it, or None."""
        return self.parse(value) if isinstance(value, str) else self.find(value)

    def values(self, column: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
        """The options of a column of any type, with None and a flag for values that are no options."""
        import pyarrow as pa

        column = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        encoded = column.dictionary_encode()
        found = [self.from_stored(value) for value in encoded.dictionary.to_pylist()]
        places = encoded.indices.fill_null(len(found)).to_numpy(zero_copy_only=False).astype(np.int64)
        distinct = np.empty(len(found) + 1, dtype=object)
        distinct[: len(found)] = found
        values = distinct[places]
        return values, np.array([value is None for value in distinct])[places]


def option_type(knob: Choice[Any]) -> pa.DataType:
    """The type of the column of a choice.

    >>> option_type(Choice([1, 2])), option_type(Choice(["a", 2]))
    (DataType(int64), DataType(string))
    """
    import pyarrow as pa

    kinds = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
    options, known = knob.options, {type(option) for option in knob.options}
    fits = all(isinstance(option, str) or abs(option) < 2**63 for option in options) or known == {float}
    return kinds.get(known.pop(), pa.string()) if len(known) == 1 and fits else pa.string()


def is_several(schema: pa.Schema) -> bool:
    """Whether the actions of a table have several knobs."""
    import pyarrow as pa

    return "action" in schema.names and bool(pa.types.is_struct(schema.field("action").type))


def struct_type(name: str, knobs: ActionSpace) -> pa.DataType:
    """The type of the column `action` or `density_by_knob`."""
    import pyarrow as pa

    chosen = {each: knob for each, knob in knobs.knobs if isinstance(knob, Choice) and name == "action"}
    return pa.struct([(each, option_type(chosen[each]) if each in chosen else pa.float64()) for each in knobs.names])


def struct_of(name: str, columns: Mapping[str, Sequence[Any]], knobs: ActionSpace) -> pa.StructArray:
    """The column `action` or `density_by_knob` from columns by knob."""
    import pyarrow as pa

    parts = []
    for each, knob in knobs.knobs:
        if isinstance(knob, Choice) and name == "action":
            options = Options(knob)
            parts.append(pa.array([None if v is None else options.stored(v) for v in columns[each]], options.type))
        else:
            parts.append(pa.array(columns[each], pa.float64()))
    return pa.StructArray.from_arrays(parts, fields=[*struct_type(name, knobs)])


def columns_of(table: pa.Table, name: str, knobs: ActionSpace) -> Columns:
    """The columns by knob of `action` or `density_by_knob`; missing numbers are NaN, missing options None."""
    columns: Columns = {}
    for each, knob in knobs.knobs:
        part = struct_parts(table, name)[each]
        if isinstance(knob, Choice) and name == "action":
            columns[each] = Options(knob).values(part)[0]
        else:
            columns[each] = np.asarray(part.to_numpy(zero_copy_only=False), dtype=np.float64)
    return columns


def struct_parts(table: pa.Table, name: str) -> dict[str, pa.Array]:
    """The fields of a struct column; those of a missing struct are missing."""
    import pyarrow as pa

    column = table.column(name)
    whole = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return dict(zip((field.name for field in column.type), whole.flatten(), strict=True))


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
