"""A loop that is deleted is gone at once, cannot come back, and its rows go a few at a time."""

import pytest

from manul.service.store import Event, LoopGone, Snapshot
from manul.service.store.blocks import DecisionRow, pack
from manul.service.store.store_registry import open_store
from tests.service.conftest import on_postgres

TABLES = ("blocks", "ids", "events", "models", "snapshots", "pieces")


def delete(kept):
    with kept.store.transaction() as transaction:
        transaction.delete_loop(kept.loop)


def rows(kept):
    with kept.connected() as connection:
        return [connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in TABLES]


def fill(kept):
    for number in range(1, 41):
        kept.decide(number, ids=[f"o{number}"])
    kept.lose(*range(1, 41))
    with kept.store.transaction() as transaction:
        transaction.add_model(kept.loop, 1, b"model")
        transaction.add_snapshot(kept.loop, Snapshot(1, b"model", 1, 0), keep=2)
        for place in range(5):
            transaction.add_piece(kept.loop, 2, place, b"piece")
        transaction.add_snapshot(kept.loop, Snapshot(2, b"", 1, 0), keep=2, pieces=5)


BLOCK = pack([DecisionRow(99, "late", [1.0], None, 0.5, 0.5, 1.0, 0)])
OPERATIONS = {
    "change_loop": lambda tx, loop: tx.change_loop(loop, paused=True),
    "claim": lambda tx, loop: tx.claim(loop, {"late": 99}),
    "add_block": lambda tx, loop: tx.add_block(loop, BLOCK),
    "decisions": lambda tx, loop: tx.decisions(loop, [1]),
    "events_of": lambda tx, loop: tx.events_of(loop, [1]),
    "add_events": lambda tx, loop: tx.add_events(loop, [Event(0, 1, "late", 0.5, 1.0)]),
    "take_expired": lambda tx, loop: tx.take_expired(loop, 9.0, 10),
    "add_model": lambda tx, loop: tx.add_model(loop, 5, b"model"),
    "add_snapshot": lambda tx, loop: tx.add_snapshot(loop, Snapshot(5, b"model", 1, 0), keep=2),
    "forget": lambda tx, loop: tx.forget(loop, [BLOCK]),
    "delete_loop": lambda tx, loop: tx.delete_loop(loop),
}


def write(store, operation, loop):
    with store.transaction() as transaction:
        operation(transaction, loop)


def test_a_deleted_loop_is_gone_at_once_and_its_number_is_not_given_again(kept):
    fill(kept)
    delete(kept)
    assert kept.store.loops() == []
    assert kept.add_loop("heat") == 2
    assert [row.number for row in kept.store.loops()] == [2]
    kept.loop = 2
    delete(kept)
    kept.reopen()
    assert kept.add_loop("heat") == 3
    assert kept.store.counts(3).decisions == 0


@pytest.mark.parametrize("name", OPERATIONS)
def test_nothing_can_be_written_into_a_deleted_loop(kept, name):
    kept.decide(1, ids=["o1"])
    delete(kept)
    before = rows(kept)
    with pytest.raises(LoopGone):
        write(kept.store, OPERATIONS[name], kept.loop)
    assert rows(kept) == before
    assert kept.add_loop("light") == 2


@on_postgres
@pytest.mark.parametrize("name", OPERATIONS)
def test_a_replica_that_still_serves_a_deleted_loop_is_told(kept, name):
    kept.decide(1, ids=["o1"])
    other = open_store(kept.place)
    delete(kept)
    before = rows(kept)
    with pytest.raises(LoopGone):
        write(other, OPERATIONS[name], kept.loop)
    assert rows(kept) == before
    assert [state.number for state in other.replicas.states()] == []
    other.close()


def reserve(store, loop):
    store.refill(loop, 1)
    return store.reserve(loop, 1)


@pytest.mark.parametrize("ask", [reserve, lambda store, loop: store.counts(loop)], ids=["reserve", "counts"])
def test_a_deleted_loop_has_no_numbers_and_no_counts(kept, ask):
    fill(kept)
    delete(kept)
    with pytest.raises(LoopGone):
        ask(kept.store, kept.loop)


def test_a_reset_is_a_deletion_and_a_new_loop_in_one_transaction(kept):
    fill(kept)
    with kept.store.transaction() as transaction:
        transaction.delete_loop(kept.loop)
        assert transaction.add_loop("heat", b"{}", 2.0, apprentice=False) == 2
        transaction.add_block(2, BLOCK)
    assert kept.store.counts(2).decisions == 1
    assert kept.store.first_decision(2).number == 99


def delete_and_fail(transaction, loop):
    transaction.delete_loop(loop)
    raise ZeroDivisionError


def test_a_deletion_that_is_undone_deletes_nothing(kept):
    fill(kept)
    with pytest.raises(ZeroDivisionError):
        write(kept.store, delete_and_fail, kept.loop)
    assert kept.store.counts(kept.loop).decisions == 40
    kept.decide(41)


def test_purging_removes_a_few_rows_at_a_time_and_those_of_deleted_loops_only(kept):
    fill(kept)
    gone, kept.loop = kept.loop, kept.add_loop("light")
    fill(kept)
    write(kept.store, OPERATIONS["delete_loop"], gone)
    kept.reopen()
    for _ in range(100):
        before = sum(rows(kept))
        with kept.store.transaction() as transaction:
            more = transaction.purge(10)
        assert before - sum(rows(kept)) <= 10
        if not more:
            break
    assert rows(kept) == [40, 40, 40, 1, 2, 5]
    with kept.store.transaction() as transaction:
        assert not transaction.purge(10)
