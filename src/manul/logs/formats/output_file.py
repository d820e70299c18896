"""Atomic writing of tables in any format."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manul.errors import FileError
from manul.logs.formats import Writer, format_of
from manul.logs.formats.arrays import with_types
from manul.logs.formats.file_errors import Problems
from manul.logs.formats.log_schema import Metadata, context_schema, require_same, user_columns
from manul.logs.formats.row_checks import valid_rows
from manul.utils.atomic_files import partial_path, put_in_place, write_error

if TYPE_CHECKING:
    import pyarrow as pa


class TableWriter:
    """Writes tables of one schema to a partial file, which replaces the target when closed."""

    def __init__(self, path: Path) -> None:
        self._path, self._format = path, format_of(path, writing=True)
        self._partial = partial_path(path)
        self._file: Writer | None = None
        self._schema: pa.Schema | None = None
        self._written = 0

    def write(self, table: pa.Table) -> None:
        """Add rows, after checking that they can be read back."""
        rows = np.arange(self._written + 1, self._written + len(table) + 1)
        valid_rows(table, rows, Metadata.from_arrow(table.schema.metadata), Problems(self._path))
        try:
            if self._file is None or self._schema is None:
                self._file, self._schema = self._format.writer(self._partial, table.schema), table.schema
            table = _with_types_of(self._schema, table)
            require_same(self._schema, table.schema)
            self._file.write(table.replace_schema_metadata(self._schema.metadata))
        except OSError as error:
            raise write_error(self._path, error) from error
        self._written += len(table)

    def close(self) -> None:
        """Finish the file and put it in place."""
        if self._file is None or not self._written:
            self.abandon()
            raise FileError(f"{self._path} must have at least one valid row, got none.")
        try:
            self._file.close()
            put_in_place(self._partial, self._path)
        except OSError as error:
            self.abandon()
            raise write_error(self._path, error) from error

    def abandon(self) -> None:
        """Delete the partial file; an existing file at the path stays."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._partial.unlink(missing_ok=True)


def _with_types_of(first: pa.Schema, table: pa.Table) -> pa.Table:
    """A table with the types of the first one, such as one in which a field has only missing values."""
    if not user_columns(first) or {*first.names} != {*table.column_names} or first.equals(table.schema):
        return table
    known, added = context_schema(first), context_schema(table.schema)
    for name, field in known.merge(added).fields.items():
        if field != known.fields[name]:
            kinds = f"{known.fields[name].arrow()} in the first batch and {added.fields[name].arrow()} in a later one"
            raise FileError(f"the type of the field {name!r} is {kinds}. Join the batches with Log.concat first.", name)
    return with_types(table, known)
