"""Moves old decisions out of the store into Parquet files, once the snapshots no longer need them."""

from __future__ import annotations

import logging
from pathlib import Path

from manul.service import export
from manul.service.loop import Loop
from manul.service.store import Store
from manul.service.writer import Writer

log = logging.getLogger("manul.service")


def archive(store: Store, writer: Writer, loop: Loop, folder: Path, before: float) -> Path | None:
    """Archives what was decided before a time and is settled; returns the file, if there was anything.

    The file is whole before anything leaves the store; a second try writes the same file again.
    """
    first, last = removable(store, loop.number, before)
    if last == 0:
        return None
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{loop.name}-{first:012d}-{last:012d}.parquet"
    rows = export.write(store, loop, path, through=last)
    writer.call(lambda transaction: transaction.forget(loop.number, last, before))
    log.info("archived", extra={"loop": loop.name, "rows": rows, "file": path.name})
    return path


def removable(store: Store, loop: int, before: float) -> tuple[int, int]:
    """The first and last number of the oldest blocks in which every decision has an outcome that all snapshots contain."""
    snapshots = store.snapshots(loop)
    first = last = 0
    while snapshots and (blocks := store.blocks(loop, last, export.BLOCKS)):
        for block in blocks:
            decided = block.decisions()
            events = store.events_of(loop, [each.number for each in decided])
            settled = all(
                each.density is not None and export.outcome(events.get(each.number, [])) is not None for each in decided
            )
            contained = all(event.number <= snapshots[-1] for some in events.values() for event in some)
            if not (block.time < before and settled and contained):
                return first, last
            first, last = first or block.first, block.last
    return first, last
