"""Parquet, the format that keeps everything: types, ranges, widths and names."""

from __future__ import annotations

import gzip
import shutil
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from manul.formats import Piece
from manul.formats.lines import is_gzipped, opened
from manul.formats.problems import Problems
from manul.formats.tables import Adoption

if TYPE_CHECKING:
    import pyarrow as pa


def read(problems: Problems, size: int) -> Iterator[Piece]:
    """The rows of a file in pieces."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _seekable(problems) as path:
        try:
            with pq.ParquetFile(path) as file:
                adoption, first = Adoption(file.schema_arrow, problems), 1
                for batch in file.iter_batches(batch_size=size):
                    yield adoption.piece(pa.Table.from_batches([batch]), first)
                    first += len(batch)
        except (pa.ArrowException, OSError) as error:
            problems.damaged("Parquet file", error)


@contextmanager
def _seekable(problems: Problems) -> Iterator[Path]:
    """The file itself; where it is gzipped, an unpacked copy for as long as it is read."""
    with opened(problems.path) as file:
        if not is_gzipped(problems.path):
            yield problems.path
            return
        with tempfile.TemporaryDirectory() as folder:
            unpacked = Path(folder, "log.parquet")
            try:
                with unpacked.open("wb") as copy:
                    shutil.copyfileobj(file, copy)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                problems.damaged("gzip file", error)
            yield unpacked


class Writer:
    """A file being written."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._path, self._packed = path, is_gzipped(path)
        self._plain = path.with_name(path.name + ".plain") if self._packed else path
        self._file = pq.ParquetWriter(self._plain, schema, compression="zstd")

    def write(self, table: pa.Table) -> None:
        """Add some rows."""
        self._file.write_table(table)

    def close(self) -> None:
        """Everything is in the file afterwards."""
        self._file.close()
        if self._packed:
            try:
                with self._plain.open("rb") as plain, gzip.GzipFile(self._path, "wb", mtime=0) as packed:
                    shutil.copyfileobj(plain, packed)
            finally:
                self._plain.unlink(missing_ok=True)
