"""Conversion of parsed rows to tables, for formats with one row per line.

Such files do not declare their columns, so they are read twice: first for the columns, then for the rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from manul.actions.space import ActionSpace
from manul.contexts.schema import ContextSchema, Field
from manul.errors import InputError
from manul.logs.formats.level_columns import LEVELS, RULE, parse_levels
from manul.logs.formats.log_schema import (
    INDEX,
    KNOB_COLUMNS,
    OPTIONAL,
    RANGE,
    STRUCTS,
    Metadata,
    context_layout,
    is_part,
    knob_array,
    label,
    parse_within,
    part_columns,
    schema_of,
    user_columns,
    within_text,
)
from manul.logs.formats.readers import BadRow, Piece, Problems, json_rule, number

if TYPE_CHECKING:
    import pyarrow as pa

Lines = Callable[[Problems], Iterator[tuple[int, str]]]


class Row(NamedTuple):
    """One row; the context is a list of numbers, features by name (nested), or columns by name."""

    action: float | Mapping[str, object] | None
    density: float | None
    loss: float | None
    optional: Mapping[str, Any]
    context: Sequence[object] | Mapping[str, object]
    nested: bool = True
    rewards: bool = False
    estimated: bool = False


Parse = Callable[[str], Row | None]


def read_rows(problems: Problems, size: int, parse: Parse, lines: Lines) -> Iterator[Piece]:
    """Read the rows of a file in pieces, with a parser of its lines."""
    schema = _scan_schema(problems, parse, lines)
    build, batch, numbers = _Builder(schema, problems.like), [], []
    for line_number, text in lines(problems):
        try:
            row = parse(text)
            if row is not None:
                batch.append(build.fit(row))
                numbers.append(line_number)
        except BadRow as bad:
            problems.report(line_number, bad.column, bad.rule, bad.got)
        if len(batch) == size:
            yield Piece(build.table(batch), np.array(numbers))
            batch, numbers = [], []
    if batch:
        yield Piece(build.table(batch), np.array(numbers))


def _scan_schema(problems: Problems, parse: Parse, lines: Lines) -> pa.Schema:
    scan = _Scan(knobs=problems.knobs, like=problems.like)
    for _, text in lines(Problems(problems.path, skip_bad=True)):
        try:
            row = parse(text)
        except BadRow:
            continue
        if row is not None:
            scan.add(row)
    return scan.schema()


@dataclass
class _Scan:
    """Collects the columns of the rows of a file."""

    rows: int = 0
    width: int | None = None
    nested: bool = True
    fields: dict[str, Field] = field(default_factory=dict)
    full: int = 0
    optional: set[str] = field(default_factory=set)
    metadata: Metadata = field(default_factory=Metadata)
    knobs: ActionSpace | None = None
    like: ContextSchema | None = None

    def add(self, row: Row) -> None:
        given = (name for name, value in row.optional.items() if value is not None or name in RANGE or is_part(name))
        self.optional.update(given)
        if self.rows == 0:
            self.width = len(row.context) if isinstance(row.context, Sequence) else None
            self.nested = row.nested
            self.metadata = Metadata(rewards=row.rewards, densities_estimated=row.estimated)
        self.rows += 1
        if self.width is None and isinstance(row.context, Mapping) and row.nested == self.nested:
            for name, value in row.context.items():
                self._add(name, value)
            self.full += len(row.context) == len(self.fields)

    def _add(self, name: str, value: object) -> None:
        known = self.fields.get(name)
        if known is None or known.kind != _KINDS.get(type(value), "other"):
            stated = _stated(name, self.like)
            try:
                added = Field.of([stated.from_json(value, name)], name)
            except InputError:
                return
            self.fields[name] = added if known is None else _wider(known, added, name)

    def schema(self) -> pa.Schema:
        """Features by name are sparse, or dense if every row has all of the names 0, 1, 2, ..."""
        parts = any(map(is_part, self.optional))
        optional, metadata = sorted(self.optional), replace(self.metadata, knobs=self.knobs, parts=parts)
        if self.width is not None:
            return schema_of(optional=optional, width=self.width, metadata=metadata)
        if not self.nested or any(each.kind not in ("number", "missing") for each in self.fields.values()):
            return schema_of(optional=optional, fields=self.fields, metadata=metadata)
        if not all(INDEX.fullmatch(name) for name in self.fields):
            names = tuple(self.fields)
            return schema_of(optional=optional, metadata=replace(metadata, width=len(names), names=names))
        width = max((int(name) for name in self.fields), default=-1) + 1
        if width == len(self.fields) and self.full == self.rows:
            return schema_of(optional=optional, width=width, metadata=metadata)
        return schema_of(optional=optional, metadata=replace(metadata, width=width))


_KINDS = {float: "number", int: "number", str: "text", bool: "flag"}


def _stated(name: str, like: ContextSchema | None) -> Field:
    return (None if like is None else like.field(name)) or Field("missing")


def _wider(one: Field, other: Field, name: str) -> Field:
    """The field of both; a column that has texts and other values has texts, so that numbers such as 7 are texts there."""
    if "text" in (one.kind, other.kind) and {one.kind, other.kind} <= {"text", "number", "flag", "missing"}:
        return Field("text")
    fields = ContextSchema(None, {name: one}).merge(ContextSchema(None, {name: other}), strict=False).fields
    return fields[name]


class _Builder:
    def __init__(self, schema: pa.Schema, like: ContextSchema | None) -> None:
        self.schema, self.kind = schema, context_layout(schema)
        metadata = Metadata.from_arrow(schema.metadata)
        self.knobs = metadata.knobs
        own = OPTIONAL if self.knobs is None else (*KNOB_COLUMNS, *OPTIONAL)
        self.optional = [*(name for name in own if name in schema.names), *part_columns(schema)]
        own_fields = {name: Field.of_arrow(schema.field(name).type, name) for name in user_columns(schema)}
        self.own = {name: (each, _stated(name, like)) for name, each in own_fields.items()}
        self.rewards, self.estimated = metadata.rewards, metadata.densities_estimated
        width = schema.field("context").type.list_size if self.kind == "dense" else metadata.width or 0
        self.names = metadata.names or tuple(str(index) for index in range(width) if self.kind != "columns")
        self.indices = {name: index for index, name in enumerate(self.names)}

    def fit(self, row: Row) -> Row:
        """The row with its context in the form of the schema."""
        if row.rewards != self.rewards:
            raise BadRow("reward" if self.rewards else "loss", "a member of the object, like in the first row", None)
        if row.estimated != self.estimated:
            raise BadRow("density", "logged or estimated, like in the first row", None)
        if self.kind == "columns":
            return row._replace(context=self._columns(row.context))
        return row._replace(context=self._dense(row.context) if self.kind == "dense" else self._sparse(row.context))

    def _dense(self, context: Sequence[object] | Mapping[str, object]) -> Sequence[object]:
        if isinstance(context, Mapping):
            context = [context.get(name) for name in self.names] if len(context) == len(self.names) else [*context]
        if len(context) != len(self.names):
            raise BadRow("context", f"{len(self.names)} numbers, like the first one", len(context))
        return [number("context", value) for value in context]

    def _sparse(self, context: Sequence[object] | Mapping[str, object]) -> Mapping[str, object]:
        if not isinstance(context, Mapping):
            raise BadRow("context", "features by name, like in the first row", context)
        return {
            "index": [self.indices[name] for name in context],
            "value": [number(name, value) for name, value in context.items()],
        }

    def _columns(self, context: Sequence[object] | Mapping[str, object]) -> Mapping[str, object]:
        if not isinstance(context, Mapping):
            raise BadRow("context", "values by name, like in the first row", context)
        return {name: _value(name, context.get(name), *fields) for name, fields in self.own.items()}

    def table(self, rows: Sequence[Row]) -> pa.Table:
        import pyarrow as pa

        columns: dict[str, Iterable[object]] = {
            name: [getattr(row, name) for row in rows] for name in self.schema.names[:3]
        }
        columns |= {name: [row.optional.get(name) for row in rows] for name in self.optional}
        if self.knobs is not None:
            columns |= {name: _by_knob(name, columns[name], self.knobs) for name in STRUCTS if name in columns}
        if self.kind == "columns":
            contexts: Any = [row.context for row in rows]
            columns |= {
                name: each.to_arrow([row[name] for row in contexts], name) for name, (each, _) in self.own.items()
            }
        else:
            columns["context"] = [row.context for row in rows]
        return pa.table(columns, schema=self.schema)


def _by_knob(name: str, rows: Iterable[Any], knobs: ActionSpace) -> pa.Array:
    columns = {each: [None if row is None else row[each] for row in rows] for each in knobs.names}
    return knob_array(name, columns, knobs)


def _value(name: str, value: object, own: Field, stated: Field) -> object:
    """The value of a column."""
    if value is None:
        return None
    if own.kind == "number":
        return _nan_to_none(number(name, value))
    if own.kind == "text":
        return value if isinstance(value, str) else str(value)
    try:
        return stated.from_json(value, name)
    except InputError:
        raise BadRow(name, json_rule(value), value) from None


def _nan_to_none(value: float | None) -> float | None:
    return None if value is None or math.isnan(value) else value


def read_levels(given: object, knobs: KnobParser | None) -> Any:
    """The levels of one row of a text file; raises BadRow."""
    try:
        return parse_levels(given, None if knobs is None else knobs.knobs)
    except ValueError:
        raise BadRow(LEVELS, RULE, given) from None


class KnobParser:
    """Parses the members of rows that belong to knobs; raises BadRow.

    >>> from manul import Choice
    >>> parser = KnobParser(ActionSpace({"price": (10, 50), "template": Choice(["a", "b"])}))
    >>> parser.values("action", {"template": "a", "price": 12})
    {'price': 12.0, 'template': 'a'}
    """

    def __init__(self, knobs: ActionSpace) -> None:
        self.knobs = knobs

    def values(self, name: str, given: object) -> dict[str, Any]:
        """The values of `action` or `density_by_knob`, by knob."""
        if not self.knobs.is_named:
            given = {self.knobs.names[0]: given}
        if not isinstance(given, Mapping):
            raise BadRow(name, f"an object with {', '.join(self.knobs.names)}", given)
        unknown = [each for each in given if each not in self.knobs.names]
        if unknown:
            raise BadRow(name, f"an object with {', '.join(self.knobs.names)} only", unknown[0])
        return {each: self._value(name, each, given) for each in self.knobs.names}

    def _value(self, name: str, knob: str, members: Mapping[str, Any]) -> Any:
        column, kind = label(name, knob), dict(self.knobs.knobs)[knob]
        if knob not in members:
            raise BadRow(column, "a member of the object", None)
        if not kind.is_option or name != "action":
            return number(column, members[knob])
        return self._option(knob, members[knob], kind.as_column([members[knob]], column)[0])

    def option(self, knob: str, text: str) -> Any:
        """The option of a text."""
        return self._option(knob, text, dict(self.knobs.knobs)[knob].parse(text))

    def _option(self, knob: str, given: object, option: Any) -> Any:
        if option is None:
            raise BadRow(label("action", knob), dict(self.knobs.knobs)[knob].rule, given)
        return option

    def within(self, given: object) -> str | None:
        try:
            if given is None or isinstance(given, Mapping if self.knobs.is_named else list):
                return within_text(parse_within(given, self.knobs))
        except InputError:
            pass
        raise BadRow("within", "ranges and options of the knobs", given)
