"""CSV with a header. A context of plain numbers is in context_0, context_1, ...; other columns are the user's own.

A column is numeric if its first 10,000 rows are, otherwise text; a blank is a missing value. If they are all blank, the
first value after them decides. With `like=`, the schema says the types: dates and times are in ISO 8601, flags true or
false, lists and objects JSON.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.actions.space import ActionSpace
from manul.contexts.schema import ContextSchema, Field
from manul.errors import FileError, InputError
from manul.logs.formats import log_schema as schemas
from manul.logs.formats import register_format
from manul.logs.formats.level_columns import LEVELS
from manul.logs.formats.log_schema import (
    NUMBERS,
    RESERVED,
    STRUCTS,
    Metadata,
    check_flat,
    context_layout,
    dense_column,
    is_part,
    is_text,
    knob_array,
    label,
    nested_names,
    parts_of,
    schema_of,
    single_array,
)
from manul.logs.formats.readers import (
    NUMBER_PATTERN,
    BadRow,
    Piece,
    Problems,
    knobs_of_file,
    number,
    part_number,
    seconds,
    unnamed_knob,
)
from manul.logs.formats.row_tables import KnobParser, read_levels
from manul.logs.formats.text_columns import dense_rows, stated_columns, texts
from manul.logs.formats.text_lines import Output, lines

if TYPE_CHECKING:
    import pyarrow as pa

Record = tuple[int, list[str]]
_RULES = {"flag": "true or false", "date": "a date such as 2024-02-29", "clock": "a time of day such as 12:30"}
_RULES |= {"time": "a time such as 2024-02-29T12:30:00+01:00"}
SAMPLE = 10_000  # rows that decide whether a column is numeric
MAX_COLUMNS = 10_000  # a sparse context in CSV writes all its zeros
# Missing values in text files of tables and logs, in any case. In a text column of a log only a blank is missing, so that
# a text such as "None" survives being written and read.
MISSING = frozenset(("", "?", "na", "n/a", "nan", "null", "none"))


def read(problems: Problems, size: int) -> Iterator[Piece]:
    """Read the rows of a file in pieces."""
    records = _records(problems)
    header = next(records, None)
    if header is None:
        return
    names = [name.strip() for name in header[1]]
    schemas.require(nested_names(names), str(problems.path), needs_density=problems.needs_density)
    knobs = _knobs(names, problems)
    if "context" in names:
        raise FileError(
            f"{problems.path}: CSV cannot have a column context. Split it into context_0, context_1, ...",
            "context",
        )
    complete = _complete_records(records, len(names), problems)
    first = deque(islice(complete, SAMPLE))
    columns = _Columns(
        names,
        [record for _, record in first] + _late_values(names, first, problems),
        knobs,
        problems.like or ContextSchema(),
    )
    records = _drain(first, complete)
    while batch := list(islice(records, size)):
        yield columns.piece(batch, problems)


def _knobs(names: list[str], problems: Problems) -> ActionSpace | None:
    """The knobs of a file with columns action.NAME, or the declared one of a column action; None if it has numbers."""
    if "action" in names:
        return unnamed_knob(problems, None)
    knobs = knobs_of_file(problems, None, parts_of("action", names))
    by_knob = parts_of("density_by_knob", names)
    if by_knob and {*by_knob} != {*knobs.names}:
        expected = ", ".join(knobs.names)
        raise FileError(f"{problems.path} must have density.NAME once for each of the knobs {expected}.", "density")
    return knobs


def _records(problems: Problems) -> Iterator[Record]:
    """The records, with the number of the last line of each."""
    line_number = 0

    def text_lines() -> Iterator[str]:
        nonlocal line_number
        for line_number, line in lines(problems):  # noqa: B007 - `_records` reads it
            yield line

    reader = csv.reader(text_lines(), strict=True)
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problems.report(line_number, "line", "a complete CSV row", error)
            continue
        if record:
            yield line_number, record


def _late_values(names: list[str], first: deque[Record], problems: Problems) -> list[list[str]]:
    """The first record with a value of each column that is blank in the first records."""
    blank = {place for place in range(len(names)) if all(_is_missing(record[place]) for _, record in first)}
    if not blank or len(first) < SAMPLE:
        return []
    late = []
    quiet = Problems(problems.path, skip_bad=True)
    for _, record in _complete_records(islice(_records(quiet), 1, None), len(names), quiet):
        present = {place for place in blank if not _is_missing(record[place])}
        late += [record] if present else []
        blank -= present
        if not blank:
            break
    return late


def _is_missing(value: str) -> bool:
    return value.strip().lower() in MISSING


def _drain(first: deque[Record], rest: Iterator[Record]) -> Iterator[Record]:
    """The first records, released from memory one by one, and then the rest."""
    while first:
        yield first.popleft()
    yield from rest


def _complete_records(records: Iterator[Record], width: int, problems: Problems) -> Iterator[Record]:
    for row, record in records:
        if len(record) == width:
            yield row, record
        else:
            problems.report(row, "line", f"{width} values, like the header", len(record))


class _Columns:
    """The columns of a file, from its header and first rows."""

    def __init__(
        self, names: list[str], first: list[list[str]], knobs: ActionSpace | None, like: ContextSchema
    ) -> None:
        self.rewards = schemas.has_rewards(names)
        self.metadata = Metadata(
            rewards=self.rewards,
            densities_estimated=schemas.has_estimates(names),
            knobs=knobs,
            parts=any(map(is_part, names)),
        )
        self.parser = None if knobs is None else KnobParser(knobs)
        self.names = names = schemas.own_names(names)
        self.like: dict[str, Field] = {}
        reserved = schemas.reserved_names(several=knobs is not None)
        present = nested_names(names)
        others = [name for name in present if name not in reserved and not is_part(name)]
        optional = [name for name in reserved if name in present and name not in NUMBERS]
        optional += filter(is_part, present)
        self.dense = bool(others) and set(others) == {f"context_{index}" for index in range(len(others))}
        if self.dense or not others:
            self.schema = schema_of(optional=optional, width=len(others), metadata=self.metadata)
        else:
            self.like = {name: field for name in others if (field := like.field(schemas.field_name(name))) is not None}
            texts = {name: any(_is_text_value(record[names.index(name)]) for record in first) for name in others}
            fields = {name: self.like.get(name) or Field("text" if texts[name] else "number") for name in others}
            self.schema = schema_of(optional=optional, fields=fields, metadata=self.metadata)

    def piece(self, batch: Sequence[Record], problems: Problems) -> Piece:
        """Convert records to a table; rows with a value that is not a number are bad rows."""
        import pyarrow as pa

        rows = np.array([row for row, _ in batch])
        columns = dict(zip(self.names, zip(*(record for _, record in batch), strict=True), strict=True))
        good, data, schema = np.ones(len(batch), dtype=np.bool_), {}, self.schema
        for name in [name for name in self.schema.names if name != "context"]:
            if self.parser is not None and name in STRUCTS:
                data[name] = self._struct(self.parser, name, columns, rows, good, problems)
                continue
            values = columns.get(name, [""] * len(batch))  # only the density may be missing
            stated = self.like.get(name)
            if stated is None or (stated.kind in ("number", "text") and not stated.loose):
                data[name] = self._column(name, values, rows, good, problems)
            else:
                field, data[name] = self._typed(name, stated, values, rows, good, problems)
                place = schema.get_field_index(name)
                schema = schema.set(place, pa.field(name, field.arrow()))
        if "context" in self.schema.names:
            width = self.schema.field("context").type.list_size
            numbers = [
                self._column(f"context_{index}", columns[f"context_{index}"], rows, good, problems)
                for index in range(width)
            ]
            data["context"] = _stack(numbers, len(batch))
        table = pa.table(data, schema=schema)
        table = schemas.negate_losses(table) if self.rewards else table
        return Piece(table, rows) if good.all() else Piece(table.filter(good), rows[good])

    def _typed(
        self, name: str, stated: Field, texts: Sequence[str], rows: Any, good: Any, problems: Problems
    ) -> tuple[Field, pa.Array]:
        """The column of a field, with the type that its values have in these rows."""

        def parse(text: str) -> Any:
            try:
                return stated.parse(text, name)
            except InputError:
                raise BadRow(name, _RULES.get(stated.kind, "JSON"), text) from None

        values = _parsed(texts, parse, rows, good, problems)
        own = Field.of(values, name, strict=False)
        field = (
            own
            if stated.loose
            else ContextSchema(None, {name: stated}).merge(ContextSchema(None, {name: own}), strict=False).fields[name]
        )
        return field, field.to_arrow(values, name)

    def _struct(
        self, parser: KnobParser, name: str, columns: Any, rows: Any, good: Any, problems: Problems
    ) -> pa.Array:
        """The column `action` or `density_by_knob` from those of the knobs."""
        values: dict[str, Any] = {}
        for knob, kind in parser.knobs.knobs:
            column = label(name, knob)
            if kind.is_option and name == "action":
                values[knob] = _parsed(columns[column], partial(parser.option, knob), rows, good, problems)
            else:
                values[knob] = _numbers(column, columns[column], rows, good, problems)
        return knob_array(name, values, parser.knobs)

    def _column(self, name: str, values: Sequence[str], rows: object, good: object, problems: Problems) -> pa.Array:
        import pyarrow as pa

        if name == LEVELS:
            levels = _parsed(values, partial(read_levels, knobs=self.parser), rows, good, problems)  # type: ignore[arg-type]
            return pa.array(levels, self.schema.field(name).type)
        if name in (*schemas.TEXTS, "within") or (name in self.schema.names and is_text(self.schema, name)):
            return pa.array([value or None for value in values], pa.string())
        return _numbers(schemas.stated_name(name, self.metadata), values, rows, good, problems)  # type: ignore[arg-type]


def _numbers(name: str, values: Sequence[str], rows: np.ndarray, good: np.ndarray, problems: Problems) -> pa.Array:
    """Arrow parses a purely numeric column at once; other columns are parsed value by value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(pa.array(values, pa.string()), pa.float64())
    except pa.ArrowInvalid:
        pass

    def parse(value: str) -> float | None:
        present = None if _is_missing(value) else value
        if is_part(name):
            return part_number(name, present)
        return seconds(present) if name == "time" else number(name, present)

    return pa.array(_parsed(values, parse, rows, good, problems), pa.float64())


def _parsed(
    values: Sequence[str], parse: Callable[[str], Any], rows: np.ndarray, good: np.ndarray, problems: Problems
) -> list[Any]:
    """The parsed values; those of bad rows are None."""
    parsed: list[Any] = []
    for index, value in enumerate(values):
        try:
            parsed.append(parse(value))
        except BadRow as bad:
            parsed.append(None)
            if good[index]:
                problems.report(int(rows[index]), bad.column, bad.rule, bad.got)
                good[index] = False
    return parsed


def _stack(columns: list[pa.Array], count: int) -> pa.Array:
    matrix = np.empty((count, len(columns)), dtype=np.float32)
    for index, column in enumerate(columns):
        matrix[:, index] = column.to_numpy(zero_copy_only=False)
    return dense_column(matrix)


def _is_text_value(value: str) -> bool:
    return not _is_missing(value) and not NUMBER_PATTERN.fullmatch(value)


class Writer:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._names = _context_names(schema, path)
        check_flat(schema)
        header = [*stated_columns(schema.empty_table(), flat=True)]
        for name in header:
            if name != name.strip():
                raise FileError(
                    f"{path.name.removesuffix('.partial')}: the name of the knob in {name!r} ends with a space. "
                    "Rename it, or use .jsonl or .parquet.",
                    name,
                )
        self._output = Output(path)
        self._rows = csv.writer(self._output, lineterminator="\n")
        self._rows.writerow([*header, *self._names])

    def write(self, table: pa.Table) -> None:
        columns = [*stated_columns(table, flat=True).values()]
        if context_layout(table.schema) == "columns":
            self._rows.writerows(zip(*columns, *(texts(table, name) for name in self._names), strict=True))
            return
        contexts = (
            dense_rows(table) if context_layout(table.schema) == "dense" else _sparse_rows(table, len(self._names))
        )
        for decision, context in zip(zip(*columns, strict=True), contexts, strict=True):
            self._rows.writerow([*decision, *context])

    def close(self) -> None:
        self._output.close()


def _context_names(schema: pa.Schema, path: Path) -> list[str]:
    if context_layout(schema) == "columns":
        return schemas.user_columns(schema)
    metadata = Metadata.from_arrow(schema.metadata)
    width = schema.field("context").type.list_size if context_layout(schema) == "dense" else metadata.width or 0
    name = path.name.removesuffix(".partial")
    if width > MAX_COLUMNS:
        raise FileError(f"{name}: CSV has at most {MAX_COLUMNS} columns, got {width} features. Use .jsonl or .parquet.")
    names = [*metadata.names] if metadata.names else [f"context_{index}" for index in range(width)]
    bad = [feature for feature in names if feature in RESERVED or feature != feature.strip()]
    if bad:
        why = "is the name of a column of logs" if bad[0] in RESERVED else "begins or ends with a space"
        raise FileError(f"{name}: the feature name {bad[0]!r} {why}. Rename it, or use .jsonl or .parquet.", bad[0])
    return names


def _sparse_rows(table: pa.Table, width: int) -> Iterator[list[str]]:
    import pyarrow.compute as pc

    context = single_array(table, "context")
    lists = context.field("index").to_pylist()
    values = iter(pc.cast(context.field("value").flatten(), "string").to_pylist())
    for indices in lists:
        row = ["0"] * width
        for index in indices:
            row[index] = next(values)
        yield row


register_format(".csv", read=read, writer=Writer)
