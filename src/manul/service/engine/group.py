"""Groups: the requests to one loop that arrive while its previous group is written are drawn and written together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import perf_counter

from manul.service.configuration import Limits
from manul.service.engine.group_commit import Writer
from manul.service.engine.loop import Loop
from manul.service.engine.requests import Decide, Observe, Request, draw
from manul.service.engine.write_operations import Learn, WriteGroup
from manul.service.store.blocks import Block

log = logging.getLogger("manul.service")
# Decisions or losses after which a group is full, and begins while others are written: it would gain little by more. A batch may
# exceed it, but a block has less than MAX_BLOCK decisions.
FULL = 512
POLL_SECONDS = 0.01


class Queue:
    """The requests to a loop that wait for its next group, their size, and the number of groups that are written or will begin."""

    __slots__ = ("groups", "size", "waiting")

    def __init__(self) -> None:
        self.waiting: list[Request] = []
        self.size = self.groups = 0


class Groups:
    """Writes requests in groups. Unless they are full, a loop has one at a time, so that they grow with the load.

    Called in the event loop.
    """

    def __init__(self, writer: Writer, limits: Limits, now: Callable[[], float], learn: Learn) -> None:
        self._writer, self._limits, self._now, self._learn = writer, limits, now, learn
        self._queues: dict[Loop, Queue] = {}  # of loops that have a group
        self._reserving: set[asyncio.Task[None]] = set()

    def add(self, loop: Loop, request: Request) -> None:
        request.began = perf_counter()
        queue = self._queues.get(loop)
        if queue is None:
            queue = self._queues[loop] = Queue()
        queue.waiting.append(request)
        before, queue.size = queue.size, queue.size + request.size
        if queue.groups == 0 or queue.size // FULL > before // FULL:
            queue.groups += 1
            asyncio.get_running_loop().call_soon(self._flush, loop)

    async def finish(self) -> None:
        """Wait until everything is answered."""
        while self._queues:
            await asyncio.sleep(POLL_SECONDS)

    def _flush(self, loop: Loop) -> None:
        """Begin with the next group of a loop, if there is one; beside another group, only with a full one."""
        queue = self._queues[loop]
        waiting = queue.waiting
        if not waiting or (queue.groups > 1 and queue.size < FULL):
            queue.groups -= 1
            if queue.groups == 0:
                del self._queues[loop]
            return
        size = count = 0
        while count < len(waiting) and size < FULL:
            size += waiting[count].size
            count += 1
        queue.waiting, queue.size = waiting[count:], queue.size - size
        requests: list[Request] = []
        for each in waiting[:count]:
            try:
                each.check(loop, self._limits)
                requests.append(each)
            except Exception as error:
                _respond(each, error)
        needed = sum(each.count for each in requests)
        try:
            first = loop.numbers.take(needed) if needed else 0
            if first is not None:
                self._write(loop, requests, first)
                return
        except Exception as error:
            self._finish(loop, requests, error)
            return
        task = asyncio.create_task(self._reserve(loop, requests, needed))
        self._reserving.add(task)
        task.add_done_callback(self._reserving.discard)

    async def _reserve(self, loop: Loop, requests: list[Request], needed: int) -> None:
        """Write requests once their numbers have been read from the store."""
        try:
            self._write(loop, requests, await loop.numbers.reserve(needed))
        except Exception as error:
            self._finish(loop, requests, error)

    def _write(self, loop: Loop, requests: Sequence[Request], first: int) -> None:
        time, deciding = self._now(), [each for each in requests if isinstance(each, Decide)]
        others = [each for each in requests if not isinstance(each, Decide)]
        block, drawn = self._draw(loop, deciding, first, time)
        first += sum(each.count for each in deciding)
        for each in others:
            if isinstance(each, Observe):
                each.make(loop, first, time)
                first += each.count
        requests = [*drawn, *others]
        finish = partial(self._finish, loop, requests)
        if requests:
            self._writer.submit(WriteGroup(loop, requests, block, time, self._learn, finish))
        else:
            finish(None)

    def _draw(
        self, loop: Loop, requests: Sequence[Decide], first: int, time: float
    ) -> tuple[Block | None, Sequence[Decide]]:
        """Draw decisions; also returns the requests that are not refused."""
        if len(requests) > 1 and loop.model.rollout is None:
            with suppress(Exception):  # if one is refused, all are drawn alone
                return draw(loop, requests, first, time), requests
        block, drawn = None, []
        for each in requests:
            try:
                block = draw(loop, [each], first, time)
                drawn.append(each)
            except Exception as error:
                loop.model.release(range(first, first + each.count))
                loop.numbers.void(range(first, first + each.count))
                _respond(each, error)
            first += each.count
        return block if len(requests) == 1 else None, drawn

    def _finish(self, loop: Loop, requests: Sequence[Request], error: Exception | None) -> None:
        """Answer a group, after which the next one begins."""
        asyncio.get_running_loop().call_soon(self._flush, loop)
        made = sum(each.count for each in requests)
        if made and error is None:
            loop.traffic.add(self._now(), made, perf_counter() - min(each.began for each in requests))
        for each in requests:
            _respond(each, each.answer if error is None else error)


def _respond(request: Request, answer: object) -> None:
    """Respond, whatever happens to the others."""
    try:
        request.respond(answer)
    except Exception:
        log.exception("could not deliver an answer")
