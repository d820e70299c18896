"""Numbers that a rollout waits for although no decision has them: the process that took them was killed before it stored one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from manul.service.engine.group_commit import Operation, Writer
from manul.service.engine.loop import Fact, Loop
from manul.service.engine.write_operations import add_voids
from manul.service.store import Transaction

SECONDS = 60.0  # much longer than a decision can wait for the store
MOST = 1000  # numbers that are looked up together


class VoidLost(Operation):
    """Stores which of some numbers no decision has."""

    def __init__(
        self, loop: Loop, numbers: Sequence[int], time: float, learn: Callable[[Loop, list[Fact]], None]
    ) -> None:
        self._loop, self._numbers, self._time, self._learn = loop, numbers, time, learn
        self._facts: list[Fact] = []

    def apply(self, transaction: Transaction) -> None:
        """Store them, unless the rollout has ended."""
        found = transaction.decisions(self._loop.number, self._numbers)
        lost = [number for number, decision in zip(self._numbers, found, strict=True) if decision is None]
        self._facts = add_voids(transaction, self._loop, lost if self._loop.rollout is not None else [], self._time)

    def on_commit(self) -> None:
        """Pass them to the learner."""
        if self._facts:
            self._learn(self._loop, self._facts)

    def answer(self, error: Exception | None) -> None:
        """Nobody waits; if they could not be stored, they are looked up again."""


class LostNumbers:
    """Looks up the numbers that have held up a rollout for a while."""

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
            first, since = self._waiting.setdefault(number, (missing.start, now))
            if first != missing.start:
                self._waiting[number] = missing.start, now
            elif now - since >= SECONDS:
                self._waiting[number] = first, now
                self._writer.submit(VoidLost(loop, missing[:MOST], now, self._learn))
