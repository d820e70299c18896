"""Parquet, the only format that keeps everything: types, ranges, widths and names.

Reading holds one row group in memory; the writer makes one row group per batch.
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

from manul.logs.formats import register_format
from manul.logs.formats.arrow_tables import SchemaAdapter
from manul.logs.formats.readers import Piece, Problems
from manul.logs.formats.text_lines import Output, is_gzipped, open_bytes

if TYPE_CHECKING:
    import pyarrow as pa


def read(problems: Problems, size: int) -> Iterator[Piece]:
    """Read the rows of a file in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _seekable(problems) as path:
        try:
            with pq.ParquetFile(path, page_checksum_verification=True) as file:
                adapter, first = SchemaAdapter(file.schema_arrow, problems), 1
                # Iterating over all row groups at once, Arrow would keep them in memory until the end of the file.
                for group in range(file.num_row_groups):
                    for batch in file.iter_batches(batch_size=size, row_groups=[group]):
                        yield adapter.piece(pa.Table.from_batches([batch]), first)
                        first += len(batch)
        except (pa.ArrowException, OSError) as error:
            problems.reject_file("Parquet file", error)


@contextmanager
def _seekable(problems: Problems) -> Iterator[Path]:
    """The file itself or, if it is gzipped, a temporary decompressed copy."""
    with open_bytes(problems.path) as file:
        if not is_gzipped(problems.path):
            yield problems.path
            return
        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder, "log.parquet")
            try:
                with copy.open("wb") as output:
                    shutil.copyfileobj(file, output)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                problems.reject_file("gzip file", error)
            yield copy


def _is_empty(given: pa.DataType) -> bool:
    """Arrow cannot read back the empty lists that it writes to Parquet, so a column of them is not written."""
    import pyarrow as pa

    return bool(pa.types.is_fixed_size_list(given) and given.list_size == 0)


class Writer:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._path, self._gzipped = path, is_gzipped(path)
        self._plain = path.with_name(path.name + ".plain") if self._gzipped else path
        self._names = [name for name in schema.names if not _is_empty(schema.field(name).type)]
        fields = [schema.field(name) for name in self._names]
        self._file = pq.ParquetWriter(
            self._plain, pa.schema(fields, schema.metadata), compression="zstd", write_page_checksum=True
        )

    def write(self, table: pa.Table) -> None:
        self._file.write_table(table.select(self._names))

    def close(self) -> None:
        self._file.close()
        if self._gzipped:
            try:
                with self._plain.open("rb") as plain:
                    output = Output(self._path)
                    shutil.copyfileobj(plain, output.bytes)
                    output.close()
            finally:
                self._plain.unlink(missing_ok=True)


register_format(".parquet", read=read, writer=Writer)
