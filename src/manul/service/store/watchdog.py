"""Closes connections to PostgreSQL that wait too long: a frozen server keeps them open, and libpq would wait forever."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

from manul.service.store import StoreFailure

# Seconds: the longest wait for one answer, and between two checks.
ANSWER_SECONDS, TICK = 5.0, 0.25
Connection = psycopg.Connection[tuple[Any, ...]]


class Watchdog(threading.Thread):
    """Shuts down the socket of a connection that waits too long, which wakes the waiting thread with an error.

    Time is counted in ticks of this thread, so that a process that was suspended closes nothing when it resumes.
    """

    def __init__(self) -> None:
        super().__init__(name="manul-watchdog", daemon=True)
        self._ticks, self._stopping = 0, threading.Event()
        self._ends: dict[Connection, int] = {}
        # Held while a socket is shut down, so that its owner cannot close it and its descriptor cannot be reused.
        self._lock = threading.Lock()

    @contextmanager
    def watch(self, connection: Connection) -> Iterator[None]:
        """Inside the block, an answer that takes too long closes the connection and raises StoreFailure."""
        self.restart(connection)
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
                raise StoreFailure(f"PostgreSQL did not answer in {ANSWER_SECONDS:g} s") from failure
            raise failure

    def restart(self, connection: Connection) -> None:
        """Restart the time limit, because an answer has arrived."""
        with self._lock:
            self._ends[connection] = self._ticks + round(ANSWER_SECONDS / TICK)

    def run(self) -> None:
        while not self._stopping.wait(TICK):
            self._ticks += 1
            self._end(self._ticks)

    def end_waits(self) -> None:
        self._end(None)

    def stop(self) -> None:
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
