"""Decision numbers that a replica has reserved: taken without waiting, and fetched by the chunk before they run out."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

from manul.service.errors import Problem
from manul.service.store import StoreFailure

# Half a chunk is left when the next is fetched: few numbers stay unused, and thousands of decisions per second never wait.
SMALLEST, LARGEST = 16, 512
CHUNKS = 3


class Numbers(threading.Thread):
    """Chunks of numbers by loop; `fetch` reserves one and gives its first number. The thread fetches the next one in time."""

    def __init__(self, fetch: Callable[[int, int], int]) -> None:
        super().__init__(name="manul-numbers", daemon=True)
        self._fetch = fetch
        self._chunks: dict[int, list[range]] = {}
        self._sizes: dict[int, int] = {}
        self._due: SimpleQueue[tuple[int, int] | None] = SimpleQueue()
        self._fetching: set[int] = set()
        self._stopping = False
        # Held for a moment only, never while numbers are fetched.
        self._lock = threading.Lock()

    def take(self, loop: int, count: int) -> int | None:
        """The first of some consecutive numbers; None if there are not as many at hand."""
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
        """Fetch numbers, so that `count` are at hand."""
        with self._lock:
            if any(len(chunk) >= count for chunk in self._chunks.get(loop, [])):
                return
            size = max(count, min(2 * self._sizes.get(loop, SMALLEST // 2), LARGEST))
            self._sizes[loop] = min(size, LARGEST)
        first = self._fetch(loop, size)
        with self._lock:
            chunks = [chunk for chunk in self._chunks.get(loop, []) if chunk]
            self._chunks[loop] = [*chunks, range(first, first + size)][-CHUNKS:]

    def drop(self, loop: int) -> None:
        """Forget a loop."""
        with self._lock:
            self._chunks.pop(loop, None)
            self._sizes.pop(loop, None)

    def run(self) -> None:
        """Until stopped."""
        while (due := self._due.get()) is not None and not self._stopping:
            loop, count = due
            try:
                self.refill(loop, count)
            except (StoreFailure, Problem):
                # Whoever needs the numbers fetches them, and is told why that fails.
                pass
            finally:
                with self._lock:
                    self._fetching.discard(loop)

    def stop(self) -> None:
        """Fetch nothing any more."""
        self._stopping = True
        self._due.put(None)
        self.join()

    def _order_more(self, loop: int, count: int) -> None:
        size = self._sizes.get(loop, SMALLEST)
        left = max(len(chunk) for chunk in self._chunks[loop])
        if left < max(min(count, LARGEST), size // 2) and loop not in self._fetching:
            self._fetching.add(loop)
            self._due.put((loop, min(max(count, size), LARGEST)))
