"""Leader election: the leader is the replica whose session holds an advisory lock.

The stored data would be correct with several leaders: models are a function of the events alone, and every loss is stored
under its loop's lock. The election only avoids duplicate work.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import psycopg

from manul.service.store import State, StoreFailure
from manul.service.store.postgres_schema import LEADING, SERVING
from manul.service.store.watchdog import Watchdog

log = logging.getLogger("manul.service")
RENEWAL_SECONDS = 1.0
# The server ends the session of a replica that hangs or whose machine is gone, which frees the lock.
SESSION_TIMEOUTS = """
SELECT set_config('idle_session_timeout', '5s', false), set_config('tcp_keepalives_idle', '2', false),
  set_config('tcp_keepalives_interval', '1', false), set_config('tcp_keepalives_count', '3', false)
"""
# The upper and lower half of a lock's key are its classid and objid.
COUNT = f"""
SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted
  AND classid = {SERVING >> 32} AND objid = {SERVING & 0xFFFFFFFF}
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


class Election(threading.Thread):
    """Tries to get the lock every second and, while it holds it, keeps its session alive."""

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Any]], states: Callable[[], list[State]], watchdog: Watchdog
    ) -> None:
        super().__init__(name="manul-election", daemon=True)
        self._connect, self.states, self._watchdog = connect, states, watchdog
        self._session: psycopg.Connection[Any] | None = None
        self._leads, self._count, self._stopping = False, 1, threading.Event()
        self._try()

    def leads(self) -> bool:
        """Whether this replica is the leader."""
        return self._leads

    def count(self) -> int:
        """The number of replicas, as of a second ago."""
        return self._count

    def run(self) -> None:
        """Run until stopped."""
        while not self._stopping.wait(RENEWAL_SECONDS):
            self._try()

    def stop(self) -> None:
        """Release the lock and stop."""
        self._stopping.set()
        self._watchdog.end_waits()
        if self.is_alive():
            self.join()
        self._leads = False
        self._close()

    def _try(self) -> None:
        led = self._leads
        try:
            self._leads = self._hold_lock()
        except (psycopg.Error, StoreFailure):
            self._leads = False
            self._close()
        if self._leads != led:
            log.info("this replica is now the leader" if self._leads else "this replica is no longer the leader")

    def _hold_lock(self) -> bool:
        if self._session is None:
            self._session = self._connect()
            self._leads = False
            with self._watchdog.watch(self._session):
                self._session.execute(SESSION_TIMEOUTS)
                self._session.execute(f"SELECT pg_advisory_lock_shared({SERVING})".encode())
        query = "SELECT true" if self._leads else f"SELECT pg_try_advisory_lock({LEADING})"
        with self._watchdog.watch(self._session):
            row = self._session.execute(query.encode()).fetchone()
            counted = self._session.execute(COUNT.encode()).fetchone()
        self._count = max(1, int(counted[0])) if counted is not None else 1
        return row is not None and bool(row[0])

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
