"""Restores a loop from the store: settings, newest readable snapshot, and shape of contexts."""

from __future__ import annotations

import logging

from manul.service.engine.loop import Loop
from manul.service.insights.history import RECENT
from manul.service.store import LoopRow, Store

log = logging.getLogger("manul.service")


def restore_loop(store: Store, row: LoopRow) -> Loop:
    """Restore a loop from its newest snapshot. A damaged snapshot is skipped for an older one or a full replay."""
    loop, snapshot = Loop(row), store.snapshot(row.number)
    while snapshot is not None:
        try:
            loop.restore(snapshot)
            break
        except Exception:
            extra = {"loop": row.name, "event": snapshot.event}
            log.exception("snapshot is damaged; using an older one or replaying all events", extra=extra)
            loop, snapshot = Loop(row), store.snapshot(row.number, before=snapshot.event)
    if snapshot is not None:
        loop.history.add_contexts(store.events(row.number, max(0, snapshot.event - RECENT), RECENT))
    loop.read_first(store)
    return loop
