"""CSV with a header. A context of plain numbers is in context_0, context_1, ...; other columns are the user's own.

A column is numbers where its first 10,000 rows are, and else text; a blank is a missing value.
"""

from __future__ import annotations

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manul.errors import FileError
from manul.logs.formats import Piece
from manul.logs.formats.arrow_tables import dense_column
from manul.logs.formats.file_errors import BadRow, Problems
from manul.logs.formats.log_schema import (
    NUMBERS,
    OPTIONAL,
    RESERVED,
    Metadata,
    context_layout,
    is_text,
    require,
    schema_of,
    user_columns,
)
from manul.logs.formats.row_checks import single_array
from manul.logs.formats.row_tables import NUMBER_PATTERN, number
from manul.logs.formats.text_columns import decision_columns, dense_rows, texts
from manul.logs.formats.text_lines import Output, lines
from manul.logs.formats.timestamps import seconds

if TYPE_CHECKING:
    import pyarrow as pa

Record = tuple[int, list[str]]
FIRST = 10_000
WIDEST = 10_000
# Missing values of text files, of tables as well as logs, whatever their case. In a column of text of a log only a blank
# is missing: what is written and read again keeps a text such as "None".
MISSING = frozenset(("", "?", "na", "n/a", "nan", "null", "none"))


def read(problems: Problems, size: int) -> Iterator[Piece]:
    """The rows of a file in pieces."""
    records = _records(problems)
    header = next(records, None)
    if header is None:
        return
    names = [name.strip() for name in header[1]]
    require(names, str(problems.path))
    if "context" in names:
        raise FileError(
            f"{problems.path} must have one number per column; got a column context. Split it into context_0, ...",
            "context",
        )
    fitting = _fitting(records, len(names), problems)
    first = deque(islice(fitting, FIRST))
    columns = _Columns(names, [record for _, record in first])
    records = _replayed(first, fitting)
    while batch := list(islice(records, size)):
        yield columns.piece(batch, problems)


def _records(problems: Problems) -> Iterator[Record]:
    """The records with the number of the line each one ends on."""
    at = 0

    def numbered() -> Iterator[str]:
        nonlocal at
        for at, line in lines(problems):  # noqa: B007 - `_records` reads it
            yield line

    reader = csv.reader(numbered(), strict=True)
    while True:
        try:
            record = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problems.report(at, "line", "a whole row of CSV", error)
            continue
        if record:
            yield at, record


def _replayed(first: deque[Record], rest: Iterator[Record]) -> Iterator[Record]:
    """The first records, forgotten as they are given, and the rest."""
    while first:
        yield first.popleft()
    yield from rest


def _fitting(records: Iterator[Record], width: int, problems: Problems) -> Iterator[Record]:
    for row, record in records:
        if len(record) == width:
            yield row, record
        else:
            problems.report(row, "line", f"{width} values, as the header has", len(record))


class _Columns:
    """The columns of a file, by its header and its first rows."""

    def __init__(self, names: list[str], first: list[list[str]]) -> None:
        self.names = names
        others = [name for name in names if name not in RESERVED]
        optional = [name for name in OPTIONAL if name in names]
        self.dense = bool(others) and set(others) == {f"context_{place}" for place in range(len(others))}
        if self.dense or not others:
            self.schema = schema_of(optional=optional, width=len(others))
        else:
            texts = {name: any(_is_word(record[names.index(name)]) for record in first) for name in others}
            self.schema = schema_of(optional=optional, texts=texts)

    def piece(self, batch: Sequence[Record], problems: Problems) -> Piece:
        """Some records as a table; a value that is no number makes its row a bad one."""
        import pyarrow as pa

        rows = np.array([row for row, _ in batch])
        columns = dict(zip(self.names, zip(*(record for _, record in batch), strict=True), strict=True))
        good, found = np.ones(len(batch), dtype=np.bool_), {}
        for name in [name for name in self.schema.names if name != "context"]:
            found[name] = self._column(name, columns[name], rows, good, problems)
        if "context" in self.schema.names:
            width = self.schema.field("context").type.list_size
            numbers = [
                self._column(f"context_{at}", columns[f"context_{at}"], rows, good, problems) for at in range(width)
            ]
            found["context"] = _stacked(numbers, len(batch))
        table = pa.table(found, schema=self.schema)
        return Piece(table, rows) if good.all() else Piece(table.filter(good), rows[good])

    def _column(self, name: str, values: Sequence[str], rows: object, good: object, problems: Problems) -> pa.Array:
        import pyarrow as pa

        if name == "id" or (name in self.schema.names and is_text(self.schema, name)):
            return pa.array([value or None for value in values], pa.string())
        return _numbers(name, values, rows, good, problems)  # type: ignore[arg-type]


def _numbers(name: str, values: Sequence[str], rows: np.ndarray, good: np.ndarray, problems: Problems) -> pa.Array:
    """Arrow reads plain columns at once; a column with a gap, a date or a word in it is read value by value."""
    import pyarrow as pa
    import pyarrow.compute as pc

    try:
        return pc.cast(pa.array(values, pa.string()), pa.float64())
    except pa.ArrowInvalid:
        pass
    found: list[float | None] = []
    for place, value in enumerate(values):
        try:
            present = None if value.strip().lower() in MISSING else value
            found.append(seconds(present) if name == "time" else number(name, present))
        except BadRow as bad:
            found.append(None)
            if good[place]:
                problems.report(int(rows[place]), bad.column, bad.rule, bad.got)
                good[place] = False
    return pa.array(found, pa.float64())


def _stacked(columns: list[pa.Array], count: int) -> pa.Array:
    matrix = np.empty((count, len(columns)), dtype=np.float32)
    for place, column in enumerate(columns):
        matrix[:, place] = column.to_numpy(zero_copy_only=False)
    return dense_column(matrix)


def _is_word(value: str) -> bool:
    return value.strip().lower() not in MISSING and not NUMBER_PATTERN.fullmatch(value)


class Writer:
    """A file being written."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self._names = _context_names(schema, path)
        self._output = Output(path)
        self._rows = csv.writer(self._output, lineterminator="\n")
        present = [name for name in (*NUMBERS, *OPTIONAL) if name in schema.names]
        self._rows.writerow([*present, *self._names])

    def write(self, table: pa.Table) -> None:
        """Add some rows."""
        columns = [*decision_columns(table).values()]
        if context_layout(table.schema) == "columns":
            self._rows.writerows(zip(*columns, *(texts(table, name) for name in self._names), strict=True))
            return
        contexts = dense_rows(table) if context_layout(table.schema) == "dense" else _filled(table, len(self._names))
        for decided, context in zip(zip(*columns, strict=True), contexts, strict=True):
            self._rows.writerow([*decided, *context])

    def close(self) -> None:
        """Everything is in the file afterwards."""
        self._output.close()


def _context_names(schema: pa.Schema, path: Path) -> list[str]:
    if context_layout(schema) == "columns":
        return user_columns(schema)
    metadata = Metadata.from_arrow(schema.metadata)
    width = schema.field("context").type.list_size if context_layout(schema) == "dense" else metadata.width or 0
    where = path.name.removesuffix(".partial")
    if width > WIDEST:
        raise FileError(f"{where} must have at most {WIDEST} columns; got {width} features. Write .jsonl or .parquet.")
    names = [*metadata.names] if metadata.names else [f"context_{place}" for place in range(width)]
    taken = [name for name in names if name in RESERVED or name != name.strip()]
    if taken:
        raise FileError(
            f"{where} must have other names for features; got {taken[0]!r}. Write .jsonl or .parquet.", taken[0]
        )
    return names


def _filled(table: pa.Table, width: int) -> Iterator[list[str]]:
    """Sparse contexts with their zeros."""
    import pyarrow.compute as pc

    context = single_array(table, "context")
    lists = context.field("index").to_pylist()
    values = iter(pc.cast(context.field("value").flatten(), "string").to_pylist())
    for places in lists:
        row = ["0"] * width
        for place in places:
            row[place] = next(values)
        yield row
