"""A progress bar over the rows of a log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from manul.logs.batching import Logs, Rows
from manul.logs.log import Log


def with_progress(pieces: Iterable[Rows], log: Logs, *, progress: bool) -> Iterator[Rows]:
    """The same pieces, counted by a progress bar on standard error, with a total if the log is in memory.

    >>> list(with_progress([], [], progress=False))
    []
    """
    if not progress:
        yield from pieces
        return
    from tqdm import tqdm

    batches = [log] if isinstance(log, Log) else log
    total = sum(map(len, batches)) if isinstance(batches, Sequence) else None
    with tqdm(total=total, unit=" rows", unit_scale=True) as bar:
        for rows in pieces:
            yield rows
            bar.update(len(rows))
