"""Decision numbers that a replica has reserved in chunks, fetched before they run out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from manul.service.errors import Problem
from manul.service.store import StoreFailure

# The next chunk is fetched when half is left. Sizes adapt to the load, so few numbers stay unused and busy loops do not wait.
MIN_CHUNK, MAX_CHUNK = 16, 512
CHUNKS_PER_LOOP = 3


class Numbers(threading.Thread):
    """Chunks of numbers by loop, fetched by this thread; `fetch` reserves a chunk and returns its first number."""

    def __init__(self, fetch: Callable[[int, int], int]) -> None:
        super().__init__(name="manul-numbers", daemon=True)
        self._fetch = fetch
        self._chunks: dict[int, list[range]] = {}
        self._sizes: dict[int, int] = {}
        self._none_ahead: set[int] = set()
        self._dropped: dict[int, list[range]] = {}
        self._due: SimpleQueue[tuple[int, int] | None] = SimpleQueue()
        self._fetching: set[int] = set()
        self._stopping = False
        # Never held while numbers are fetched.
        self._lock = threading.Lock()

    def take(self, loop: int, count: int) -> int | None:
        """Take consecutive numbers; returns the first, or None if too few are at hand."""
        with self._lock:
            chunks = self._chunks.get(loop, [])
            place = next((place for place, chunk in enumerate(chunks) if len(chunk) >= count), None)
            if place is None:
                return None
            first = chunks[place].start
            chunks[place] = chunks[place][count:]
            self._order_more(loop, count)
            return first

    def refill(self, loop: int, count: int) -> None:
        """Fetch numbers until at least `count` are at hand."""
        self._refill(loop, count, needed=count)

    def _refill(self, loop: int, count: int, *, needed: int) -> None:
        """The same; if no numbers are kept ahead by then, only as many are kept as are needed."""
        with self._lock:
            if any(len(chunk) >= count for chunk in self._chunks.get(loop, [])):
                return
            size = max(count, min(2 * self._sizes.get(loop, MIN_CHUNK // 2), MAX_CHUNK))
            self._sizes[loop] = min(size, MAX_CHUNK)
            size = count if loop in self._none_ahead else size
        first = self._fetch(loop, size)
        with self._lock:
            # More were ordered than are needed if `keep` was called meanwhile.
            end = first + (needed if loop in self._none_ahead else size)
            chunks = [chunk for chunk in self._chunks.get(loop, []) if chunk] + [range(first, end)]
            self._chunks[loop] = chunks[-CHUNKS_PER_LOOP:]
            self._drop(loop, [*chunks[:-CHUNKS_PER_LOOP], range(end, first + size)])

    def keep(self, loop: int, *, ahead: bool, left: bool = True) -> list[range]:
        """Fetch chunks, or only as many numbers as are needed; returns the numbers that no decision gets because of this.

        Numbers that were needed, and are left, stay at hand or not.
        """
        if ahead != (loop in self._none_ahead) and loop not in self._dropped and left:
            return []
        with self._lock:
            if ahead:
                self._none_ahead.discard(loop)
                self._dropped.pop(loop, None)
            elif loop not in self._none_ahead or not left:
                self._none_ahead.add(loop)
                self._drop(loop, self._chunks.pop(loop, []))
            return self._dropped.pop(loop, [])

    def _drop(self, loop: int, chunks: list[range]) -> None:
        if loop in self._none_ahead and any(chunks):
            self._dropped.setdefault(loop, []).extend(chunk for chunk in chunks if chunk)

    def drop(self, loop: int) -> None:
        with self._lock:
            self._none_ahead.discard(loop)
            self._dropped.pop(loop, None)
            self._chunks.pop(loop, None)
            self._sizes.pop(loop, None)

    def run(self) -> None:
        while (due := self._due.get()) is not None and not self._stopping:
            loop, count = due
            try:
                self._refill(loop, count, needed=0)
            except (StoreFailure, Problem):
                # The request that needs the numbers will fetch them itself, and report the failure.
                pass
            finally:
                with self._lock:
                    self._fetching.discard(loop)

    def stop(self) -> None:
        self._stopping = True
        self._due.put(None)
        self.join()

    def _order_more(self, loop: int, count: int) -> None:
        if loop in self._none_ahead:
            return
        size = self._sizes.get(loop, MIN_CHUNK)
        left = max(len(chunk) for chunk in self._chunks[loop])
        if left < max(min(count, MAX_CHUNK), size // 2) and loop not in self._fetching:
            self._fetching.add(loop)
            self._due.put((loop, min(max(count, size), MAX_CHUNK)))
