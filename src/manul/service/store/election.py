"""Which replica learns: the one whose session holds an advisory lock.

Nothing that is stored depends on there being only one: models are a function of the events alone, and every loss is
settled under its loop's lock. The lock spares the others the work.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import psycopg

from manul.service.store import State, StoreFailure
from manul.service.store.postgres_schema import LEADING
from manul.service.store.watchdog import Watchdog

log = logging.getLogger("manul.service")
SECONDS = 1.0
# The server ends the session, and so frees the lock, of a replica that hangs, or whose machine is gone.
PATIENCE = """
SELECT set_config('idle_session_timeout', '5s', false), set_config('tcp_keepalives_idle', '2', false),
  set_config('tcp_keepalives_interval', '1', false), set_config('tcp_keepalives_count', '3', false)
"""


class Election(threading.Thread):
    """Tries for the lock every second and, once it has it, shows every second that it is alive."""

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Any]], states: Callable[[], list[State]], watchdog: Watchdog
    ) -> None:
        super().__init__(name="manul-election", daemon=True)
        self._connect, self.states, self._watchdog = connect, states, watchdog
        self._session: psycopg.Connection[Any] | None = None
        self._leads, self._stopping = False, threading.Event()
        self._try()

    def leads(self) -> bool:
        """Whether this replica learns."""
        return self._leads

    def run(self) -> None:
        """Until stopped."""
        while not self._stopping.wait(SECONDS):
            self._try()

    def stop(self) -> None:
        """Leave the lock to the others."""
        self._stopping.set()
        self._watchdog.end_waits()
        if self.is_alive():
            self.join()
        self._leads = False
        self._close()

    def _try(self) -> None:
        led = self._leads
        try:
            self._leads = self._asked()
        except (psycopg.Error, StoreFailure):
            self._leads = False
            self._close()
        if self._leads != led:
            log.info("leads: learns for all replicas" if self._leads else "follows: another replica learns")

    def _asked(self) -> bool:
        if self._session is None:
            self._session = self._connect()
            self._leads = False
            with self._watchdog.watching(self._session):
                self._session.execute(PATIENCE)
        query = "SELECT true" if self._leads else f"SELECT pg_try_advisory_lock({LEADING})"
        with self._watchdog.watching(self._session):
            found = self._session.execute(query.encode()).fetchone()
        return found is not None and bool(found[0])

    def _close(self) -> None:
        if self._session is not None:
            self._session.close()
            self._session = None
