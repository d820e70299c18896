"""A loop while it is served: its settings, its model, the feed of events that the model learns, and its decision numbers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from manul.agents.player_host import seen_by
from manul.agents.rollout.rollout_progress import Ticket
from manul.service import wire
from manul.service.engine.decision_numbers import DecisionNumbers
from manul.service.engine.feed import Feed
from manul.service.engine.loop_limits import kept
from manul.service.engine.loop_rollout import LoopRollout
from manul.service.engine.model import Model
from manul.service.errors import Unavailable
from manul.service.insights.history import RECENT
from manul.service.insights.traffic import Traffic
from manul.service.loop_settings import agent_settings, stored_loop
from manul.service.store import Fact, LoopRow, Snapshot, Store
from manul.service.store.blocks import new_epoch

log = logging.getLogger("manul.service")
# Decisions of one block: a batch, or those that were written together.
MAX_BLOCK = 20_000
# Events that are read together.
EVENTS = 512


class Loop:
    def __init__(self, row: LoopRow, store: Store) -> None:
        self.row = row
        self.number, self.name, self.created = row.number, row.name, row.created
        self.epoch = new_epoch()
        self.paused, self.apprentice = row.paused, row.apprentice
        self.changed = 0.0  # when this replica paused, resumed or promoted it, by time.monotonic()
        self.settings = stored_loop(row.settings)
        self._replicated = store.replicas is not None
        self.model = Model(self.settings, stopped=row.stopped, replicated=self._replicated)
        self.feed, self.traffic = Feed(), Traffic()
        # The last decision that was read for the rollout; up to which one all were known then, and how often that was so.
        self._read_to, self._known_to, self._reads = 0, -1.0, 0
        self.space, self.history = self.model.space, self.model.history
        self.zone: tzinfo = ZoneInfo(self.settings.zone or "UTC")
        self.is_shared = store.replicas is not None
        self.numbers = DecisionNumbers(store, row.number, self.model)
        self._store = store

    @classmethod
    def recover(cls, row: LoopRow, store: Store) -> Loop:
        """A loop as of its newest snapshot. A snapshot that cannot be read is skipped for an older one or a full replay."""
        loop, snapshot = cls(row, store), store.snapshot(row.number)
        while snapshot is not None:
            try:
                loop.restore(snapshot)
                break
            except Exception:
                extra = {"loop": row.name, "event": snapshot.event}
                log.exception("snapshot cannot be read; using an older one or replaying all events", extra=extra)
                loop, snapshot = cls(row, store), store.snapshot(row.number, before=snapshot.event)
        if snapshot is not None:
            loop.history.add_contexts(store.events(row.number, max(0, snapshot.event - RECENT), RECENT))
        loop.read_first()
        loop.load_in_flight()
        return loop

    def check_account(self) -> None:
        """Refuse decisions of a budget whose account another replica keeps."""
        replicas = self._store.replicas
        if replicas is not None and not replicas.learns(self.number):
            raise Unavailable(
                f"loop {self.name!r} has a budget, whose account another replica keeps; only that one decides. Retry, or ask it.",
                "loop",
            )

    def load_uncounted(self) -> None:
        """Read the decisions that are stored and not counted by the model, as those of a loop that is paused."""
        limits, after = self.model.limits, self.model.event
        while limits is not None and (facts := self._store.events(self.number, after, EVENTS)):
            with self.model.hold():
                limits.take_stored(event for event, _ in facts)
            after = facts[-1][0].number

    def load_in_flight(self) -> None:
        """Read the decisions of the rollout that are not judged; the block that contains the first may start before it."""
        rollout = self.model.rollout
        if rollout is not None:
            stored = self._tickets(rollout, max(0, rollout.progress.next - MAX_BLOCK))
            self.model.load_in_flight(rollout, dict(stored))

    def read_others(self, reserved: int) -> None:
        """Read the decisions of the rollout that other replicas have stored, if numbers up to this one may have been used.

        A decision may be stored after one with a higher number, so all are read from the first one that is missing. Numbers of a
        process that was killed are missing until they are given up, so the same one is looked for less and less often.
        """
        rollout = self.model.rollout
        if rollout is None or not self._replicated:
            return
        self.model.load_in_flight(rollout, {})  # all may have been made here
        known_to = rollout.in_flight.known_to
        if known_to >= reserved:
            return
        self._reads, self._known_to = self._reads + 1 if known_to == self._known_to else 0, known_to
        after = self._read_to
        if self._reads & (self._reads - 1) == 0:  # not at all yet, or a power of two
            block = self._store.block_with(self.number, int(known_to) + 1)
            after = int(known_to) if block is None else block.first - 1
        self.model.load_in_flight(rollout, dict(self._tickets(rollout, after)))

    def _tickets(self, rollout: LoopRollout, after: int) -> Iterator[tuple[int, Ticket | None]]:
        """The tickets of decisions that are not judged, from blocks that start after a number."""
        first = rollout.progress.next
        while blocks := self._store.blocks(self.number, after, 64):
            decisions = (each for block in blocks for each in block.decisions() if each.number >= first)
            yield from ((each.number, rollout.own_ticket(each)) for each in decisions)
            self._read_to = after = blocks[-1].last

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

    def status(self, trouble: str | None, now: float) -> wire.Status:
        """The current status; reads the store."""
        settings = self.settings
        assert settings.losses is not None
        with self.model.hold() as model:  # of one event, not of some that are being learned
            learned, refused, event = model.learned, model.refused, model.event
            width, epsilon = seen_by(model.agent).width, model.agent.current_epsilon
            budget, keep = None, None
            if model.limits is not None:
                budget, keep = model.limits.budget(model.agent, datetime.fromtimestamp(now, UTC)), kept(model.agent)
        counts = self._store.counts(self.number)  # after the model, which contains no event that is not counted here
        return wire.Status(
            name=self.name,
            actions=settings.actions,
            losses=settings.losses,
            rewards=settings.rewards,
            agent=agent_settings(settings),
            combine=settings.combine,
            wait=settings.wait,
            default_loss=settings.default_loss,
            formula=settings.outcome.formula,
            parts=settings.parts,
            hints=settings.hints,
            default_parts=settings.default_parts,
            budget=budget,
            kept=keep,
            apprentice=self.apprentice,
            paused=self.paused,
            created=self.created,
            decisions=counts.decisions,
            learned=learned,
            waiting=counts.decisions - counts.outcomes,
            mean_loss=counts.loss_sum / counts.outcomes if counts.outcomes else None,
            late=counts.late,
            defaulted=counts.defaulted,
            refused=refused,
            events=counts.events,
            model=event,
            width=width,
            epsilon=epsilon,
            trouble=trouble,
        )

    def stop_waiting(self) -> None:
        """Complete all futures of `wait_for`: the loop does not learn any more."""
        self.feed.advance(None)
