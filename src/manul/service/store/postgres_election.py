"""Election of the leader and of the replica that learns each loop: those whose sessions hold advisory locks.

Loops are divided into shares, and each replica holds the locks of as many shares as the others. The stored data would be
correct with several leaders: models are a function of the events alone, and every loss is stored under its loop's lock. The
election only avoids duplicate work.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import psycopg

from manul.service.store import State, StoreFailure
from manul.service.store.postgres_schema import LEADING, LEARNING, LIVING
from manul.service.store.watchdog import Watchdog

log = logging.getLogger("manul.service")
RENEWAL_SECONDS = 1.0
SHARES = 32
# The low halves of the keys of all locks on this database that have the high half of LIVING and LEARNING.
LOCKS = f"""
SELECT array_agg(objid::bigint) FROM pg_locks
WHERE locktype = 'advisory' AND granted AND classid = {LIVING >> 32} AND objsubid = 1
  AND database IN (SELECT database FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid())
"""
# The server ends the session of a replica that hangs or whose machine is gone, which frees the lock.
SESSION_TIMEOUTS = """
SELECT set_config('idle_session_timeout', '5s', false), set_config('tcp_keepalives_idle', '2', false),
  set_config('tcp_keepalives_interval', '1', false), set_config('tcp_keepalives_count', '3', false)
"""


class Election(threading.Thread):
    """Tries to get the locks every second, gives up those beyond its part, and keeps its session alive."""

    def __init__(
        self, connect: Callable[[], psycopg.Connection[Any]], states: Callable[[], list[State]], watchdog: Watchdog
    ) -> None:
        super().__init__(name="manul-election", daemon=True)
        self._connect, self.states, self._watchdog = connect, states, watchdog
        self._session: psycopg.Connection[Any] | None = None
        self._leads, self._stopping = False, threading.Event()
        self._shares: frozenset[int] = frozenset()
        self._try()

    def leads(self) -> bool:
        return self._leads

    def learns(self, loop: int) -> bool:
        return loop % SHARES in self._shares

    def run(self) -> None:
        while not self._stopping.wait(RENEWAL_SECONDS):
            self._try()

    def stop(self) -> None:
        self._stopping.set()
        self._watchdog.end_waits()
        if self.is_alive():
            self.join()
        self._lose()

    def _try(self) -> None:
        led = self._leads
        try:
            self._leads = self._hold_lock()
            self._shares = self._hold_shares()
        except (psycopg.Error, StoreFailure):
            self._lose()
        if self._leads != led:
            log.info("this replica is now the leader" if self._leads else "this replica is no longer the leader")

    def _hold_lock(self) -> bool:
        if self._session is None:
            self._session = self._connect()
            self._leads = False
            self._ask(SESSION_TIMEOUTS)
            self._ask(f"SELECT pg_advisory_lock_shared({LIVING})")
        return self._leads or bool(self._ask(f"SELECT pg_try_advisory_lock({LEADING})"))

    def _hold_shares(self) -> frozenset[int]:
        """Take free shares or give up some, so that every replica has the same number, or one less."""
        locks = self._ask(LOCKS)
        replicas = max(1, locks.count(LIVING & 0xFFFFFFFF))
        part = -(-SHARES // replicas)
        held = sorted(self._shares)
        # Every second one, because loops that were created together are often busy together.
        surplus = [*held[1::2], *held[::2]][: max(0, len(held) - part)]
        self._shares = frozenset(held) - frozenset(surplus)
        for share in surplus:
            self._ask(f"SELECT pg_advisory_unlock({LEARNING + share})")
        taken = set(self._shares)
        for share in (share for share in range(SHARES) if (LEARNING + share) & 0xFFFFFFFF not in locks):
            if len(taken) < part and self._ask(f"SELECT pg_try_advisory_lock({LEARNING + share})"):
                taken.add(share)
        return frozenset(taken)

    def _ask(self, query: str) -> Any:
        assert self._session is not None
        with self._watchdog.watch(self._session):
            row = self._session.execute(query.encode()).fetchone()
        return None if row is None else row[0]

    def _lose(self) -> None:
        self._leads, self._shares = False, frozenset()
        if self._session is not None:
            self._session.close()
            self._session = None
