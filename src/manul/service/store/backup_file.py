"""The file of a backup: a zip archive with one member per table, and a manifest that says how many rows each has.

A member is a sequence of frames: four bytes of length, big-endian, and so many bytes of MessagePack, a list of rows. The
manifest comes last, so a file that was not completed has none.
"""

from __future__ import annotations

import hashlib
import struct
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec

from manul.errors import FileError, missing_file
from manul.service.store.tables import Row
from manul.utils.atomic_files import atomic_path, write_error

FORMAT = 1
MANIFEST = "manifest.json"
ZIP = b"PK"
# A frame has at most so many rows, and at most so many bytes unless one row has more.
FRAME_ROWS, FRAME_BYTES = 1000, 2**20
# What zipfile raises for damaged archives.
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    msgspec.MsgspecError,
    struct.error,
    EOFError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    ValueError,
)


class Table(msgspec.Struct, frozen=True):
    """A table of a backup; the checksum is of its frames."""

    columns: list[str]
    rows: int
    sha256: str


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a manifest that every version of the format has."""

    format: Literal["manul backup"] = "manul backup"
    version: int = FORMAT


class Manifest(Head, frozen=True, kw_only=True):
    """What a backup contains: from which store, with which version of its schema, and when."""

    manul: str
    store: str
    store_version: int
    created: str
    last_loop: int
    tables: dict[str, Table]


_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[list[Row]] = msgspec.msgpack.Decoder(list[tuple[Any, ...]])


class BackupWriter:
    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self.tables: dict[str, Table] = {}

    def add(self, name: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        """Add a table; memory does not grow with the number of rows."""
        digest, count = hashlib.sha256(), 0
        with self._archive.open(name, "w", force_zip64=True) as member:
            for batch in _batches(rows):
                body = _encoder.encode(batch)
                frame = struct.pack(">I", len(body)) + body
                digest.update(frame)
                member.write(frame)
                count += len(batch)
        self.tables[name] = Table(list(columns), count, digest.hexdigest())

    def finish(self, manifest: Manifest) -> None:
        self._archive.writestr(MANIFEST, msgspec.json.format(msgspec.json.encode(manifest)))


class BackupReader:
    """Reads a backup; any damage raises a FileError."""

    def __init__(self, path: Path, archive: zipfile.ZipFile) -> None:
        self._path, self._archive = path, archive
        with _report_damage(path):
            text = archive.read(MANIFEST)
            head = msgspec.json.decode(text, type=Head)
            if head.version > FORMAT:
                raise FileError(
                    f"{path} has version {head.version}, newer than {FORMAT}. Upgrade manul: pip install -U manul."
                )
            self.manifest = msgspec.json.decode(text, type=Manifest)

    def rows(self, name: str) -> Generator[Row, None, None]:
        """The rows of a table; at the end they are compared with the manifest."""
        table = self.manifest.tables[name]
        digest, count = hashlib.sha256(), 0
        with _report_damage(self._path), self._archive.open(name) as member:
            while start := member.read(4):
                body = member.read(*struct.unpack(">I", start))
                digest.update(start + body)
                batch = _decoder.decode(body)
                count += len(batch)
                if any(len(row) != len(table.columns) for row in batch):
                    raise ValueError("a row has another number of columns than its table")
                yield from batch
            if (count, digest.hexdigest()) != (table.rows, table.sha256):
                raise ValueError("the rows are not those of the manifest")


@contextmanager
def create(path: Path) -> Iterator[BackupWriter]:
    """Write a backup, which appears under its name once it is complete."""
    _check_target(path)
    # The fastest compression: models hardly get smaller, and decisions do at any level.
    with atomic_path(path) as partial, zipfile.ZipFile(partial, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        yield BackupWriter(archive)


@contextmanager
def open_backup(path: Path) -> Iterator[BackupReader]:
    try:
        with path.open("rb") as file:
            with _report_damage(path):
                archive = zipfile.ZipFile(file)
            yield BackupReader(path, archive)
    except FileNotFoundError:
        raise missing_file(path) from None
    except OSError as error:
        raise FileError(f"cannot read {path}: {error.strerror}") from error


def _check_target(path: Path) -> None:
    """Refuse to replace a file that is no backup, such as the store itself."""
    try:
        if path.exists():
            with path.open("rb") as file:
                if file.read(len(ZIP)) not in (b"", ZIP):
                    raise FileError(f"{path} exists and is not a backup. Choose another name.")
    except OSError as error:
        raise write_error(path, error) from error


def _batches(rows: Iterable[Row]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = 0
    for row in rows:
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes | str))
        if len(batch) == FRAME_ROWS or size >= FRAME_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@contextmanager
def _report_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except FileError:
        raise
    except DAMAGE as error:
        raise FileError(f"{path} is not a backup of manul, or it is damaged. Nothing was restored.") from error
