"""The store in a PostgreSQL database, for one or several replicas of the service.

Decision numbers are reserved by the chunk, so that replicas never wait for each other to decide. Events get their numbers
under a lock of their loop that is held until they are durable: they have no gaps, and whoever has read one has read all
before it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import psycopg

from manul.errors import FileError
from manul.service.store import Collision, Counts, Event, LoopGone, LoopRow, State, StoreFailure, Transaction
from manul.service.store.connections import GONE, Connections
from manul.service.store.election import Election
from manul.service.store.numbers import Numbers
from manul.service.store.opening import register_store
from manul.service.store.postgres_schema import is_current, migrate
from manul.service.store.postgres_transaction import PostgresTransaction, events_of
from manul.service.store.reading import Reading
from manul.service.store.recent import Recent
from manul.service.store.watchdog import Connection

COUNTS = """
SELECT coalesce(t.decisions, 0), h.outcomes, h.loss_sum, h.late, h.defaulted, h.events, r.numbers, coalesce(t.latest, 0)
FROM heads h JOIN reserved r ON r.loop = h.loop,
  (SELECT sum(decisions)::bigint AS decisions, max(latest) AS latest FROM tallies WHERE loop = %s) t
WHERE h.loop = %s
"""
STATES = """
SELECT l.number, l.paused, l.apprentice, h.events,
  coalesce((SELECT max(event) FROM snapshots s WHERE s.loop = l.number), 0), f.loop IS NOT NULL
FROM loops l JOIN heads h ON h.loop = l.number LEFT JOIN firsts f ON f.loop = l.number ORDER BY l.number
"""


class PostgresStore(Reading):
    """A store in a database by its URL. The first of its replicas leads: it learns, and the others follow its snapshots."""

    def __init__(self, url: str) -> None:
        self._recent = Recent()
        self._begun: set[int] = set()
        self._forgets: dict[int, int] = {}
        self._writer: Connection | None = None
        self._connections = Connections(url)
        self._watchdog, self._read = self._connections.watchdog, self._connections.read  # type: ignore[method-assign]
        self._numbers = Numbers(self._reserved)
        try:
            self._set_up()
        except FileError:
            self._connections.close()
            raise
        except (psycopg.Error, StoreFailure) as error:
            self._connections.close()
            why = str(error).strip().partition("\n")[0]
            raise FileError(
                f"store must be a PostgreSQL database that lets manul in; got {why}. Check the URL."
            ) from None
        self.replicas = self._election = Election(self._connections.connected, self.states, self._watchdog)
        self._election.start()
        self._numbers.start()

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Everything inside is durable after the block or, where an error comes out of it, undone."""
        try:
            if self._writer is None or self._writer.closed:
                self._writer = self._connections.connected()
            current = PostgresTransaction(self._writer, self._watchdog, self._recent, self._begun, self._forgets)
            with self._watchdog.watching(self._writer), self._writer.pipeline(), self._writer.transaction():
                yield current
                current.finish()
        except psycopg.errors.NotNullViolation as error:
            raise LoopGone from error
        except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure, psycopg.IntegrityError) as error:
            raise Collision(str(error)) from error
        except StoreFailure:
            self._abandon()
            raise
        except GONE as error:
            self._abandon()
            raise StoreFailure(str(error).strip()) from error
        current.kept()

    def reserve(self, loop: int, count: int) -> int | None:
        """The first of some consecutive decision numbers that nobody else gets; None if not as many are at hand."""
        return self._numbers.take(loop, count)

    def refill(self, loop: int, count: int) -> None:
        """Have at least `count` numbers at hand."""
        self._numbers.refill(loop, count)

    def loops(self) -> list[LoopRow]:
        """All loops in the order they were made."""
        names = ("number", "name", "settings", "created", "paused", "apprentice")
        rows = self._read(f"SELECT {', '.join(names)} FROM loops ORDER BY number")
        return [LoopRow(**dict(zip(names, row, strict=True))) for row in rows]

    def states(self) -> list[State]:
        """What replicas tell each other about their loops."""
        return [State(*row) for row in self._read(STATES)]

    def counts(self, loop: int) -> Counts:
        """How much a loop holds."""
        names = ("decisions", "outcomes", "loss_sum", "late", "defaulted", "events", "numbers", "latest")
        rows = self._read(COUNTS, loop, loop)
        if not rows:
            raise LoopGone
        return Counts(**dict(zip(names, rows[0], strict=True)))

    def events_of(self, loop: int, numbers: Sequence[int]) -> dict[int, list[Event]]:
        """All durable events of some decisions, in order; decisions without one are left out."""
        return events_of(self._read, loop, numbers)

    def check(self) -> None:
        """Raises StoreFailure where the store cannot be used."""
        self._read("SELECT 1")

    def close(self) -> None:
        """Let go of everything; nothing is used afterwards."""
        self._election.stop()
        self._numbers.stop()
        self._abandon()
        self._connections.close()

    def _set_up(self) -> None:
        """A store of the present version is only read, so that a start waits for nobody."""
        with self._connections.connected() as connection:
            with self._watchdog.watching(connection):
                current = is_current(connection)
            if not current:
                migrate(connection)

    def _reserved(self, loop: int, count: int) -> int:
        reserving = "UPDATE reserved SET numbers = numbers + ? WHERE loop = ? RETURNING numbers"
        rows = self._read(reserving, count, loop)
        if not rows:
            self._numbers.drop(loop)
            raise LoopGone
        return int(rows[0][0]) - count + 1

    def _abandon(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None


register_store("postgres", PostgresStore)
register_store("postgresql", PostgresStore)
