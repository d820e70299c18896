"""A file that is there in whole or not at all."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from manul.errors import FileError
from manul.logs.formats import Writer, format_of
from manul.logs.formats.file_errors import Problems
from manul.logs.formats.log_schema import Metadata, require_same
from manul.logs.formats.row_checks import valid_rows
from manul.utils.atomic_files import partial_path, put_in_place, write_error

if TYPE_CHECKING:
    import pyarrow as pa


class TableWriter:
    """Tables of one schema, written beside the file and put in its place at the end."""

    def __init__(self, path: Path) -> None:
        self._path, self._format = path, format_of(path)
        self._partial = partial_path(path)
        self._file: Writer | None = None
        self._schema: pa.Schema | None = None
        self._written = 0

    def write(self, table: pa.Table) -> None:
        """Add some rows; one that could not be read again is refused."""
        rows = np.arange(self._written + 1, self._written + len(table) + 1)
        valid_rows(table, rows, Metadata.from_arrow(table.schema.metadata), Problems(self._path))
        try:
            if self._file is None or self._schema is None:
                self._file, self._schema = self._format.Writer(self._partial, table.schema), table.schema
            require_same(self._schema, table.schema)
            self._file.write(table.replace_schema_metadata(self._schema.metadata))
        except OSError as error:
            raise write_error(self._path, error) from error
        self._written += len(table)

    def close(self) -> None:
        """Put the file in its place."""
        if self._file is None or not self._written:
            self.abandon()
            raise FileError(f"{self._path} must have at least one row; got none. Log some decisions first.")
        try:
            self._file.close()
            put_in_place(self._partial, self._path)
        except OSError as error:
            self.abandon()
            raise write_error(self._path, error) from error

    def abandon(self) -> None:
        """Leave no trace; what was at the path stays there."""
        if self._file is not None:
            with suppress(OSError):
                self._file.close()
        self._partial.unlink(missing_ok=True)
