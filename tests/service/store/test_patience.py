"""No call of a store hangs: with a server that is frozen, or a file that is locked, each ends with StoreFailure."""

import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from manul.service.store import Event, StoreFailure, connections, sqlite, watchdog
from manul.service.store.store_registry import open_store
from tests.service.conftest import on_postgres

SECONDS = 30  # a call that hangs takes as long as the server is frozen; on a busy machine, one that fails takes longer
on_sqlite = pytest.mark.parametrize("store", ["sqlite"], indirect=True)


USUAL = [
    (each, name, getattr(each, name))
    for each, name in ((watchdog, "ANSWER_SECONDS"), (connections, "CONNECT_SECONDS"), (sqlite, "BUSY_SECONDS"))
]


@pytest.fixture(autouse=True)
def _usual(_patient, monkeypatch):
    """The limits of a service."""
    for limit in USUAL:
        monkeypatch.setattr(*limit)


def writing(store, loop):
    with store.transaction() as transaction:
        transaction.add_events(loop, [Event(0, 0, "late", 0.0, 0.0)])


READS = {
    "refill": lambda store, loop: (store.reserve(loop, 10**6), store.refill(loop, 10**6)),
    "loops": lambda store, _: store.loops(),
    "counts": lambda store, loop: store.counts(loop),
    "first_decision": lambda store, loop: store.first_decision(loop),
    "events": lambda store, loop: store.events(loop, 0, 1),
    "blocks": lambda store, loop: store.blocks(loop, 0, 1),
    "events_of": lambda store, loop: store.events_of(loop, [1]),
    "model": lambda store, loop: store.model(loop, 1),
    "snapshot": lambda store, loop: store.snapshot(loop),
    "snapshots": lambda store, loop: store.snapshots(loop),
    "states": lambda store, _: store.replicas.states(),
}


def timed(call, *values):
    """How long it took to fail."""
    began = time.monotonic()
    with pytest.raises(StoreFailure):
        call(*values)
    return time.monotonic() - began


@on_postgres
def test_every_call_on_a_frozen_server_ends(kept, postgres):
    for call in READS.values():
        call(kept.store, kept.loop)
    writing(kept.store, kept.loop)
    with ThreadPoolExecutor(len(READS) + 1) as pool, postgres.frozen():
        waiting = [pool.submit(timed, call, kept.store, kept.loop) for call in (*READS.values(), writing)]
        assert max(each.result() for each in waiting) < SECONDS
        began = time.monotonic()
        kept.store.close()
        assert time.monotonic() - began < SECONDS
    kept.store = open_store(kept.place)
    writing(kept.store, kept.loop)


@on_postgres
def test_a_server_that_is_frozen_at_the_start_is_refused(store, postgres):
    with postgres.frozen():
        began = time.monotonic()
        with pytest.raises(Exception, match="cannot connect to the PostgreSQL store"):
            open_store(store)
        assert time.monotonic() - began < SECONDS


@on_postgres
def test_a_replica_that_is_stopped_inside_a_transaction_does_not_stop_the_others(kept):
    other = open_store(kept.place)
    try:
        with kept.store.transaction() as transaction:
            transaction.events_of(kept.loop, [1])
            assert timed(writing, other, kept.loop) < SECONDS
        writing(other, kept.loop)
    finally:
        other.close()


@on_sqlite
def test_a_file_that_another_program_locks_refuses_writes_soon_and_reads_go_on(kept):
    with closing(sqlite3.connect(kept.place, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert timed(writing, kept.store, kept.loop) < SECONDS
        assert [row.name for row in kept.store.loops()] == ["heat"]
        began = time.monotonic()
        kept.store.close()
        assert time.monotonic() - began < SECONDS
    kept.store = open_store(kept.place)
    writing(kept.store, kept.loop)


@on_postgres
def test_reserve_never_waits_and_refill_brings_numbers(kept, postgres):
    assert kept.store.reserve(kept.loop, 10) is None
    kept.store.refill(kept.loop, 10)
    with postgres.frozen():
        assert [kept.store.reserve(kept.loop, 1) for _ in range(10)] == list(range(1, 11))
        assert kept.store.reserve(kept.loop, 10**6) is None


@on_sqlite
def test_a_file_always_has_numbers(kept):
    assert [kept.store.reserve(kept.loop, count) for count in (1, 10**6, 1)] == [1, 2, 10**6 + 2]


@on_postgres
def test_a_replica_never_runs_out_of_numbers_if_a_chunk_comes_within_four_decisions(kept):
    kept.store.refill(kept.loop, 1)
    given = []
    for number in range(5000):
        given.append(kept.store.reserve(kept.loop, 1))
        while number % 4 == 0 and kept.store._numbers._fetching:
            time.sleep(0)
    assert None not in given
    assert len(set(given)) == 5000


@on_postgres
def test_two_replicas_never_get_the_same_number(kept):
    other = open_store(kept.place)
    given = []
    for count in (1, 3, 50, 1, 2000, 1, 17) * 20:
        for store in (kept.store, other):
            first = store.reserve(kept.loop, count)
            while first is None:
                store.refill(kept.loop, count)
                first = store.reserve(kept.loop, count)
            given += range(first, first + count)
    other.close()
    assert len(set(given)) == len(given)
