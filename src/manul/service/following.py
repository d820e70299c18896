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
        self._seen: dict[int, State] = {}

    def refresh(self) -> None:
        """Take over what the others changed; to be called where the loops learn."""
        states = self._states()
        if any(state.number not in self._known() for state in states):
            self.meet()
        known = self._known()
        for state in states:
            if state.number in known:
                self._follow(known[state.number], state)

    def meet(self) -> None:
        """Take over new loops; from any thread."""
        known = self._known()
        for row in self._store.loops():
            if row.number not in known:
                self._loops.setdefault(row.name, self._restored(row))

    def news(self, loop: Loop) -> bool:
        """Whether there are events that its model does not contain."""
        return loop.number in self._seen and self._seen[loop.number].events > loop.model

    def _known(self) -> dict[int, Loop]:
        return {loop.number: loop for loop in list(self._loops.values())}

    def _follow(self, loop: Loop, state: State) -> None:
        """Only changes count, as what this replica has just changed itself may not be in the state yet."""
        before = self._seen.get(loop.number, loop.row)
        self._seen[loop.number] = state
        if state.paused != before.paused:
            loop.paused = state.paused
        if state.apprentice != before.apprentice:
            loop.apprentice = state.apprentice
        snapshot = self._store.snapshot(loop.number) if state.snapshot > loop.model else None
        if snapshot is not None and snapshot.event > loop.model:
            loop.restore(snapshot)
        if loop.first is None and state.begun:
            loop.meet_first(self._store)
