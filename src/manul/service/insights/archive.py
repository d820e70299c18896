"""Moves old decisions from the store to Parquet files, once the snapshots no longer need them.

A file is written to the folder `unfinished`, its decisions are removed from the store in one transaction, and the file is moved
to its place. After a crash, the store shows how far this had come: if it still has the decisions, the file is removed,
otherwise it is moved.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path

from manul.service.engine.group_commit import Writer
from manul.service.engine.loop import Loop
from manul.service.insights import log_export
from manul.service.store import Store
from manul.service.store.blocks import Block
from manul.utils.atomic_files import sync

log = logging.getLogger("manul.service")
UNFINISHED = "unfinished"
# Decisions per file; they are removed in one transaction, during which other writes wait.
ROWS = 20_000


def archive(store: Store, writer: Writer, loop: Loop, folder: Path, before: float) -> list[Path]:
    """Archive decisions made before a time that have outcomes; returns the new files."""
    (folder / UNFINISHED).mkdir(parents=True, exist_ok=True)
    recover(store, loop, folder)
    written = []
    for blocks in batches(removable(store, loop.number, before)):
        name = file_name(loop, blocks[0].first, blocks[-1].last)
        firsts = {block.first for block in blocks}
        ends = {"after": blocks[0].first - 1, "through": blocks[-1].last}
        rows = log_export.write(store, loop, folder / UNFINISHED / name, only=firsts, **ends)
        writer.call(lambda transaction: transaction.forget(loop.number, blocks))  # noqa: B023 - it is called at once
        written.append(finish(folder, name))
        log.info("archived decisions", extra={"loop": loop.name, "rows": rows, "file": name})
    return written


def removable(store: Store, loop: int, before: float) -> Iterator[Block]:
    """Blocks that are old enough and whose decisions all have a density and an outcome that every snapshot contains."""
    snapshots, after = store.snapshots(loop), 0
    while snapshots and (blocks := store.blocks(loop, after, log_export.BLOCKS)):
        for block in blocks:
            if block.time < before and _is_settled(store, loop, block, snapshots[-1]):
                yield block
        if all(block.time >= before for block in blocks):
            return
        after = blocks[-1].last


def batches(blocks: Iterator[Block]) -> Iterator[list[Block]]:
    batch: list[Block] = []
    for block in blocks:
        if batch and sum(each.count for each in batch) + block.count > ROWS:
            yield batch
            batch = []
        batch.append(block)
    if batch:
        yield batch


def file_name(loop: Loop, first: int, last: int) -> str:
    """The name of a file. A loop that was recreated under the same name has another number, and so other files."""
    return f"{loop.name}-{loop.number}-{first:012d}-{last:012d}.parquet"


def finish(folder: Path, name: str) -> Path:
    path = (folder / UNFINISHED / name).rename(folder / name)
    sync(folder)
    return path


def recover(store: Store, loop: Loop, folder: Path) -> None:
    for path in list((folder / UNFINISHED).iterdir()):
        match = re.search(r"-(\d{12,})-(\d{12,})\.parquet", path.name)
        if match is None or not path.name.startswith(file_name(loop, int(match[1]), int(match[2]))):
            continue
        blocks = store.blocks(loop.number, int(match[1]) - 1, 1)
        if path.suffix == ".parquet" and not (blocks and blocks[0].first == int(match[1])):
            finish(folder, path.name)
        else:
            path.unlink()


def _is_settled(store: Store, loop: int, block: Block, snapshot: int) -> bool:
    decisions = block.decisions()
    events = store.events_of(loop, [each.number for each in decisions])
    return all(
        each.density is not None and log_export.outcome(events.get(each.number, [])) is not None for each in decisions
    ) and all(event.number <= snapshot for some in events.values() for event in some)
