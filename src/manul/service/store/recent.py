"""A cache of recently written or read blocks: most losses arrive soon after their decisions."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Sequence

from manul.service.store.blocks import Block, DecisionRow

CACHE_BYTES = 8 * 2**20
Find = Callable[[int], Block | None]


class Recent:
    """Blocks by loop and first number; the oldest are evicted first."""

    def __init__(self, limit: int = CACHE_BYTES) -> None:
        self._limit, self._bytes = limit, 0
        self._blocks: dict[tuple[int, int], Block] = {}
        self._firsts: dict[int, list[int]] = {}
        self._lock = threading.Lock()

    def add(self, loop: int, block: Block) -> None:
        with self._lock:
            key = (loop, block.first)
            if key in self._blocks:
                return
            self._blocks[key] = block
            insort(self._firsts.setdefault(loop, []), block.first)
            self._bytes += block.size
            while self._bytes > self._limit and len(self._blocks) > 1:
                self._forget(next(iter(self._blocks)))

    def drop(self, loop: int) -> None:
        with self._lock:
            for first in list(self._firsts.get(loop, [])):
                self._forget((loop, first))
            self._firsts.pop(loop, None)

    def missing(self, loop: int, numbers: Sequence[int]) -> list[int]:
        """The numbers of decisions that are not in cached blocks."""
        return [number for number in numbers if self._block(loop, number) is None]

    def decisions(self, loop: int, numbers: Sequence[int], find: Find) -> list[DecisionRow | None]:
        """Decisions from cached blocks, or from those that `find` reads."""
        decisions: list[DecisionRow | None] = []
        block: Block | None = None
        for number in numbers:
            if block is None or not block.first <= number <= block.last:
                block = self._block(loop, number)
            if block is None:
                block = find(number)
                if block is not None:
                    self.add(loop, block)
            decisions.append(None if block is None else block.decision(number))
        return decisions

    def _block(self, loop: int, number: int) -> Block | None:
        with self._lock:
            firsts = self._firsts.get(loop, [])
            place = bisect_right(firsts, number) - 1
            block = self._blocks[loop, firsts[place]] if place >= 0 else None
        return block if block is not None and number <= block.last else None

    def _forget(self, key: tuple[int, int]) -> None:
        loop, first = key
        self._bytes -= self._blocks.pop(key).size
        firsts = self._firsts[loop]
        del firsts[bisect_left(firsts, first)]
