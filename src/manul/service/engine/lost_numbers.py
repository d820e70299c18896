"""What a rollout does not wait for any more: decisions whose patience has ended, and numbers that no decision has, because the
process that took them was killed before it stored one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from manul.service.engine.group_commit import Operation, Writer
from manul.service.engine.loop import Fact, Loop
from manul.service.engine.write_operations import add_voids
from manul.service.store import OUTCOMES, Event, Kind, Transaction

SECONDS = 60.0  # much longer than a decision can wait for the store
MOST = 1000  # numbers that are looked up together
MOST_OVERDUE = 5000  # decisions that are left out together
SETTLED: tuple[Kind, ...] = (*OUTCOMES, "void", "overdue")


class VoidLost(Operation):
    """Stores which of some numbers no decision has."""

    def __init__(
        self, loop: Loop, numbers: Sequence[int], time: float, learn: Callable[[Loop, list[Fact]], None]
    ) -> None:
        self._loop, self._numbers, self._time, self._learn = loop, numbers, time, learn
        self._facts: list[Fact] = []

    def apply(self, transaction: Transaction) -> None:
        found = transaction.decisions(self._loop.number, self._numbers)
        lost = [number for number, decision in zip(self._numbers, found, strict=True) if decision is None]
        self._facts = add_voids(transaction, self._loop, lost if self._loop.rollout is not None else [], self._time)

    def on_commit(self) -> None:
        if self._facts:
            self._learn(self._loop, self._facts)

    def answer(self, error: Exception | None) -> None:
        """Nobody waits; if they could not be stored, they are looked up again."""


class LeaveOut(Operation):
    """Stores which of some decisions are overdue: those made before a time that have no outcome."""

    def __init__(
        self,
        loop: Loop,
        numbers: Sequence[int],
        time: float,
        learn: Callable[[Loop, list[Fact]], None],
        *,
        made_before: float,
    ) -> None:
        self._loop, self._numbers, self._time, self._learn = loop, numbers, time, learn
        self._made_before = made_before
        self._facts: list[Fact] = []

    def apply(self, transaction: Transaction) -> None:
        """Store them. A number without a decision may get one yet."""
        self._facts = []
        first = transaction.decisions(self._loop.number, self._numbers[:1])[0]
        if first is not None and first.time > self._made_before:
            return  # and so are the later ones
        found = transaction.decisions(self._loop.number, self._numbers)
        made = {each.number: each for each in found if each is not None and each.time <= self._made_before}
        known = transaction.events_of(self._loop.number, list(made))
        for number, events in known.items():
            if any(event.kind in SETTLED for event in events):
                del made[number]
        events = [Event(0, number, "overdue", 0.0, self._time) for number in made]
        if events:
            stored = transaction.add_events(self._loop.number, events)
            self._facts = list(zip(stored, made.values(), strict=True))

    def on_commit(self) -> None:
        if self._facts:
            self._learn(self._loop, self._facts)

    def answer(self, error: Exception | None) -> None:
        """Nobody waits; if they could not be stored, they are looked up again."""


class LostNumbers:
    """Looks up the numbers that hold up rollouts."""

    def __init__(self, writer: Writer, learn: Callable[[Loop, list[Fact]], None]) -> None:
        self._writer, self._learn = writer, learn
        self._waiting: dict[int, tuple[int, float]] = {}

    def look(self, loops: Iterable[Loop], now: float) -> None:
        """Look at the rollouts of some loops; call it every few seconds."""
        held_up = {loop.number: loop for loop in loops if loop.rollout is not None and loop.rollout.progress.arrived}
        self._waiting = {number: since for number, since in self._waiting.items() if number in held_up}
        for number, loop in held_up.items():
            with loop.lock:
                missing = loop.rollout.progress.missing if loop.rollout is not None else range(0)
            self._leave_out(loop, now)
            first, since = self._waiting.setdefault(number, (missing.start, now))
            if first != missing.start:
                self._waiting[number] = missing.start, now
            elif now - since >= SECONDS:
                self._waiting[number] = first, now
                self._writer.submit(VoidLost(loop, missing[:MOST], now, self._learn))

    def _leave_out(self, loop: Loop, now: float) -> None:
        with loop.lock:
            if loop.rollout is None or loop.paused:
                return
            progress, seconds = loop.rollout.progress, loop.rollout.plan.patience_seconds
            overdue = progress.overdue(MOST_OVERDUE)
            late = [] if seconds is None else progress.waiting(progress.latest, MOST_OVERDUE)
        if overdue:
            self._writer.submit(LeaveOut(loop, overdue, now, self._learn, made_before=now))
        if late and seconds is not None:
            self._writer.submit(LeaveOut(loop, late, now, self._learn, made_before=now - seconds))
