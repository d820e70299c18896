"""An open store of every kind, and short ways to fill it."""

import sqlite3
from contextlib import closing, contextmanager

import psycopg
import pytest

from manul.service.store import Event
from manul.service.store.blocks import DecisionRow, pack
from manul.service.store.store_registry import open_store


class Kept:
    """A store with one loop. `damage` changes its rows behind its back."""

    def __init__(self, place):
        self.place, self.store = place, open_store(place)
        self.loop = self.add_loop("heat")

    def add_loop(self, name):
        with self.store.transaction() as transaction:
            return transaction.add_loop(name, b"{}", 1.0, apprentice=False)

    def decide(self, first, count=1, *, time=1.0, ids=None, density=0.5):
        """Keeps one block of decisions; returns it."""
        names = ids or [None] * count
        decided = [DecisionRow(first + n, names[n], [1.0 * n], None, 0.5, density, time, 0) for n in range(count)]
        block = pack(decided)
        with self.store.transaction() as transaction:
            transaction.claim(self.loop, {each.id: each.number for each in decided if each.id is not None})
            transaction.add_block(self.loop, block)
        return block

    def lose(self, *numbers, kind="loss"):
        with self.store.transaction() as transaction:
            return transaction.add_events(self.loop, [Event(0, number, kind, 0.25, 2.0) for number in numbers])

    def damage(self, statement, *values):
        with self.connected() as connection:
            connection.execute(statement if "://" not in self.place else statement.replace("?", "%s"), values)

    @contextmanager
    def connected(self):
        if "://" in self.place:
            with psycopg.connect(self.place) as connection:
                yield connection
        else:
            with closing(sqlite3.connect(self.place)) as connection, connection:
                yield connection

    def reopen(self):
        self.store.close()
        self.store = open_store(self.place)


@pytest.fixture
def kept(store):
    found = Kept(store)
    yield found
    found.store.close()
