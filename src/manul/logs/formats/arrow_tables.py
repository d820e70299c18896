"""Conversion of Arrow tables of any origin to the schema of a log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from manul.actions.kinds.choice import Choice
from manul.actions.space import ActionSpace
from manul.errors import FileError
from manul.logs.formats import Piece, knob_checks, knob_columns
from manul.logs.formats.context_changes import ContextChanges, converted_types, is_json_date, join_changes
from manul.logs.formats.file_errors import BadRow, Problems, knobs_of_file
from manul.logs.formats.log_schema import (
    NUMBERS,
    REWARD,
    TEXTS,
    Metadata,
    dense_type,
    has_estimates,
    has_rewards,
    negate_losses,
    own_names,
    require,
    reserved_names,
    schema_of,
    sparse_type,
)
from manul.logs.formats.row_checks import single_array
from manul.logs.formats.timestamps import date_seconds

if TYPE_CHECKING:
    import pyarrow as pa


class SchemaAdapter:
    """Converts tables of one schema to that of a log; the first context determines the width."""

    def __init__(self, schema: pa.Schema, problems: Problems) -> None:
        import pyarrow as pa

        self.problems, path = problems, str(problems.path)
        schema = knob_columns.nested(schema.empty_table()).schema
        require(schema.names, path, needs_density=problems.needs_density)
        self.metadata = Metadata.from_arrow(schema.metadata, problems.path)
        self.rewards = has_rewards(schema.names)
        estimated = has_estimates(schema.names)
        self.metadata = replace(
            self.metadata,
            rewards=self.rewards or self.metadata.rewards,
            densities_estimated=estimated or self.metadata.densities_estimated,
        )
        self.several = knob_columns.is_several(schema)
        self.metadata = replace(self.metadata, knobs=_knobs(schema, self.metadata, problems))
        names = own_names(schema.names)
        schema = pa.schema([field.with_name(name) for field, name in zip(schema, names, strict=True)])
        self.width: int | None = None
        self.is_list = self.is_struct = False
        if "context" in schema.names:
            given = schema.field("context").type
            self.is_struct = pa.types.is_struct(given) and {"index", "value"} == {part.name for part in given}
            self.is_list = any(
                check(given) for check in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
            )
            if not (self.is_list or self.is_struct):
                raise FileError(
                    f"{path}: column context must be lists of numbers or structs of index and value, got {given}.",
                    "context",
                )
        reserved = reserved_names(several=self.several)
        self.optional = [name for name in reserved if name not in (*NUMBERS, "context") and name in schema.names]
        others = [name for name in schema.names if name not in reserved]
        if others and "context" in schema.names:
            raise FileError(
                f"{path} has a column 'context' and also {others[0]!r}. Put the context into one or the other.",
                "context",
            )
        converted = converted_types(pa.schema([schema.field(name) for name in others]))
        self.metadata = replace(self.metadata, changes=_changes_of(others, self.metadata.changes, converted))
        self.dates = [name for name in others if is_json_date(schema.field(name).type)]
        self.texts = {name: name not in self.dates and _is_text(schema, name, path) for name in others}
        self._check_types(schema, path)

    def _check_types(self, schema: pa.Schema, path: str) -> None:
        """Reject text where numbers belong, and anything but text where text belongs."""
        texts = (*TEXTS, "within", *(knob_columns.STRUCTS if self.several else ()))
        for name in (*NUMBERS, *self.optional):
            if name not in texts and name in schema.names and _is_text(schema, name, path):
                raise FileError(f"{path}: column {self._stated(name)} must be numbers, got text.", self._stated(name))
        if (
            "within" in self.optional
            and not _is_text(schema, "within", path)
            and str(given := schema.field("within").type) != "null"
        ):
            raise FileError(f"{path}: column within must be JSON text, got {given}.", "within")

    def _stated(self, name: str) -> str:
        return REWARD if self.rewards and name == "loss" else name

    def piece(self, table: pa.Table, first: int) -> Piece:
        """Convert a table whose rows are numbered from `first`."""
        import pyarrow as pa

        rows = np.arange(first, first + len(table))
        table = knob_columns.nested(table)
        table = table.rename_columns(own_names(table.column_names))
        if "density" not in table.column_names:
            table = table.append_column("density", pa.nulls(len(table), pa.float64()))
        good = self._check_widths(table, rows) if self.is_list else None
        if good is not None and not good.all():
            table, rows = table.filter(good), rows[good]
        if self.several:
            table, rows = self._fit_knobs(table, rows)
        if self.dates:
            table, rows = self._convert_dates(table, rows)
        schema = self.schema(table)
        columns = {
            name: _cast(table.column(name), schema.field(name).type) for name in schema.names if name != "context"
        }
        if self.is_list:
            columns["context"] = _fixed_lists(single_array(table, "context"), self.width or 0)
        elif self.is_struct:
            columns["context"] = table.column("context").cast(sparse_type())
        elif not self.texts:
            columns["context"] = pa.array([[]] * len(table), dense_type(0))
        converted = pa.table(columns, schema=schema)
        return Piece(negate_losses(converted) if self.rewards else converted, rows)

    def schema(self, table: pa.Table) -> pa.Schema:
        if self.is_struct:
            if self.metadata.width is None:
                width = 1 + max(
                    (max(index, default=-1) for index in single_array(table, "context").field("index").to_pylist()),
                    default=-1,
                )
                self.metadata = replace(self.metadata, width=width)
            return schema_of(optional=self.optional, metadata=self.metadata)
        if self.texts:
            return schema_of(optional=self.optional, texts=self.texts, metadata=self.metadata)
        return schema_of(optional=self.optional, width=self.width or 0, metadata=self.metadata)

    def _fit_knobs(self, table: pa.Table, rows: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        """The table with its structs in the types and order of the knobs, without rows that have unknown options."""
        import pyarrow as pa

        knobs, good = self.metadata.knobs, np.ones(len(table), dtype=np.bool_)
        assert knobs is not None
        for name in [name for name in knob_columns.STRUCTS if name in table.column_names]:
            parts = knob_columns.struct_parts(table, name)
            for each, knob in knobs.knobs:
                if isinstance(knob, Choice) and name == "action":
                    given = parts[each]
                    parts[each], unknown = knob_columns.Options(knob).values(given)
                    for index in np.flatnonzero(unknown & good):
                        rule, value = knob_checks.describe(knob), given[int(index)].as_py()
                        self.problems.report(int(rows[index]), f"action.{each}", rule, value)
                    good &= ~unknown
                else:
                    parts[each] = _cast(pa.chunked_array([parts[each]]), pa.float64()).combine_chunks()
            place = table.column_names.index(name)
            table = table.set_column(place, name, knob_columns.struct_of(name, parts, knobs))
        return (table, rows) if good.all() else (table.filter(good), rows[good])

    def _convert_dates(self, table: pa.Table, rows: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        """The table with the dates of JSON as seconds since 1970, without rows in which one is invalid."""
        import pyarrow as pa

        good = np.ones(len(table), dtype=np.bool_)
        for name in self.dates:
            values: list[object] = table.column(name).to_pylist()
            for index, value in enumerate(values):
                try:
                    values[index] = date_seconds(name, value)
                except BadRow as bad:
                    self.problems.report(int(rows[index]), bad.column, bad.rule, bad.got)
                    values[index], good[index] = None, False
            table = table.set_column(table.column_names.index(name), name, [pa.array(values, pa.float64())])
        return (table, rows) if good.all() else (table.filter(good), rows[good])

    def _check_widths(self, table: pa.Table, rows: np.ndarray) -> np.ndarray:
        """Flag the contexts that have the width of the first one."""
        import pyarrow.compute as pc

        lengths = np.asarray(
            pc.list_value_length(single_array(table, "context")).fill_null(-1).to_numpy(zero_copy_only=False)
        )
        present = lengths[lengths >= 0]
        if self.width is None and len(present):
            self.width = int(present[0])
        good = lengths == self.width
        for index in np.flatnonzero(~good):
            length = int(lengths[index]) if lengths[index] >= 0 else None
            self.problems.report(int(rows[index]), "context", f"{self.width} numbers, like the first one", length)
        return np.asarray(good)


def _changes_of(names: list[str], before: ContextChanges | None, converted: dict[str, str]) -> ContextChanges | None:
    """The changes that metadata declare, for the columns that are still there, and those of this conversion."""
    if before is not None:
        kept = {name: kind for name, kind in before.converted.items() if name in names}
        before = ContextChanges(kept, tuple(name for name in before.absent if name in names))
    return join_changes([before, ContextChanges(converted)])


def _knobs(schema: pa.Schema, metadata: Metadata, problems: Problems) -> ActionSpace | None:
    """The knobs of a table with several; None if actions are numbers."""
    import pyarrow as pa

    if not knob_columns.is_several(schema):
        if problems.knobs or metadata.knobs:
            known = problems.knobs or metadata.knobs
            expected = ", ".join(known.names if known else ())
            raise FileError(f"{problems.path} has one number per action, not the knobs {expected}.", "action")
        return None
    knobs = knobs_of_file(problems, metadata.knobs, [part.name for part in schema.field("action").type])
    for name in [name for name in knob_columns.STRUCTS if name in schema.names]:
        given = schema.field(name).type
        names = [part.name for part in given] if pa.types.is_struct(given) else []
        if sorted(names) != sorted(knobs.names):
            prefix = knob_columns.STRUCTS[name]
            raise FileError(
                f"{problems.path} must have {prefix}NAME once for each of the knobs {', '.join(knobs.names)}.", name
            )
        for part in given:
            kind = next(knob for each, knob in knobs.knobs if each == part.name)
            is_option = isinstance(kind, Choice) and name == "action"
            if _is_text(pa.schema([part]), part.name, str(problems.path)) and not is_option:
                raise FileError(
                    f"{problems.path}: column {knob_columns.STRUCTS[name]}{part.name} must be numbers, got text.", name
                )
    return knobs


def _is_text(schema: pa.Schema, name: str, path: str) -> bool:
    import pyarrow as pa

    given = schema.field(name).type
    given = given.value_type if pa.types.is_dictionary(given) else given
    if pa.types.is_string(given) or pa.types.is_large_string(given) or pa.types.is_string_view(given):
        return True
    kinds = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_null)
    if any(check(given) for check in (*kinds, pa.types.is_timestamp, pa.types.is_date)):
        return False
    raise FileError(f"{path}: column {name} must be numbers or text, got {given}. Remove or convert it.", name)


def _cast(column: pa.ChunkedArray, target: pa.DataType) -> pa.ChunkedArray:
    """Cast a column to a type of the log; times become seconds since 1970."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        microseconds = column.cast(pa.timestamp("us", getattr(column.type, "tz", None)), safe=False).cast(pa.int64())
        return pc.divide(microseconds.cast(pa.float64()), 1e6)
    if pa.types.is_decimal(column.type) or pa.types.is_boolean(column.type) or pa.types.is_float16(column.type):
        return (
            column.cast(pa.float64(), safe=False)
            if not pa.types.is_boolean(column.type)
            else column.cast(pa.int8()).cast(target)
        )
    return column.cast(target, safe=False)


def _fixed_lists(context: pa.Array, width: int) -> pa.Array:
    import pyarrow as pa

    flat = context.flatten().cast(pa.float32(), safe=False)
    if width == 0:
        return pa.array([[]] * len(context), dense_type(0))
    return pa.FixedSizeListArray.from_arrays(flat, width)


def dense_column(contexts: np.ndarray) -> pa.Array:
    """Build a column of dense contexts from a matrix, without a copy."""
    import pyarrow as pa

    width = contexts.shape[1]
    if width == 0:
        return pa.array([[]] * len(contexts), dense_type(0))
    return pa.FixedSizeListArray.from_arrays(pa.array(contexts.reshape(-1)), width)
