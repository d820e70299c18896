"""Parquet, the format that keeps everything: types, ranges, widths and names.

Reading holds one row group at a time; those that are written here have the rows of one batch.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from manul.logs.formats import Piece
from manul.logs.formats.arrow_tables import SchemaAdapter
from manul.logs.formats.file_errors import Problems
from manul.logs.formats.text_lines import Output, is_gzipped, open_bytes

if TYPE_CHECKING:
    import pyarrow as pa


def read(problems: Problems, size: int) -> Iterator[Piece]:
    """The rows of a file in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _seekable(problems) as path:
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                adoption, first = SchemaAdapter(file.schema_arrow, problems), 1
                # Over all row groups at once, Arrow keeps what it has read until the end of the file.
                for group in range(file.num_row_groups):
                    for batch in file.iter_batches(batch_size=size, row_groups=[group]):
                        yield adoption.piece(pa.Table.from_batches([batch]), first)
                        first += len(batch)
        except (pa.ArrowException, OSError) as error:
            problems.reject_file("Parquet file", error)


@contextmanager
def _seekable(problems: Problems) -> Iterator[Path]:
    """The file itself; where it is gzipped, an unpacked copy for as long as it is read."""
    with open_bytes(problems.path) as file:
        if not is_gzipped(problems.path):
            yield problems.path
            return
        with tempfile.TemporaryDirectory() as folder:
            unpacked = Path(folder, "log.parquet")
            try:
                with unpacked.open("wb") as copy:
                    shutil.copyfileobj(file, copy)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                problems.reject_file("gzip file", error)
            yield unpacked


def _is_empty(given: pa.DataType) -> bool:
    """Arrow writes lists of no numbers to Parquet in a way that it cannot read again; without them, nothing is lost."""
    import pyarrow as pa

    return bool(pa.types.is_fixed_size_list(given) and given.list_size == 0)


class Writer:
    """A file being written."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._path, self._packed = path, is_gzipped(path)
        self._plain = path.with_name(path.name + ".plain") if self._packed else path
        self._names = [name for name in schema.names if not _is_empty(schema.field(name).type)]
        kept = [schema.field(name) for name in self._names]
        self._file = pq.ParquetWriter(
            self._plain, pa.schema(kept, schema.metadata), compression="zstd", write_page_checksum=True
        )

    def write(self, table: pa.Table) -> None:
        """Add some rows."""
        self._file.write_table(table.select(self._names))

    def close(self) -> None:
        """Everything is in the file afterwards."""
        self._file.close()
        if self._packed:
            try:
                with self._plain.open("rb") as plain:
                    packed = Output(self._path)
                    shutil.copyfileobj(plain, packed.bytes)
                    packed.close()
            finally:
                self._plain.unlink(missing_ok=True)
