"""Restores a loop from the store: settings, newest readable snapshot, and shape of contexts."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from manul.service.engine.loop import Loop
from manul.service.insights.history import RECENT
from manul.service.store import LoopRow, Store
from manul.service.store.blocks import DecisionRow

log = logging.getLogger("manul.service")
# Decisions of one block: a batch, or those that were written together.
MAX_BLOCK = 20_000


def restore_loop(store: Store, row: LoopRow) -> Loop:
    """Restore a loop from its newest snapshot. A damaged snapshot is skipped for an older one or a full replay."""
    loop, snapshot = Loop(row, store), store.snapshot(row.number)
    while snapshot is not None:
        try:
            loop.restore(snapshot)
            break
        except Exception:
            extra = {"loop": row.name, "event": snapshot.event}
            log.exception("snapshot is damaged; using an older one or replaying all events", extra=extra)
            loop, snapshot = Loop(row, store), store.snapshot(row.number, before=snapshot.event)
    if snapshot is not None:
        loop.history.add_contexts(store.events(row.number, max(0, snapshot.event - RECENT), RECENT))
    loop.read_first()
    load_in_flight(store, loop)
    return loop


def load_in_flight(store: Store, loop: Loop) -> None:
    """Read the decisions of the loop's rollout that are not judged."""
    if loop.model.rollout is not None:
        loop.model.load_in_flight(_recent_decisions(store, loop, loop.model.rollout.progress.next))


def add_decisions_of_others(store: Store, loop: Loop) -> None:
    """Read the decisions of other replicas that are not judged."""
    rollout = loop.model.rollout
    if rollout is not None:
        reserved = store.counts(loop.number).numbers
        decisions = _recent_decisions(store, loop, rollout.progress.next)
        loop.model.join_in_flight(rollout, {each.number: rollout.own_ticket(each) for each in decisions}, reserved)


def _recent_decisions(store: Store, loop: Loop, first: int) -> Iterator[DecisionRow]:
    """The decisions from a number on; the block that contains it may start before it."""
    after = max(0, first - MAX_BLOCK)
    while blocks := store.blocks(loop.number, after, 64):
        yield from (each for block in blocks for each in block.decisions() if each.number >= first)
        after = blocks[-1].last
