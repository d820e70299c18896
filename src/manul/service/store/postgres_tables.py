"""The tables of a store in PostgreSQL, read and written whole with COPY."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import IsolationLevel

from manul.errors import FileError
from manul.service.store.connections import CONNECT_SECONDS
from manul.service.store.postgres import COUNTS as COUNTS_OF_LOOP
from manul.service.store.postgres_schema import LEADING, VERSION, is_current, migrate, version_of
from manul.service.store.tables import ALREADY, COUNTS, KEYS, TABLES, Row, TableAccess, converters, selection

TYPES = """
SELECT attname, format_type(atttypid, NULL) FROM pg_attribute
WHERE attrelid = %s::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""
SEQUENCE = "pg_get_serial_sequence('loops', 'number')::regclass"
# The totals of a loop are kept in these tables, which are in a backup as one.
TOTALS = {
    "heads": ("loop", "events", "outcomes", "loss_sum", "late", "defaulted"),
    "numbering": ("loop", "numbers"),
    "tallies": ("loop", "slot", "decisions", "latest"),
}
# A large store takes longer than a server may allow a statement or a transaction.
PATIENCE = """
SELECT set_config('statement_timeout', '0', true), set_config('idle_in_transaction_session_timeout', '0', true)
"""


class PostgresTables:
    """The tables of a database in one transaction."""

    store, version = "postgresql", VERSION

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def columns(self, table: str) -> list[str]:
        return list(COUNTS) if table == "counts" else list(self._types(table))

    def rows(self, table: str) -> Generator[Row, None, None]:
        if table == "counts":
            loops = self._connection.execute("SELECT number FROM loops ORDER BY number").fetchall()
            yield from (
                (loop, *self._connection.execute(COUNTS_OF_LOOP, (loop, loop)).fetchall()[0]) for (loop,) in loops
            )
            return
        types = self._types(table)
        query = f"COPY ({selection(table, types)}) TO STDOUT (FORMAT BINARY)"
        with self._connection.cursor() as cursor, cursor.copy(query.encode()) as copy:
            copy.set_types(list(types.values()))
            yield from copy.rows()

    def last_loop(self) -> int:
        rows = self._connection.execute(f"SELECT coalesce(pg_sequence_last_value({SEQUENCE}), 0)".encode()).fetchall()
        return int(rows[0][0])

    def insert(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        if table != "counts":
            self._copy(table, columns, rows)
            return
        totals = [{"slot": 0, **dict(zip(columns, row, strict=True))} for row in rows]
        for name, parts in TOTALS.items():
            self._copy(name, parts, (tuple(each[part] for part in parts) for each in totals))

    def set_last_loop(self, number: int) -> None:
        if number:
            self._connection.execute(f"SELECT setval({SEQUENCE}, %s)".encode(), (number,))

    def clear(self) -> None:
        for table in (*(name for name in KEYS if name != "counts"), *TOTALS, "deleted"):
            self._connection.execute(f"DELETE FROM {table}".encode())

    def _copy(self, table: str, columns: Sequence[str], rows: Iterable[Row]) -> None:
        types = self._types(table)
        convert = converters(types[name] for name in columns)
        query = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT BINARY)"
        with self._connection.cursor() as cursor, cursor.copy(query.encode()) as copy:
            copy.set_types([types[name] for name in columns])
            for row in rows:
                copy.write_row([change(value) for change, value in zip(convert, row, strict=True)])

    def _types(self, table: str) -> dict[str, str]:
        return dict(self._connection.execute(TYPES, (table,)).fetchall())


@contextmanager
def reading(address: str) -> Iterator[PostgresTables]:
    """The tables of a store at one moment. Services may use the store at the same time; nothing waits."""
    with _connected(address, "read") as connection:
        connection.isolation_level, connection.read_only = IsolationLevel.REPEATABLE_READ, True
        connection.execute(PATIENCE)
        if not is_current(connection):
            raise FileError(
                f"the database is not a store of manul of version {VERSION}. Start manul serve with it once."
            )
        yield PostgresTables(connection)


@contextmanager
def writing(address: str, loop: str | None) -> Iterator[PostgresTables]:
    """The tables of a new store, or of one without loops, or without this loop, that no service uses."""
    with _connected(address, "written") as connection:
        connection.execute(PATIENCE)
        if not connection.execute("SELECT pg_try_advisory_xact_lock(%s)", (LEADING,)).fetchall()[0][0]:
            raise FileError("a service uses the PostgreSQL store. Stop it, or choose another store.")
        if not is_current(connection):
            migrate(connection)
        connection.execute("LOCK TABLE loops IN EXCLUSIVE MODE")
        if connection.execute("SELECT 1 FROM loops WHERE name = coalesce(%s, name) LIMIT 1", (loop,)).fetchall():
            raise FileError(f"the PostgreSQL store already contains {ALREADY[loop is None].format(loop=loop)}")
        tables = PostgresTables(connection)
        if loop is None:
            tables.clear()
        yield tables


def migrating(address: str) -> tuple[int, int]:
    """Bring a store to the current version, also while services use it; a new database gets the tables."""
    with _connected(address, "migrated") as connection:
        connection.execute(PATIENCE)
        version = VERSION if is_current(connection) else version_of(connection)
        migrate(connection)
    return version, VERSION


@contextmanager
def _connected(address: str, what: str) -> Iterator[psycopg.Connection[Any]]:
    """A connection with one transaction, which is committed unless the block raises."""
    try:
        with psycopg.connect(address, connect_timeout=CONNECT_SECONDS) as connection:
            yield connection
    except psycopg.Error as error:
        why = str(error).strip().partition("\n")[0]
        raise FileError(f"the PostgreSQL store cannot be {what}: {why}") from error


for _scheme in ("postgres", "postgresql"):
    TABLES.add(_scheme, TableAccess(reading, writing, migrating), module=__name__)
