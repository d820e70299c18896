"""Small batches of a log, such as single rows, joined into larger ones: each pass over many logs costs time per log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from manul.logs.log import BATCH, Batches, Log

Logs = Log | Iterable[Log]
SMALL = 1024  # rows: batches of more are left as they are


def join_small(log: Logs) -> Logs:
    """A log whose small batches are joined if they are alike; iterators and files stay as they are.

    >>> import numpy as np
    >>> row = Log(np.zeros((1, 2), np.float32), np.ones(1), np.ones(1), np.ones(1))
    >>> [len(batch) for batch in join_small([row] * 1000)]
    [1000]
    """
    return log if isinstance(log, Log | Batches | Iterator) else _Joined(log)


class _Joined:
    def __init__(self, log: Iterable[Log]) -> None:
        self._log = log

    def __iter__(self) -> Iterator[Log]:
        waiting: list[Log] = []
        rows = 0
        for batch in self._log:
            small = len(batch) <= SMALL
            if waiting and not (small and rows < BATCH and _alike(waiting[0], batch)):
                yield Log.concat(waiting)
                waiting, rows = [], 0
            if small:
                waiting.append(batch)
                rows += len(batch)
            else:
                yield batch
        if waiting:
            yield Log.concat(waiting)


def _alike(one: Log, other: Log) -> bool:
    return bool(one.table.schema.equals(other.table.schema, check_metadata=True))
