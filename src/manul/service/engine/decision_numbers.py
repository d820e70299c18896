"""The numbers of a loop's decisions: reserved in the store, and used by a decision, void, or lost."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING

from manul.service.store import Store

if TYPE_CHECKING:
    from manul.service.engine.model import Model

LOST_SECONDS = 60.0  # much longer than a decision can wait for the store
MOST_LOST = 1000  # numbers that are looked up together
MOST_OVERDUE = 5000  # decisions that are left out together


class DecisionNumbers:
    """Numbers of one loop. A rollout judges decisions in their order, so it must hear of each number that no decision gets."""

    def __init__(self, store: Store, loop: int, model: Model) -> None:
        self._store, self._loop, self._model = store, loop, model
        self._void: deque[int] = deque()
        self._missing = (0, 0.0)

    def take(self, count: int) -> int | None:
        """Reserve consecutive numbers if they are at hand; returns the first."""
        self.void_unused()
        return self._store.reserve(self._loop, count)

    async def reserve(self, count: int) -> int:
        """Reserve consecutive numbers, reading more from the store if necessary."""
        while (number := self.take(count)) is None:
            await asyncio.to_thread(self._store.refill, self._loop, count)
        return number

    def void_unused(self, *, left: bool = True) -> None:
        """Void the numbers that were at hand, if a rollout has begun: it needs numbers in the order of decisions. Call it now and then
        with `left` as False, because other replicas count numbers that are left as decisions."""
        none_ahead = self._model.rollout is not None
        for numbers in self._store.keep_numbers(self._loop, ahead=not none_ahead, left=left or not none_ahead):
            self.void(numbers)

    def void(self, numbers: Sequence[int]) -> None:
        """Note numbers that no decision has got, so that a rollout does not wait for their losses."""
        rollout = self._model.rollout
        if rollout is not None:
            self._model.note_unused(numbers)
            self._void.extend(number for number in numbers if number >= rollout.progress.next)

    @property
    def has_void(self) -> bool:
        return bool(self._void)

    def take_void(self) -> list[int]:
        numbers = []
        while self._void:
            numbers.append(self._void.popleft())
        return numbers

    def lost(self, now: float) -> Sequence[int]:
        """Numbers that have held up the rollout for long: the process that took them may have been killed.

        Call it every few seconds.
        """
        with self._model.hold() as model:
            held_up = model.rollout is not None and bool(model.rollout.progress.arrived)
            missing = model.rollout.progress.missing if model.rollout is not None and held_up else range(0)
        first, since = self._missing
        if not held_up or first != missing.start:
            self._missing = missing.start, now
            return ()
        if now - since < LOST_SECONDS:
            return ()
        self._missing = first, now
        return missing[:MOST_LOST]

    def overdue(self) -> tuple[Sequence[int], Sequence[int], float | None]:
        """Decisions whose losses the rollout does not wait for, those that are not judged, and the seconds of its patience."""
        with self._model.hold() as model:
            if model.rollout is None or not model.rollout.progress.arrived:
                return (), (), None
            progress, seconds = model.rollout.progress, model.rollout.plan.patience_seconds
            late = [] if seconds is None else progress.waiting(progress.latest, MOST_OVERDUE)
            return progress.overdue(MOST_OVERDUE), late, seconds
