"""The store in a PostgreSQL database, for one or several replicas of the service.

Decision numbers are reserved in chunks, so that decisions of different replicas do not wait for each other. Events are
numbered under a lock of their loop that is held until they are durable: numbers have no gaps, and become visible in order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg

from manul.errors import FileError
from manul.service.store import Collision, Counts, Damaged, Event, LoopGone, State, StoreFailure, Transaction
from manul.service.store.blocks import DecisionRow
from manul.service.store.connections import DAMAGE, GONE, Connections, pipelined_transaction
from manul.service.store.numbers import Numbers
from manul.service.store.postgres_election import Election
from manul.service.store.postgres_schema import is_current, migrate
from manul.service.store.postgres_transaction import BLOCKS_WITH, PostgresTransaction, add_blocks, array, events_of
from manul.service.store.reading import Reading, Recent
from manul.service.store.store_registry import register_store
from manul.service.store.watchdog import Connection

COUNTS = """
SELECT coalesce(t.decisions, 0), h.outcomes, h.loss_sum, h.late, h.defaulted, h.events, r.numbers, coalesce(t.latest, 0)
FROM heads h JOIN numbering r ON r.loop = h.loop,
  (SELECT sum(decisions)::bigint AS decisions, max(latest) AS latest FROM tallies WHERE loop = %s) t
WHERE h.loop = %s
"""
STATES = """
SELECT l.number, l.paused, l.apprentice, h.events,
  coalesce((SELECT max(event) FROM snapshots s WHERE s.loop = l.number), 0), f.loop IS NOT NULL, l.stopped, r.numbers
FROM loops l JOIN heads h ON h.loop = l.number JOIN numbering r ON r.loop = l.number
  LEFT JOIN firsts f ON f.loop = l.number ORDER BY l.number
"""


class PostgresStore(Reading):
    """A store in a database. One replica learns each loop; the others follow its snapshots."""

    def __init__(self, url: str) -> None:
        self._recent = Recent()
        self.damaged: set[int] = set()
        self.lost: str | None = None
        self._has_first: set[int] = set()
        self._forgets: dict[int, int] = {}
        # The connections of transactions: that of the writer, and the one beside it.
        self._writing: dict[str, Connection] = {}
        self._connections = Connections(url)
        self._watchdog = self._connections.watchdog
        self._numbers = Numbers(self._reserve_numbers)
        try:
            self._set_up()
        except FileError:
            self._connections.close()
            raise
        except (psycopg.Error, StoreFailure) as error:
            self._connections.close()
            why = str(error).strip().partition("\n")[0]
            raise FileError(f"cannot connect to the PostgreSQL store: {why}") from None
        self.replicas = self._election = Election(self._connections.connect, self.states, self._watchdog)
        self._election.start()
        self._numbers.start()

    def transaction(self) -> AbstractContextManager[Transaction]:
        return self._transaction("writer")

    def transaction_beside(self) -> AbstractContextManager[Transaction]:
        return self._transaction("beside")

    @contextmanager
    def _transaction(self, name: str) -> Iterator[Transaction]:
        try:
            connection = self._writing.get(name)
            if connection is None or connection.closed:
                connection = self._writing[name] = self._connections.connect()
            current = PostgresTransaction(connection, self._watchdog, self._recent, self._has_first, self._forgets)
            with self._watchdog.watch(connection), pipelined_transaction(connection):
                yield current
                current.finish()
        except psycopg.errors.NotNullViolation as error:
            raise LoopGone from error
        except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure, psycopg.IntegrityError) as error:
            raise Collision(str(error)) from error
        except StoreFailure:
            self._abandon(name)
            raise
        except DAMAGE as error:
            self._abandon(name)
            if len(current.loops) == 1:
                self.damaged |= current.loops
            raise Damaged from error
        except GONE as error:
            self._abandon(name)
            raise StoreFailure(str(error).strip()) from error
        current.on_commit()

    def reserve(self, loop: int, count: int) -> int | None:
        return self._numbers.take(loop, count)

    def refill(self, loop: int, count: int) -> None:
        self._numbers.refill(loop, count)

    def keep_numbers(self, loop: int, *, ahead: bool, left: bool = True) -> list[range]:
        """Reserve numbers ahead of decisions or not; returns numbers that no decision gets."""
        return self._numbers.keep(loop, ahead=ahead, left=left)

    def states(self) -> list[State]:
        return [State(*row) for row in self._read(STATES)]

    def counts(self, loop: int) -> Counts:
        rows = self._read(COUNTS, loop, loop)
        if not rows:
            raise LoopGone
        return Counts(*rows[0])

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        return events_of(self._read, loop, numbers)

    def free_bytes(self) -> None:
        """Not known: the server may be on another machine."""

    def close(self) -> None:
        self._election.stop()
        self._numbers.stop()
        for name in list(self._writing):
            self._abandon(name)
        self._connections.close()

    def _decisions(self, loop: int, numbers: list[int]) -> list[DecisionRow | None]:
        """Stored decisions; blocks of other replicas are read together."""
        missing = self._recent.missing(loop, numbers)
        if missing:
            add_blocks(self._recent, loop, self._read(BLOCKS_WITH, array(missing), loop))
        return super()._decisions(loop, numbers)

    def _read(self, query: str, *values: object) -> list[Any]:
        try:
            return self._connections.read(query, *values)
        except Damaged:
            self.damaged |= {value for value in values[:1] if isinstance(value, int)}
            raise

    def _set_up(self) -> None:
        """Create or migrate the tables. A current store is only read, so that a start waits for no lock."""
        with self._connections.connect() as connection:
            with self._watchdog.watch(connection):
                current = is_current(connection)
            if not current:
                migrate(connection)

    def _reserve_numbers(self, loop: int, count: int) -> int:
        reserving = "UPDATE numbering SET numbers = numbers + ? WHERE loop = ? RETURNING numbers"
        rows = self._connections.read(reserving, count, loop)
        if not rows:
            self._numbers.drop(loop)
            raise LoopGone
        return int(rows[0][0]) - count + 1

    def _abandon(self, name: str) -> None:
        if (connection := self._writing.pop(name, None)) is not None:
            connection.close()


register_store("postgres", PostgresStore)
register_store("postgresql", PostgresStore)
