"""Connections to PostgreSQL: opened on demand, reused, and closed if the server does not answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.types.numeric import Int8Dumper

from manul.service.store import Damaged, StoreFailure
from manul.service.store.watchdog import Connection, Watchdog

CONNECT_SECONDS = 3
# Pages that PostgreSQL cannot read; they belong to some loops only.
DAMAGE = (psycopg.errors.DataCorrupted, psycopg.errors.IndexCorrupted)
# Lost connections, full disks, servers that are shutting down or read-only.
GONE = (psycopg.OperationalError, psycopg.InternalError, psycopg.InterfaceError)
# A replica that hangs inside a transaction must not hold its locks forever, and others wait for them only briefly.
SESSION = b"""
SELECT set_config('lock_timeout', '3s', false), set_config('idle_in_transaction_session_timeout', '5s', false),
  CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END
"""


@contextmanager
def pipelined_transaction(connection: Connection) -> Iterator[None]:
    """A transaction that waits for the server only when a result is read, and at the end.

    Inside a pipeline, psycopg's own `transaction` would wait at its beginning and twice at its end.
    """
    try:
        with connection.pipeline():
            connection.execute(b"BEGIN")
            yield
            commit = connection.execute(b"COMMIT")
    except BaseException:
        if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
            connection.execute(b"ROLLBACK")
        raise
    if commit.statusmessage != "COMMIT":
        raise StoreFailure("PostgreSQL rolled the transaction back")


class Connections:
    """Connections to a database. Queries may come from any thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._free: list[Connection] = []
        self._closed = False
        self.watchdog = Watchdog()
        self.watchdog.start()

    def connect(self) -> Connection:
        connection: Connection = psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECT_SECONDS)
        # One type for all integers, so that each statement is prepared once and not once per size of its values.
        connection.adapters.register_dumper(int, Int8Dumper)
        try:
            with self.watchdog.watch(connection):
                connection.execute(SESSION)
        except BaseException:
            connection.close()
            raise
        return connection

    def read(self, query: str, *values: object) -> list[Any]:
        """Run a query, with a ? for each of its values; a lost connection is replaced."""
        statement = query.replace("?", "%s").encode()
        while True:
            try:
                connection, is_new = self._free.pop(), False
            except IndexError:
                connection, is_new = self._new(), True
            try:
                with self.watchdog.watch(connection):
                    # Checked once the watchdog knows the connection: a store closed later than this ends the wait.
                    self._check_open()
                    rows = connection.execute(statement, values).fetchall()
            except DAMAGE as error:
                connection.close()
                raise Damaged from error
            except GONE as error:
                connection.close()
                self._drop_free()
                if is_new or self._closed:
                    raise StoreFailure(str(error).strip()) from error
                continue
            except BaseException:
                connection.close()
                self._drop_free()
                raise
            self._free.append(connection)
            if self._closed:
                self._drop_free()
            return rows

    def close(self) -> None:
        """Close all connections; reads that are still running fail."""
        self._closed = True
        self.watchdog.end_waits()
        self.watchdog.stop()
        self._drop_free()

    def _new(self) -> Connection:
        self._check_open()
        try:
            return self.connect()
        except GONE as error:
            raise StoreFailure(str(error).strip()) from error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreFailure("the store is closed")

    def _drop_free(self) -> None:
        """If one connection is lost, most likely the others are too."""
        with suppress(IndexError):
            while True:
                self._free.pop().close()
