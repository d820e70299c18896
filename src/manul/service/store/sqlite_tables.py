"""The tables of a store in SQLite, read and written whole."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from manul.errors import FileError, missing_file
from manul.service.store.blocks import DamagedBlock, decode
from manul.service.store.sqlite_file import FileLock, check_file
from manul.service.store.sqlite_schema import VERSION, migrate, version_of
from manul.service.store.tables import ALREADY, KEYS, TABLES, Row, TableAccess, converters, selection

# Columns that other stores do not have: `ended` and `archived` are no longer used, and `count` follows from the block.
OWN_COLUMNS = {"loops": {"ended", "archived"}, "blocks": {"count"}}
# A block that still waits has a row in a table of its own; in a backup this is the column `ended`.
ENDED = "NOT EXISTS (SELECT 1 FROM waiting w WHERE w.loop = blocks.loop AND w.time = blocks.time AND w.first = blocks.first)"
BLOCK = "INSERT INTO blocks ({}, count) VALUES ({}, ?)"
WAITING = "INSERT INTO waiting (loop, time, first) VALUES (?, ?, ?)"
BUSY_SECONDS = 10.0


class SqliteTables:
    store, version = "sqlite", VERSION

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def columns(self, table: str) -> list[str]:
        return [*self._types(table), *(["ended"] if table == "blocks" else [])]

    def rows(self, table: str) -> Generator[Row, None, None]:
        columns = [ENDED if (table, name) == ("blocks", "ended") else name for name in self.columns(table)]
        yield from self._connection.execute(selection(table, columns))

    def last_loop(self) -> int:
        rows = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'counts'").fetchall()
        return int(rows[0][0]) if rows else 0

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        types = self._types(table)
        kept = [name for name in columns if name in types]
        places = [columns.index(name) for name in kept]
        convert = converters(types[name] for name in kept)
        converted = ((row, [change(row[place]) for place, change in zip(places, convert, strict=True)]) for row in rows)
        names, marks = ", ".join(kept), ", ".join("?" * len(kept))
        if table != "blocks":
            statement = f"INSERT INTO {table} ({names}) VALUES ({marks})"
            self._connection.executemany(statement, (values for _, values in converted))
            return
        for row, values in converted:
            block = dict(zip(columns, row, strict=True))
            self._connection.execute(BLOCK.format(names, marks), (*values, _count(block)))
            if not block["ended"]:
                self._connection.execute(WAITING, (block["loop"], block["time"], block["first"]))

    def set_last_loop(self, number: int) -> None:
        self._connection.execute("DELETE FROM sqlite_sequence WHERE name = 'counts'")
        self._connection.execute("INSERT INTO sqlite_sequence (name, seq) VALUES ('counts', ?)", (number,))

    def clear(self) -> None:
        for table in (*KEYS, "waiting", "deleted"):
            self._connection.execute(f"DELETE FROM {table}")

    def _types(self, table: str) -> dict[str, str]:
        rows = self._connection.execute(f"PRAGMA table_info({table})").fetchall()
        return {row[1]: row[2] for row in rows if row[1] not in OWN_COLUMNS.get(table, ())}


def _count(block: dict[str, Any]) -> int:
    """The number of decisions of a block; if it is damaged, the most that it can have had."""
    try:
        return decode(block["body"]).count
    except DamagedBlock:
        return int(block["last"] - block["first"] + 1)


@contextmanager
def reading(address: str) -> Iterator[SqliteTables]:
    """The tables of a store at one moment. A service may use the store at the same time; nothing waits."""
    path = _path(address)
    if not path.is_file():
        raise missing_file(path)
    try:
        with closing(_connect(path)) as connection:
            connection.execute("BEGIN")
            _check_version(path, version_of(connection))
            yield SqliteTables(connection)
    except sqlite3.DatabaseError as error:
        raise FileError(f"{path} cannot be read as a store of manul: {error}") from error


def _check_version(path: Path, version: int | None) -> None:
    if not version:
        raise FileError(f"{path} is not a store of manul. Choose another file.")
    if version > VERSION:
        raise FileError(f"{path} has version {version}, newer than {VERSION}. Upgrade manul: pip install -U manul.")
    if version < VERSION:
        raise FileError(
            f"{path} has version {version}, older than {VERSION}. Start manul serve with it once to upgrade it."
        )


@contextmanager
def writing(address: str, loop: str | None) -> Iterator[SqliteTables]:
    """The tables of a new store, or of one without loops, or without this loop, that no process uses."""
    path = _path(address)
    is_new = not path.exists()
    lock, done = FileLock(path), False
    try:
        version = check_file(path)
        with closing(_connect(path)) as connection:
            _check_absent(path, connection, version, loop)
            # Without a write-ahead log, which would become as large as the store; the service switches it on again.
            connection.execute("PRAGMA journal_mode = DELETE")
            migrate(connection, version)
            connection.execute("BEGIN IMMEDIATE")
            tables = SqliteTables(connection)
            if loop is None:
                tables.clear()
            yield tables
            connection.execute("COMMIT")
        done = True
    except sqlite3.DatabaseError as error:
        raise FileError(f"{path} cannot be written: {error}") from error
    finally:
        if is_new and not done:
            for suffix in ("", "-journal", "-wal", "-shm"):
                path.with_name(path.name + suffix).unlink(missing_ok=True)
        lock.close()


def migrating(address: str) -> tuple[int, int]:
    """Bring a store that no process uses to the current version; returns the version before and after."""
    path = _path(address)
    if not path.is_file():
        raise missing_file(path)
    lock = FileLock(path)
    try:
        version = check_file(path)
        if not version:
            raise FileError(f"{path} is not a store of manul. Choose another file.")
        with closing(_connect(path)) as connection:
            migrate(connection, version)
    except sqlite3.DatabaseError as error:
        raise FileError(f"{path} cannot be migrated: {error}") from error
    finally:
        lock.close()
    return version, VERSION


def _check_absent(path: Path, connection: sqlite3.Connection, version: int, loop: str | None) -> None:
    if version and connection.execute("SELECT 1 FROM loops WHERE name = coalesce(?, name) LIMIT 1", (loop,)).fetchall():
        raise FileError(f"{path} already contains {ALREADY[loop is None].format(loop=loop)}")


def _connect(path: Path) -> sqlite3.Connection:
    address = f"file:{quote(str(path.resolve()))}?mode=rw"
    connection = sqlite3.connect(address, uri=True, isolation_level=None, timeout=BUSY_SECONDS)
    connection.text_factory = lambda text: text.decode(errors="replace")
    return connection


def _path(address: str) -> Path:
    return Path(address.removeprefix("sqlite://"))


TABLES.add("sqlite", TableAccess(reading, writing, migrating), module=__name__)
