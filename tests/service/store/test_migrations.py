"""A store of an older version is brought to the present one, in one transaction; a newer one is refused."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import psycopg
import pytest

from manul.errors import FileError
from manul.service.store import Counts, Event, Snapshot
from manul.service.store.blocks import DecisionRow, encode, pack
from manul.service.store.store_registry import open_store
from tests.service.conftest import on_postgres
from tests.service.store import version1


def block(first, time):
    return pack([DecisionRow(first + n, None, [1.0], None, 0.5, 0.5, time, 0) for n in range(2)])


BLOCKS = [block(1, 10.0), block(3, 11.0), block(5, 12.0), block(7, 13.0)]
OUTCOMES = {1: "loss", 2: "default", 3: "loss", 5: "loss", 6: "loss"}
EVENTS = [(1, number, decision, kind, 0.25, 20.0, None) for number, (decision, kind) in enumerate(OUTCOMES.items(), 1)]
LATE = (1, 6, 2, "late", 0.5, 21.0, None)


def make_sqlite(place):
    """Waits of the first three blocks have ended; one decision, the fourth, was passed over."""
    with closing(sqlite3.connect(place, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(version1.SQLITE)
        archived = (
            b'{"decisions":10,"outcomes":9,"loss_sum":3.5,"late":1,"defaulted":2,"events":0,"numbers":0,"latest":0.5}'
        )
        connection.execute("INSERT INTO loops VALUES (1, 'heat', x'7b7d', 1.0, 1, 0, 6, ?)", (archived,))
        for each in BLOCKS:
            row = (1, each.first, each.last, each.count, each.time, encode(each))
            connection.execute("INSERT INTO blocks VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.executemany("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)", [*EVENTS, LATE])
        connection.execute("INSERT INTO ids VALUES (1, 'mine', 3)")
        connection.execute("INSERT INTO snapshots VALUES (1, 4, x'01', 4, 0, x'02')")


def make_postgres(place):
    with psycopg.connect(place) as connection:
        connection.execute(version1.POSTGRES)
        connection.execute(
            "INSERT INTO loops (name, settings, created, paused, apprentice) VALUES ('heat', '{}', 1, true, false)"
        )
        connection.execute("INSERT INTO heads VALUES (1, 6, 14, 4.75, 2, 3)")
        connection.execute("INSERT INTO reserved VALUES (1, 8)")
        connection.execute("INSERT INTO tallies VALUES (1, 0, 18, 13.0)")
        connection.execute("INSERT INTO firsts VALUES (1, %s)", (encode(BLOCKS[0]),))
        for each in BLOCKS:
            row = (1, each.first, each.last, each.time, each.first in (1, 5), encode(each))
            connection.execute("INSERT INTO blocks VALUES (%s, %s, %s, %s, %s, %s)", row)
        for each in (*EVENTS, LATE):
            connection.execute("INSERT INTO events VALUES (%s, %s, %s, %s, %s, %s, %s)", each)
        connection.execute("INSERT INTO ids VALUES (1, 'mine', 3)")
        connection.execute("INSERT INTO snapshots VALUES (1, 4, '\\x01', 4, 0, '\\x02')")


@pytest.fixture
def old(store):
    """The place of a store of version 1 with data in it."""
    (make_postgres if "://" in store else make_sqlite)(store)
    return store


def test_a_store_of_version_1_has_everything_it_had(old):
    for _ in range(2):
        store = open_store(old)
        (row,) = store.loops()
        assert (row.number, row.name, row.settings, row.paused) == (1, "heat", b"{}", True)
        assert store.counts(1) == Counts(
            decisions=18, outcomes=14, loss_sum=4.75, late=2, defaulted=3, events=6, numbers=8, latest=13.0
        )
        assert store.snapshot(1) == Snapshot(4, b"\x01", 4, 0, b"\x02")
        assert [each.first for each in store.blocks(1, 0, 9)] == [1, 3, 5, 7]
        assert [event.decision for event, _ in store.events(1, 0, 9)] == [1, 2, 3, 5, 6, 2]
        assert store.first_decision(1).number == 1
        store.close()


def test_a_store_of_version_1_goes_on(old):
    store = open_store(old)
    with store.transaction() as transaction:
        assert transaction.numbers(1, ["mine"]) == [3]
        assert [each.number for each in transaction.take_expired(1, 12.5, 100)] == [3, 4]
        (event,) = transaction.add_events(1, [Event(0, 4, "default", 1.0, 30.0, None, '{"parts":{"won":0.0}}')])
        assert event.number == 7
        assert transaction.add_loop("light", b"{}", 2.0, apprentice=False) == 2
    store.refill(1, 1)
    assert store.reserve(1, 1) == 9
    store.close()
    store = open_store(old)
    assert (store.counts(1).events, store.counts(1).outcomes) == (7, 15)
    parts = [event.parts for event, _ in store.events(1, 0, 9)]
    assert parts == [None] * 6 + ['{"parts":{"won":0.0}}']
    store.close()


def run_script(place, statement):
    if "://" in place:
        with psycopg.connect(place) as connection:
            connection.execute(statement)
    else:
        with closing(sqlite3.connect(place)) as connection:
            connection.executescript(statement)


def test_a_newer_version_is_refused_in_one_sentence(store):
    open_store(store).close()
    run_script(store, "UPDATE manul SET version = 99" if "://" in store else "PRAGMA user_version = 99")
    with pytest.raises(FileError, match=r"has version 99, newer than [67]"):
        open_store(store)


def test_a_migration_that_fails_changes_nothing(old):
    run_script(old, "CREATE TABLE deleted (mine integer)")
    for _ in range(2):
        with pytest.raises(FileError, match="deleted"):
            open_store(old)
    run_script(old, "DROP TABLE deleted")
    test_a_store_of_version_1_has_everything_it_had(old)


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_snapshots_from_before_histories_were_kept_can_be_read(old):
    run_script(old, "ALTER TABLE snapshots DROP COLUMN history")
    store = open_store(old)
    assert store.snapshot(1) == Snapshot(4, b"\x01", 4, 0, b"")
    store.close()


@on_postgres
def test_replicas_that_start_at_once_on_an_empty_database_make_the_tables_once(store):
    with ThreadPoolExecutor(8) as pool:
        for started in list(pool.map(open_store, [store] * 8)):
            started.close()


@on_postgres
def test_a_start_beside_a_busy_replica_waits_for_no_lock(store):
    open_store(store).close()
    with psycopg.connect(store) as busy:
        busy.execute("LOCK TABLE blocks, events, ids, heads IN ROW EXCLUSIVE MODE")
        busy.execute("SELECT pg_advisory_lock(120354330799104)")
        open_store(store).close()
