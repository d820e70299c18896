"""Connections to PostgreSQL: opened as they are needed, kept while they are free, and ended if they wait too long."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import psycopg

from manul.service.store import StoreFailure
from manul.service.store.watchdog import Connection, Watchdog

# Seconds.
CONNECTING = 3
# Lost connections, full disks, servers that shut down or only read.
GONE = (psycopg.OperationalError, psycopg.InternalError, psycopg.InterfaceError)
# A replica that hangs inside a transaction must not hold its locks for ever, and nobody waits for them for long.
SESSION = b"""
SELECT set_config('lock_timeout', '3s', false), set_config('idle_in_transaction_session_timeout', '5s', false),
  CASE WHEN current_setting('synchronous_commit') = 'off' THEN set_config('synchronous_commit', 'on', false) END
"""


class Connections:
    """Connections to the database of a URL. Queries may come from any thread."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._free: list[Connection] = []
        self.watchdog = Watchdog()
        self.watchdog.start()

    def connected(self) -> Connection:
        """A new connection, for the caller to close."""
        connection: Connection = psycopg.connect(self._url, autocommit=True, connect_timeout=CONNECTING)
        try:
            with self.watchdog.watching(connection):
                connection.execute(SESSION)
        except BaseException:
            connection.close()
            raise
        return connection

    def read(self, query: str, *values: object) -> list[Any]:
        """What a query finds, with a ? for each of its values; a connection that was lost is replaced."""
        statement = query.replace("?", "%s").encode()
        while True:
            try:
                connection, is_new = self._free.pop(), False
            except IndexError:
                connection, is_new = self._new(), True
            try:
                with self.watchdog.watching(connection):
                    found = connection.execute(statement, values).fetchall()
            except GONE as error:
                connection.close()
                self._drop_free()
                if is_new:
                    raise StoreFailure(str(error).strip()) from error
                continue
            except BaseException:
                connection.close()
                self._drop_free()
                raise
            self._free.append(connection)
            return found

    def close(self) -> None:
        """Let go of everything."""
        self.watchdog.stop()
        self._drop_free()

    def _new(self) -> Connection:
        try:
            return self.connected()
        except GONE as error:
            raise StoreFailure(str(error).strip()) from error

    def _drop_free(self) -> None:
        """After one was lost, the others most likely are."""
        with suppress(IndexError):
            while True:
                self._free.pop().close()
