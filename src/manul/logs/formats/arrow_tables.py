"""Conversion of Arrow tables of any origin to the schema of a log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.actions.space import ActionSpace
from manul.contexts import data_frames
from manul.contexts.dates import CLOCK, DATE
from manul.contexts.schema import ContextSchema, Field, cast_column
from manul.errors import FileError, InputError
from manul.logs.formats.level_columns import LEVELS, RULE, level_type, parse_levels
from manul.logs.formats.log_schema import (
    NUMBERS,
    REWARD,
    STRUCTS,
    TEXTS,
    Metadata,
    dense_type,
    field_name,
    has_estimates,
    has_rewards,
    is_part,
    is_several,
    knob_array,
    label,
    negate_losses,
    nested_knobs,
    own_names,
    parts_by_knob,
    require,
    reserved_names,
    schema_of,
    single_array,
    sparse_type,
)
from manul.logs.formats.readers import BadRow, Piece, Problems, json_rule, knobs_of_file, number, unnamed_knob

if TYPE_CHECKING:
    import pyarrow as pa


class SchemaAdapter:
    """Converts tables of one schema to that of a log; the first context determines the width."""

    def __init__(self, schema: pa.Schema, problems: Problems) -> None:
        import pyarrow as pa

        self.problems, path = problems, str(problems.path)
        schema = nested_knobs(schema.empty_table()).schema
        require(schema.names, path, needs_density=problems.needs_density)
        self.metadata = Metadata.from_arrow(schema.metadata, problems.path)
        self.rewards = has_rewards(schema.names)
        estimated = has_estimates(schema.names)
        recorded = b"manul" in (schema.metadata or {})
        self.metadata = replace(
            self.metadata,
            parts=self.metadata.parts if recorded else any(map(is_part, schema.names)),
            rewards=self.rewards or self.metadata.rewards,
            densities_estimated=estimated or self.metadata.densities_estimated,
        )
        self.knobs = _knobs(schema, self.metadata, problems)
        span = self.metadata.action_range if self.knobs is None else None
        self.metadata = replace(self.metadata, knobs=self.knobs, action_range=span)
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
        reserved = reserved_names(several=self.knobs is not None)
        self.optional = [name for name in reserved if name not in (*NUMBERS, "context") and name in schema.names]
        self.optional += filter(is_part, schema.names if self.metadata.parts else ())
        others = [name for name in schema.names if name not in (*reserved, *self.optional)]
        if others and "context" in schema.names:
            raise FileError(
                f"{path} has a column 'context' and also {others[0]!r}. Put the context into one or the other.",
                "context",
            )
        converted = {name: kind for name, kind in (self.metadata.converted or {}).items() if name in others}
        self.flags = [name for name in converted if converted[name] == "flag"]
        lost = {name: kind for name, kind in converted.items() if kind != "flag"}
        self.metadata = replace(self.metadata, converted=lost or None)
        self.others = others
        for name in others:
            _field(schema.field(name).type, name, path)
        self._check_types(schema, path)

    def _check_types(self, schema: pa.Schema, path: str) -> None:
        """Reject text where numbers belong, and anything but text where text belongs."""
        texts = (*TEXTS, "within", *(STRUCTS if self.knobs is not None and self.knobs.is_named else ()))
        if self.knobs is not None and self.knobs.knobs[0][1].is_option:
            texts = (*texts, "action")
        for name in (*NUMBERS, *self.optional):
            if name not in (*texts, LEVELS) and name in schema.names and _is_text(schema, name, path):
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
        table = nested_knobs(table)
        table = table.rename_columns(own_names(table.column_names))
        if "density" not in table.column_names:
            table = table.append_column("density", pa.nulls(len(table), pa.float64()))
        good = self._check_widths(table, rows) if self.is_list else None
        if good is not None and not good.all():
            table, rows = table.filter(good), rows[good]
        if self.knobs is not None:
            table, rows = self._fit_knobs(table, rows, self.knobs)
        if LEVELS in self.optional:
            table, rows = self._fit_levels(table, rows)
        contexts, good = self._contexts(table, rows)
        if not good.all():
            table, rows = table.filter(good), rows[good]
            contexts = {name: (field, column.filter(good)) for name, (field, column) in contexts.items()}
        schema = self.schema(table, {name: field for name, (field, _) in contexts.items()})
        columns = {
            name: contexts[name][1] if name in contexts else _cast(table.column(name), schema.field(name).type)
            for name in schema.names
            if name != "context"
        }
        if self.is_list:
            columns["context"] = _fixed_lists(single_array(table, "context"), self.width or 0)
        elif self.is_struct:
            columns["context"] = table.column("context").cast(sparse_type())
        elif not self.others:
            columns["context"] = pa.array([[]] * len(table), dense_type(0))
        converted = pa.table(columns, schema=schema)
        return Piece(negate_losses(converted) if self.rewards else converted, rows)

    def _contexts(self, table: pa.Table, rows: np.ndarray) -> tuple[dict[str, tuple[Field, Any]], np.ndarray]:
        """The columns of the contexts in the types of a log, and flags of the rows in which all of their values are valid."""
        columns, good = {}, np.ones(len(table), dtype=np.bool_)
        like = self.problems.like or ContextSchema()
        for name in self.others:
            column, path = table.column(name), str(self.problems.path)
            field = _field(column.type, name, path)
            stated = like.field(field_name(name)) or field
            if field.kind == "text" and (stated.kind != "text" or stated.loose):
                column = self._parsed(data_frames.arrow_values(column), stated, name, rows, good)
            elif any(f"<{key}:" in str(column.type) for key in (DATE, CLOCK)):
                column = self._parsed(column.to_pylist(), field, name, rows, good)
            if name in self.flags and _are_flags(column):
                field, column = Field("flag"), column.cast("bool")
            elif isinstance(column, list):
                field = Field.of(column, name, strict=False)
                column = field.to_arrow(column, name)
            elif field.kind == "missing" and not stated.loose:
                field = stated
            columns[name] = field, cast_column(column, field, name)
        return columns, good

    def _parsed(self, values: list[Any], field: Field, name: str, rows: np.ndarray, good: np.ndarray) -> list[Any]:
        """The values that texts or values of JSON mean; those of bad rows are None."""
        parsed: list[Any] = []
        for row, value in enumerate(values):
            try:
                text = isinstance(value, str) and field.kind != "any"
                parsed.append(parse_text(field, value, name) if text else data_frames.from_json(value, name))
            except InputError:
                self.problems.report(int(rows[row]), name, _RULES.get(field.kind) or json_rule(value), value)
                parsed.append(None)
                good[row] = False
        return parsed

    def schema(self, table: pa.Table, fields: dict[str, Field]) -> pa.Schema:
        if self.is_struct:
            if self.metadata.width is None:
                width = 1 + max(
                    (max(index, default=-1) for index in single_array(table, "context").field("index").to_pylist()),
                    default=-1,
                )
                self.metadata = replace(self.metadata, width=width)
            return schema_of(optional=self.optional, metadata=self.metadata)
        if self.others:
            return schema_of(optional=self.optional, fields=fields, metadata=self.metadata)
        return schema_of(optional=self.optional, width=self.width or 0, metadata=self.metadata)

    def _fit_knobs(self, table: pa.Table, rows: np.ndarray, knobs: ActionSpace) -> tuple[pa.Table, np.ndarray]:
        """The table with its actions in the types and order of the knobs, without rows that have unknown options."""
        import pyarrow as pa

        good = np.ones(len(table), dtype=np.bool_)
        for name in [name for name in STRUCTS if name in table.column_names]:
            parts: dict[str, Any] = parts_by_knob(table, name, knobs)
            for each, knob in knobs.knobs:
                given = parts[each]
                if not (knob.is_option and name == "action"):
                    parts[each] = _cast(pa.chunked_array([given]), pa.float64()).combine_chunks()
                    continue
                parts[each] = knob.from_arrow(given)
                known = knob.are_values(parts[each])
                for index in np.flatnonzero(~known & good):
                    value = given[int(index)].as_py()
                    self.problems.report(int(rows[index]), label(name, each), knob.rule, value)
                good &= known
            place = table.column_names.index(name)
            table = table.set_column(place, name, knob_array(name, parts, knobs))
        return (table, rows) if good.all() else (table.filter(good), rows[good])

    def _fit_levels(self, table: pa.Table, rows: np.ndarray) -> tuple[pa.Table, np.ndarray]:
        """The table with its levels in the type of the log, without rows whose levels are invalid."""
        import pyarrow as pa

        column, wanted = table.column(LEVELS), level_type(self.knobs)
        if column.type.equals(wanted):
            return table, rows
        good, values = np.ones(len(table), dtype=np.bool_), []
        for index, given in enumerate(column.to_pylist()):
            try:
                values.append(parse_levels(given, self.knobs))
            except ValueError:
                values.append(None)
                good[index] = False
                self.problems.report(int(rows[index]), LEVELS, RULE, given)
        table = table.set_column(table.column_names.index(LEVELS), LEVELS, pa.array(values, wanted))
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


_RULES = {"flag": "true or false", "number": "a number", "date": "a date such as 2024-02-29"}
_RULES |= {"time": "a time such as 2024-02-29T12:30:00+01:00", "clock": "a time of day such as 12:30"}


def _field(given: pa.DataType, name: str, path: str) -> Field:
    try:
        return Field.of_arrow(given, name)
    except InputError as error:
        raise FileError(f"{path}: {error}", name) from None


def parse_text(field: Field, text: str, name: str) -> Any:
    """The value of a text in a column of a file without types."""
    if field.kind != "number":
        return field.parse(text, name)
    try:
        return number(name, text.strip() or None)
    except BadRow as bad:
        raise InputError(str(bad), name) from None


def _are_flags(column: Any) -> bool:
    """Whether all numbers of a column are 0, 1 or missing."""
    import pyarrow as pa

    values = column.to_numpy() if pa.types.is_floating(column.type) else np.array([2.0])
    return bool((np.isnan(values) | (values == 0) | (values == 1)).all())


def _knobs(schema: pa.Schema, metadata: Metadata, problems: Problems) -> ActionSpace | None:
    """The knobs of a table; None if actions are numbers in a range."""
    import pyarrow as pa

    if not is_several(schema):
        is_number = metadata.action_range is not None and not problems.replaces_knobs
        return None if is_number else unnamed_knob(problems, metadata.knobs)
    knobs = knobs_of_file(problems, metadata.knobs, [part.name for part in schema.field("action").type])
    for name in [name for name in STRUCTS if name in schema.names]:
        given = schema.field(name).type
        names = [part.name for part in given] if pa.types.is_struct(given) else []
        if sorted(names) != sorted(knobs.names):
            raise FileError(
                f"{problems.path} must have {STRUCTS[name]}NAME once for each of the knobs {', '.join(knobs.names)}.",
                name,
            )
        for part in given:
            kind = next(knob for each, knob in knobs.knobs if each == part.name)
            is_option = kind.is_option and name == "action"
            if _is_text(pa.schema([part]), part.name, str(problems.path)) and not is_option:
                column = label(name, part.name)
                raise FileError(f"{problems.path}: column {column} must be numbers, got text.", name)
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
