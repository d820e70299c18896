"""A loop while it is served: its settings, its model, the feed of events that the model learns, and its decision numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future

from manul.service.engine.decision_numbers import DecisionNumbers
from manul.service.engine.feed import Feed
from manul.service.engine.model import Model
from manul.service.insights.traffic import Traffic
from manul.service.loop_settings import stored_loop
from manul.service.store import Fact, LoopRow, Snapshot, Store
from manul.service.store.blocks import new_epoch


class Loop:
    def __init__(self, row: LoopRow, store: Store) -> None:
        self.row = row
        self.number, self.name, self.created = row.number, row.name, row.created
        self.epoch = new_epoch()
        self.paused, self.apprentice = row.paused, row.apprentice
        self.changed = 0.0  # when this replica paused, resumed or promoted it, by time.monotonic()
        self.settings = stored_loop(row.settings)
        self.model, self.feed, self.traffic = Model(self.settings, stopped=row.stopped), Feed(), Traffic()
        self.space, self.history = self.model.space, self.model.history
        self.numbers = DecisionNumbers(store, row.number, self.model)
        self._store = store

    def set_state(self, *, paused: bool | None = None, apprentice: bool | None = None) -> None:
        self.paused = self.paused if paused is None else paused
        self.apprentice = self.apprentice if apprentice is None else apprentice
        if self.paused:
            self.stop_waiting()

    def read_first(self) -> None:
        """Take the shape of contexts from the first decision in the store."""
        first = self._store.first_decision(self.number)
        self.model.set_first(None if first is None else first.context)

    def note_first(self) -> None:
        """After a decision was stored: the first one determines the shape of contexts."""
        if self.model.first is None:
            self.read_first()

    def restore(self, snapshot: Snapshot) -> None:
        self.model.restore(snapshot)
        self.feed.advance(self.model.event)

    def learn(self, facts: Sequence[Fact], read_model: Callable[[int], bytes]) -> None:
        """Learn the next events, in order; `read_model` reads what is stored under an import or an act of the owner."""
        self.model.learn(facts, read_model)
        self.feed.advance(self.model.event)

    def wait_for(self, event: int) -> Future[None]:
        """A future that completes once the model contains an event, or once the loop stops learning."""
        future = self.feed.wait_for(event)
        self.feed.advance(None if self.paused else self.model.event)
        return future

    def stop_waiting(self) -> None:
        """Complete all futures of `wait_for`: the loop does not learn any more."""
        self.feed.advance(None)
