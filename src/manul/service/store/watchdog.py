"""Ends connections to PostgreSQL that wait too long: a frozen server keeps them open, and libpq would wait for ever."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from manul.service.store import StoreFailure

# Seconds: the longest wait for one answer, and between two looks.
LONGEST, TICK = 5.0, 0.25
Connection = psycopg.Connection[tuple[Any, ...]]


class Watchdog(threading.Thread):
    """Shuts the socket of a connection whose wait has been too long, which wakes whoever waits with an error.

    Time is counted in ticks of this thread, so that a process which was stopped for a while ends nothing when it goes on.
    """

    def __init__(self) -> None:
        super().__init__(name="manul-watchdog", daemon=True)
        self._ticks, self._stopping = 0, threading.Event()
        self._ends: dict[Connection, int] = {}
        # Held while a socket is shut: its owner cannot close it, and so nobody else can get its number.
        self._lock = threading.Lock()

    @contextmanager
    def watching(self, connection: Connection) -> Iterator[None]:
        """Inside, the connection ends if one answer takes too long, and StoreFailure says so."""
        self.go_on(connection)
        failure: psycopg.Error | None = None
        try:
            yield
        except psycopg.Error as error:
            failure = error
        finally:
            with self._lock:
                late = self._ends.pop(connection, None) is None
        if failure is not None:
            if late:
                raise StoreFailure(f"PostgreSQL did not answer in {LONGEST:g} s") from failure
            raise failure

    def go_on(self, connection: Connection) -> None:
        """An answer has come, and the next is waited for."""
        with self._lock:
            self._ends[connection] = self._ticks + round(LONGEST / TICK)

    def run(self) -> None:
        """Until stopped."""
        while not self._stopping.wait(TICK):
            self._ticks += 1
            self._end(self._ticks)

    def end_waits(self) -> None:
        """End every wait at once."""
        self._end(None)

    def stop(self) -> None:
        """Watch nothing any more."""
        self._stopping.set()
        self.join()

    def _end(self, tick: int | None) -> None:
        with self._lock:
            for connection, end in list(self._ends.items()):
                if tick is None or end <= tick:
                    del self._ends[connection]
                    _shut(connection)


def _shut(connection: Connection) -> None:
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)
