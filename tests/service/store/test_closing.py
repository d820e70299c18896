"""A store can be closed while other threads read: their reads fail, and nothing else does."""

import threading
from concurrent.futures import ThreadPoolExecutor

from manul.service.store import StoreFailure
from manul.service.store.store_registry import open_store

ENDLESS = {
    "sqlite": "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n",
    "postgres": "SELECT pg_sleep(60)",
}


def test_reads_fail_once_their_store_is_closed(store):
    for _ in range(10):
        kept = open_store(store)
        begun = threading.Barrier(5)

        def read_until_closed(kept=kept, begun=begun):
            begun.wait()
            while True:
                kept.blocks(1, 0, 1)

        with ThreadPoolExecutor(4) as threads:
            readers = [threads.submit(read_until_closed) for _ in range(4)]
            begun.wait()
            kept.close()
        assert all(isinstance(reader.exception(), StoreFailure) for reader in readers)


def test_closing_ends_a_long_read(store, request):
    """Wherever the read is when the store is closed: not begun yet, or in the middle of an endless query."""
    for _ in range(5):
        kept = open_store(store)
        with ThreadPoolExecutor(1) as thread:
            read = thread.submit(kept._read, ENDLESS[request.node.callspec.params["store"]])
            while not read.running():
                assert not read.done()
            kept.loops()
            kept.close()
        assert isinstance(read.exception(), StoreFailure)
