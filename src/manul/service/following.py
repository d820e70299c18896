"""What a replica does to stay like the others: new loops, pauses and promotions, and the snapshots of the one that learns."""

from __future__ import annotations

from collections.abc import Callable

from manul.service.loop import Loop
from manul.service.store import LoopRow, Replicas, State, Store


class Following:
    """Keeps the loops of one replica like those of the others; `restored` makes a loop from its row."""

    def __init__(
        self, store: Store, replicas: Replicas, loops: dict[str, Loop], restored: Callable[[LoopRow], Loop]
    ) -> None:
        self._store, self._loops, self._restored = store, loops, restored
        self._states, self.leads = replicas.states, replicas.leads
        self._events: dict[int, int] = {}

    def refresh(self) -> None:
        """Take over what the others changed."""
        states = self._states()
        known = {loop.number: loop for loop in list(self._loops.values())}
        if any(state.number not in known for state in states):
            self._meet(known)
        for state in states:
            if state.number in known:
                self._follow(known[state.number], state)

    def news(self, loop: Loop) -> bool:
        """Whether there are events that its model does not contain."""
        return self._events.get(loop.number, 0) > loop.model

    def _meet(self, known: dict[int, Loop]) -> None:
        for row in self._store.loops():
            if row.number not in known:
                known[row.number] = self._loops.setdefault(row.name, self._restored(row))

    def _follow(self, loop: Loop, state: State) -> None:
        loop.paused, loop.apprentice = state.paused, state.apprentice
        self._events[loop.number] = state.events
        snapshot = self._store.snapshot(loop.number) if state.snapshot > loop.model else None
        if snapshot is not None and snapshot.event > loop.model:
            loop.restore(snapshot)
        if loop.first is None and state.begun:
            loop.meet_first(self._store)
