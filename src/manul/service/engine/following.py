"""Keeps a replica up to date: new and deleted loops, pauses and promotions, and snapshots."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from manul.service.engine.loop import Loop
from manul.service.store import Damaged, Replicas, State, Store

if TYPE_CHECKING:
    from manul.service.engine.engine import Engine

log = logging.getLogger("manul.service")


class Following:
    """Keeps the loops of one replica in line with those of the others."""

    def __init__(self, store: Store, replicas: Replicas, served: Engine) -> None:
        self._store, self._served = store, served
        self._states, self.leads, self.learns = replicas.states, replicas.leads, replicas.learns
        self._seen: dict[int, State] = {}
        self._damaged: dict[int, int] = {}
        self._unreadable: set[int] = set()
        self._finding = threading.Lock()

    def refresh(self) -> None:
        """Apply the changes of the other replicas; called in the learner's thread."""
        began = time.monotonic()
        states = self._states()
        numbers = {state.number for state in states}
        for name, number in self._names().items():
            if number not in numbers and number in self._seen:
                self._served.drop(name, number)
        if not numbers <= set(self._names().values()):
            self.find_new_loops()
        self._seen = {number: state for number, state in self._seen.items() if number in numbers}
        known = {loop.number: loop for loop in list(self._served.loops.values())}
        for state in states:
            if state.number in known:
                self._follow_alone(known[state.number], state, began)

    def _follow_alone(self, loop: Loop, state: State, began: float) -> None:
        """Follow a loop; one that cannot be read keeps its model, and does not hold up the others."""
        try:
            self._follow(loop, state, began)
            loop.read_others(state.numbers)
        except Damaged:
            if loop.number not in self._unreadable:
                log.exception("loop cannot be followed; deciding with the previous model", extra={"loop": loop.name})
            self._unreadable.add(loop.number)

    def find_new_loops(self) -> None:
        """Serve loops that other replicas have created; callable from any thread."""
        with self._finding:
            for row in self._store.loops():
                if row.number not in self._names().values():
                    self._served.take_up(row)

    def has_new_events(self, loop: Loop) -> bool:
        """Whether the store has events that the loop's model does not contain."""
        return loop.number in self._seen and self._seen[loop.number].events > loop.model.event

    def _names(self) -> dict[str, int]:
        broken, loops = list(self._served.broken.values()), list(self._served.loops.values())
        return {row.name: row.number for row, _ in broken} | {loop.name: loop.number for loop in loops}

    def _follow(self, loop: Loop, state: State, began: float) -> None:
        """Apply a state that was read from a time on: it may lack what this replica itself has changed since."""
        self._seen[loop.number] = state
        if loop.changed < began:
            loop.set_state(paused=state.paused, apprentice=state.apprentice)
        loop.model.stop(state.stopped)
        if state.snapshot > max(loop.model.event, self._damaged.get(loop.number, 0)):
            self._restore(loop)
        if loop.model.first is None and state.has_decisions:
            loop.read_first()

    def _restore(self, loop: Loop) -> None:
        snapshot = self._store.snapshot(loop.number)
        if snapshot is None or snapshot.event <= loop.model.event:
            return
        try:
            loop.restore(snapshot)
        except Exception:
            extra = {"loop": loop.name, "event": snapshot.event}
            log.exception(
                "cannot load the newest snapshot; deciding with the previous model until the next one", extra=extra
            )
            self._damaged[loop.number] = snapshot.event
