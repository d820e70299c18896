"""A loop out of its store: settings, the newest snapshot that can be read, and what contexts look like."""

from __future__ import annotations

import logging

from manul.service.engine.loop import Loop
from manul.service.insights.history import RECENT
from manul.service.store import LoopRow, Store

log = logging.getLogger("manul.service")


def restored(store: Store, row: LoopRow) -> Loop:
    """A loop as its newest snapshot has it; a damaged one is passed over for an older one, or for a full replay."""
    loop, snapshot = Loop(row), store.snapshot(row.number)
    while snapshot is not None:
        try:
            loop.restore(snapshot)
            break
        except Exception:
            extra = {"loop": row.name, "event": snapshot.event}
            log.exception("a snapshot is damaged; an older one or a replay of all events takes its place", extra=extra)
            loop, snapshot = Loop(row), store.snapshot(row.number, before=snapshot.event)
    if snapshot is not None:
        loop.history.meet(store.events(row.number, max(0, snapshot.event - RECENT), RECENT))
    loop.meet_first(store)
    return loop
