"""Backups of a store: a consistent copy in one file while the service runs, which any store can be restored from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NoReturn

from tqdm import tqdm

import manul
from manul.errors import FileError
from manul.service.store.backup_file import BackupReader, Manifest, create, open_backup
from manul.service.store.tables import KEYS, TABLES, Row, TableAccess, Tables, Value

# Tables that backups of earlier versions lack.
LATER_TABLES = {"pieces", "downloads"}


@dataclass(frozen=True)
class Backup:
    """What was backed up or restored.

    >>> print(Backup(file=Path("monday.zip"), loops=1, events=2500, bytes=1_200_000))
    monday.zip: 1 loop, 2,500 events, 1.2 MB
    """

    file: Path
    loops: int
    events: int
    bytes: int

    def __str__(self) -> str:
        return f"{self.file}: {_count(self.loops, 'loop')}, {_count(self.events, 'event')}, {self.bytes / 1e6:,.1f} MB"


def backup(store: str, file: str | Path, *, progress: bool = False) -> Backup:
    """Back up a store to a file; a service may use the store at the same time.

    Args:
        store: The path of a SQLite file, or the URL of a PostgreSQL database.
        file: The file to write, a zip archive. A backup of the same name is replaced once the new one is complete.
        progress: Show the number of rows on standard error.

    >>> import tempfile
    >>> from manul.service.store.store_registry import open_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     open_store(f"{folder}/decisions.db").close()
    ...     backup(f"{folder}/decisions.db", f"{folder}/monday.zip").loops
    0
    """
    path = Path(file)
    with access_of(store).reading(store) as tables, create(path) as writer, _bar(None, progress=progress) as bar:
        for name in KEYS:
            with closing(tables.rows(name)) as rows:
                writer.add(name, tables.columns(name), _counted(rows, bar))
        manifest = Manifest(
            manul=manul.__version__,
            store=tables.store,
            store_version=tables.version,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            last_loop=tables.last_loop(),
            tables=writer.tables,
        )
        writer.finish(manifest)
    return _summary(path, manifest)


def restore(file: str | Path, store: str, *, loop: str | None = None, progress: bool = False) -> Backup:
    """Restore a backup to a store that is new or has no loops, or one loop to a store without it; the backup may be of
    another kind of store.

    The whole file is checked first. If anything fails, the store is as it was before.

    Args:
        file: The file that `backup` wrote.
        store: The path of a SQLite file, or the URL of a PostgreSQL database.
        loop: The name of the loop to restore, if not all of them.
        progress: Show the number of rows on standard error.

    >>> import tempfile
    >>> from manul.service.store.store_registry import open_store
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     open_store(f"{folder}/decisions.db").close()
    ...     saved = backup(f"{folder}/decisions.db", f"{folder}/monday.zip")
    ...     restore(saved.file, f"{folder}/restored.db") == saved
    True
    """
    path = Path(file)
    access = access_of(store)
    with open_backup(path) as reader:
        contents = reader.manifest.tables
        with _bar(2 * sum(table.rows for table in contents.values()), progress=progress) as bar:
            _check(reader, bar)
            origin = None if loop is None else _number(path, reader, loop)
            with access.writing(store, loop) as tables:
                _check_columns(path, reader.manifest, tables)
                last = reader.manifest.last_loop if origin is None else tables.last_loop() + 1
                restored: Counter[str] = Counter()
                for name in filter(contents.__contains__, KEYS):
                    columns, place = contents[name].columns, contents[name].columns.index(KEYS[name].partition(",")[0])
                    with closing(reader.rows(name)) as rows:
                        only = rows if origin is None else _renumbered(rows, place, origin, last)
                        tables.insert(name, columns, _counted(only, bar, restored, name))
                tables.set_last_loop(last)
    return Backup(file=path, loops=restored["loops"], events=restored["events"], bytes=path.stat().st_size)


def _number(path: Path, reader: BackupReader, loop: str) -> Value:
    """The number of a loop in a backup."""
    columns = reader.manifest.tables["loops"].columns
    numbers = {row[columns.index("name")]: row[columns.index("number")] for row in reader.rows("loops")}
    if loop not in numbers:
        raise FileError(f"{path} has no loop {loop!r}. Nothing was restored.")
    return numbers[loop]


def _renumbered(rows: Iterable[Row], place: int, origin: Value, number: int) -> Iterator[Row]:
    """The rows of one loop, which gets another number: its own may be that of another loop, or of deleted data."""
    return ((*row[:place], number, *row[place + 1 :]) for row in rows if row[place] == origin)


def _check(reader: BackupReader, bar: tqdm[NoReturn]) -> None:
    """Read everything once, so that a damaged file is refused before the store is touched."""
    for name in reader.manifest.tables:
        for _ in _counted(reader.rows(name), bar):
            pass


def _check_columns(path: Path, manifest: Manifest, tables: Tables) -> None:
    """Refuse a backup with more than this version knows: it must not be lost without a word."""
    unknown = [name for name in manifest.tables if name not in KEYS]
    for name in KEYS:
        if name not in manifest.tables and name not in LATER_TABLES:
            raise FileError(f"{path} has no table {name!r}, so it is not a whole backup. Nothing was restored.")
        columns = manifest.tables[name].columns if name in manifest.tables else []
        unknown += [f"{name}.{column}" for column in set(columns) - set(tables.columns(name))]
    if unknown:
        what = f"{path} contains {unknown[0]!r}, which this version of manul does not know"
        raise FileError(f"{what}. Upgrade manul to {manifest.manul} or newer.")


def access_of(store: str) -> TableAccess:
    """How the tables of a store are read and written, by its path or URL."""
    scheme, separator, _ = store.partition("://")
    return TABLES[scheme if separator else "sqlite"]


def _summary(path: Path, manifest: Manifest) -> Backup:
    rows = {name: table.rows for name, table in manifest.tables.items()}
    return Backup(file=path, loops=rows["loops"], events=rows["events"], bytes=path.stat().st_size)


def _counted(
    rows: Iterable[Row], bar: tqdm[NoReturn], counts: Counter[str] | None = None, table: str = ""
) -> Iterator[Row]:
    for row in rows:
        yield row
        bar.update()
        if counts is not None:
            counts[table] += 1


def _bar(total: int | None, *, progress: bool) -> tqdm[NoReturn]:
    return tqdm(total=total, unit=" rows", unit_scale=True, disable=not progress)


def _count(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
