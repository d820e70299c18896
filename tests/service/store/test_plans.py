"""No statement of a store reads a share of a table that grows. Every statement is seen, as every method is called."""

import functools
import sqlite3

import psycopg
import pytest

from manul.service.store import DownloadPiece, Event, Lookup, Snapshot, Store, Transaction, sqlite
from manul.service.store.blocks import DecisionRow, pack
from manul.service.store.store_registry import open_store
from tests.service.conftest import on_postgres

FEW, MANY = 400, 4000
WRITES = {
    "add_loop": lambda tx, *_: tx.add_loop("light", b"{}", 1.0, apprentice=False),
    "change_loop": lambda tx, loop, _: tx.change_loop(loop, paused=True),
    "claim": lambda tx, loop, last: tx.claim(loop, {"o7": 7, "new": last + 1}),
    "add_block": lambda tx, loop, last: tx.add_block(loop, block(last + 1)),
    "numbers": lambda tx, loop, last: tx.numbers(loop, [f"o{last}", "o2", "none"]),
    "decisions": lambda tx, loop, last: tx.decisions(loop, [2, last // 2]),
    "events_of": lambda tx, loop, last: [tx.events_of(loop, some) for some in ([last // 2], [2, last // 2, last])],
    "prefetch": lambda tx, loop, last: tx.prefetch([Lookup(loop, ["o3", f"o{last}"], [2, last // 2])]),
    "add_events": lambda tx, loop, last: tx.add_events(loop, [Event(0, last, "late", 0.5, 1.0)]),
    "limits_after": lambda tx, loop, last: tx.limits_after(loop, last),
    "take_expired": lambda tx, loop, last: tx.take_expired(loop, last + 1.0, 3),
    "add_model": lambda tx, loop, last: tx.add_model(loop, last + 1, b"model"),
    "add_snapshot": lambda tx, loop, last: tx.add_snapshot(loop, Snapshot(last, b"model", 1, 0), keep=2),
    "add_piece": lambda tx, loop, last: tx.add_piece(loop, last + 1, 0, b"piece"),
    "add_download": lambda tx, loop, last: tx.add_download(loop, DownloadPiece("new", 0, 1, last + 1.0, b"piece")),
    "trim_downloads": lambda tx, loop, _: tx.trim_downloads(loop, keep=1, most_bytes=9),
    "forget": lambda tx, loop, last: tx.forget(loop, [block(last // 2), block(last // 2 + 1)]),
    "purge": lambda tx, *_: tx.purge(3),
    "delete_loop": lambda tx, loop, _: tx.delete_loop(loop),
}
READS = {
    "reserve": lambda store, loop, _: store.reserve(loop, 1),
    "refill": lambda store, loop, _: store.refill(loop, 10**6),
    "keep_numbers": lambda store, loop, _: store.keep_numbers(loop, ahead=True),
    "loops": lambda store, *_: store.loops(),
    "counts": lambda store, loop, _: store.counts(loop),
    "first_decision": lambda store, loop, _: store.first_decision(loop),
    "events": lambda store, loop, last: store.events(loop, last // 2, 3),
    "blocks": lambda store, loop, last: store.blocks(loop, last // 2, 3),
    "block_with": lambda store, loop, last: store.block_with(loop, last // 2),
    "events_of": lambda store, loop, last: [store.events_of(loop, some) for some in ([last // 2], [2, last])],
    "model": lambda store, loop, _: store.model(loop, 5),
    "downloads": lambda store, loop, _: store.downloads(loop),
    "download": lambda store, loop, _: store.download(loop, "some"),
    "snapshot": lambda store, loop, last: [store.snapshot(loop), store.snapshot(loop, before=last)],
    "snapshots": lambda store, loop, _: store.snapshots(loop),
    "free_bytes": lambda store, *_: store.free_bytes(),
    "replicas": lambda store, *_: store.replicas and store.replicas.states(),
}


def block(number):
    return pack([DecisionRow(number, f"o{number}", [1.0, 2.0], None, 0.5, 0.5, 1.0 * number, 0)])


def filled(place, count):
    """A loop with a history, beside one of the same length that was deleted and one that is still there."""
    store = open_store(place)
    for name in ("gone", "other", "heat"):
        with store.transaction() as transaction:
            loop = transaction.add_loop(name, b"{}", 1.0, apprentice=False)
            transaction.claim(loop, {f"o{number}": number for number in range(1, count + 1)})
            for number in range(1, count + 1):
                transaction.add_block(loop, block(number))
            transaction.add_events(loop, [Event(0, number, "loss", 0.5, 1.0) for number in range(1, count + 1)])
            for event in (1, 2):
                transaction.add_snapshot(loop, Snapshot(event, b"model", 1, 0), keep=2)
            for place in range(2):
                transaction.add_download(loop, DownloadPiece("some", place, 2, 1.0, b"piece"))
    with store.transaction() as transaction:
        transaction.delete_loop(1)
    store.close()
    return 3


def exercise(place, loop, last):
    """Calls every method, from the start of a store to its end."""
    store = open_store(place)
    for call in READS.values():
        call(store, loop, last)
    for call in WRITES.values():
        with store.transaction() as transaction:
            call(transaction, loop, last)
    store.close()


def test_every_method_is_called():
    assert set(WRITES) == public(Transaction)
    assert set(READS) | {"transaction", "transaction_beside", "close"} == public(Store)


def public(protocol):
    return {name for name in vars(protocol) if not name.startswith("_")}


class Counting(sqlite3.Connection):
    """Counts the steps of SQLite's virtual machine by statement: the work of each, on any machine."""

    steps: dict = {}  # noqa: RUF012 - one for all connections, emptied by each run

    def execute(self, statement, *values):
        self.current = statement
        self.set_progress_handler(self.count, 1)
        return super().execute(statement, *values)

    def executemany(self, statement, rows):
        self.current = statement
        self.set_progress_handler(self.count, 1)
        return super().executemany(statement, rows)

    def count(self):
        self.steps[self.current] = self.steps.get(self.current, 0) + 1


def steps(folder, count, monkeypatch):
    place = str(folder / f"{count}.db")
    loop = filled(place, count)
    Counting.steps = {}
    with monkeypatch.context() as patched:
        # The checkpoint of each second, in a thread of its own, comes only if the machine is slow.
        patched.setattr(sqlite, "CHECKPOINT_SECONDS", 3600.0)
        patched.setattr("sqlite3.connect", functools.partial(sqlite3.connect, factory=Counting))
        exercise(place, loop, count)
    return Counting.steps


def test_no_statement_on_sqlite_works_more_with_a_longer_history(tmp_path, monkeypatch):
    few, many = (steps(tmp_path, count, monkeypatch) for count in (FEW, MANY))
    assert len(many) > 40
    assert {each: (few[each], many[each]) for each in many if many[each] > 1.3 * few[each] + 50} == {}


def visited(plan):
    """The rows that a plan has looked at."""
    removed = sum(plan.get(f"Rows Removed by {how}", 0) for how in ("Filter", "Index Recheck", "Join Filter"))
    rows = (plan["Actual Rows"] + removed) * plan["Actual Loops"] if {"Relation Name", "Index Name"} & set(plan) else 0
    return rows + sum(visited(each) for each in plan.get("Plans", []))


class Explaining:
    """Stands for `psycopg.Connection.execute`: explains each statement, undoes that, and runs it."""

    def __init__(self):
        self.plans, self.execute = {}, psycopg.Connection.execute

    def __call__(self, connection, query, values=None):
        text = query.decode() if isinstance(query, bytes) else query
        if text.split()[0] in ("SELECT", "INSERT", "UPDATE", "DELETE"):
            begin, undo = ("SAVEPOINT explained", "ROLLBACK TO explained")
            if connection.pgconn.pipeline_status == psycopg.pq.PipelineStatus.OFF:
                begin, undo = "BEGIN", "ROLLBACK"
            self.execute(connection, begin)
            explained = self.execute(connection, b"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) " + text.encode(), values)
            self.plans[text] = explained.fetchone()[0][0]["Plan"]
            self.execute(connection, undo)
        return self.execute(connection, query, values)


@pytest.mark.parametrize("analyzed", [False, True], ids=["before ANALYZE", "after ANALYZE"])
@on_postgres
def test_no_statement_on_postgres_looks_at_more_than_it_needs(store, monkeypatch, analyzed):
    loop = filled(store, MANY)
    if analyzed:
        with psycopg.connect(store, autocommit=True) as connection:
            connection.execute("ANALYZE")
    explaining = Explaining()
    with monkeypatch.context() as patched:
        patched.setattr(
            psycopg.Connection, "execute", lambda connection, query, values=None: explaining(connection, query, values)
        )
        exercise(store, loop, MANY)
    rows = {text: visited(plan) for text, plan in explaining.plans.items()}
    pages = {text: plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] for text, plan in explaining.plans.items()}
    assert len(rows) > 40
    assert {text: (rows[text], pages[text]) for text in rows if rows[text] > 40 or pages[text] > 100} == {}
