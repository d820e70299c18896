"""The slow part of the dashboard, in a thread: reports and findings on the latest rows, at most every few seconds."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from manul.service import wire
from manul.service.engine.loop import Loop
from manul.service.insights import loop_report
from manul.service.store import Store

log = logging.getLogger("manul.service")
# The shortest time between two examinations of a loop.
SECONDS = 15.0


class Examinations:
    """The latest examination of each loop that a dashboard shows."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._store, self._now = store, now
        self._latest: dict[int, wire.Examined] = {}
        self._running: dict[int, asyncio.Task[None]] = {}

    def latest(self, loop: Loop) -> wire.Examined | None:
        """The latest examination; if it is outdated, the next one is started."""
        latest = self._latest.get(loop.number)
        changed = latest is None or latest.report.model != loop.model.event
        old = latest is None or self._now() - latest.time > (SECONDS if latest.report.rows else 1.0)
        if changed and old and loop.number not in self._running:
            self._running[loop.number] = asyncio.create_task(self._examine(loop))
        return latest

    async def _examine(self, loop: Loop) -> None:
        try:
            snapshot = await asyncio.to_thread(loop.model.snapshot)
            time = self._now()
            self._latest[loop.number] = await asyncio.to_thread(loop_report.examine, self._store, loop, snapshot, time)
        except Exception:
            log.exception("could not compute the report of a loop; the previous one stays", extra={"loop": loop.name})
        finally:
            del self._running[loop.number]
