"""Groups: the requests to one loop that arrive while its previous group is written are drawn and written together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial

from manul.service.configuration import Limits
from manul.service.engine.group_commit import Writer
from manul.service.engine.loop import Loop
from manul.service.engine.requests import Decide, Observe, Request, draw
from manul.service.engine.write_operations import Learn, WriteGroup
from manul.service.store.blocks import Block

log = logging.getLogger("manul.service")
# Decisions or losses after which a group is full. A batch may exceed it, but a block has less than MAX_BLOCK decisions.
MOST = 4096


class Waiting:
    """Requests that wait for the previous group of their loop, the first of them since a time."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.since = 0.0


class Groups:
    """Writes requests in groups, one of each loop at a time, so that groups grow with the load. Called in the event loop."""

    def __init__(self, writer: Writer, limits: Limits, now: Callable[[], float], learn: Learn) -> None:
        self._writer, self._limits, self._now, self._learn = writer, limits, now, learn
        # Loops that have a group, or will have one soon.
        self._waiting: dict[Loop, Waiting] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._idle: asyncio.Future[None] | None = None

    def add(self, loop: Loop, request: Request) -> None:
        waiting = self._waiting.get(loop)
        if waiting is None:
            waiting = self._waiting[loop] = Waiting()
            asyncio.get_running_loop().call_soon(self._flush, loop)
        if not waiting.requests:
            waiting.since = self._now()
        waiting.requests.append(request)

    async def finish(self) -> None:
        """Wait until everything is answered."""
        while self._waiting:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def _flush(self, loop: Loop) -> None:
        """Begin with the next group of a loop, if there is one."""
        requests, since = self._take(loop)
        if not requests:
            del self._waiting[loop]
            if not self._waiting and self._idle is not None and not self._idle.done():
                self._idle.set_result(None)
            return
        checked: list[Request] = []
        for each in requests:
            try:
                each.check(loop, self._limits)
                checked.append(each)
            except Exception as error:
                _respond(each, error)
        count = sum(each.count for each in checked)
        try:
            first = loop.numbers.take(count) if count else 0
        except Exception as error:
            self._finish(loop, checked, since, error)
            return
        if first is not None:
            self._write(loop, checked, first, since)
            return
        task = asyncio.create_task(self._reserve(loop, checked, count, since))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _take(self, loop: Loop) -> tuple[list[Request], float]:
        waiting = self._waiting[loop]
        size = place = 0
        while place < len(waiting.requests) and size < MOST:
            size += waiting.requests[place].size
            place += 1
        requests, waiting.requests = waiting.requests[:place], waiting.requests[place:]
        return requests, waiting.since

    async def _reserve(self, loop: Loop, requests: list[Request], count: int, since: float) -> None:
        """Write requests once their numbers have been read from the store; if this fails, losses are still written."""
        try:
            first = await loop.numbers.reserve(count)
        except Exception as error:
            first, failed = 0, [each for each in requests if each.count]
            requests = [each for each in requests if not each.count]
            for each in failed:
                _respond(each, error)
        self._write(loop, requests, first, since)

    def _write(self, loop: Loop, requests: list[Request], first: int, since: float) -> None:
        time, deciding = self._now(), [each for each in requests if isinstance(each, Decide)]
        others = [each for each in requests if not isinstance(each, Decide)]
        block, drawn = self._draw(loop, deciding, first, time)
        first += sum(each.count for each in deciding)
        for each in others:
            if isinstance(each, Observe):
                each.make(loop, first, time)
                first += 1
        requests = [*drawn, *others]
        finish = partial(self._finish, loop, requests, since)
        if requests:
            self._writer.submit(WriteGroup(loop, requests, block, time, self._learn, finish))
        else:
            finish(None)

    def _draw(
        self, loop: Loop, requests: Sequence[Decide], first: int, time: float
    ) -> tuple[Block | None, Sequence[Decide]]:
        """Draw decisions; also returns the requests that are not refused."""
        if len(requests) > 1 and loop.model.rollout is None:
            try:
                return draw(loop, requests, first, time), requests
            except Exception:
                pass
        block, drawn = None, []
        for each in requests:
            try:
                block = draw(loop, [each], first, time)
                drawn.append(each)
            except Exception as error:
                loop.numbers.void(range(first, first + each.count))
                _respond(each, error)
            first += each.count
        return block if len(requests) == 1 else None, drawn

    def _finish(self, loop: Loop, requests: Sequence[Request], since: float, error: Exception | None) -> None:
        """Answer a group, after which the next one begins."""
        asyncio.get_running_loop().call_soon(self._flush, loop)
        made = sum(each.count for each in requests)
        if made and error is None:
            now = self._now()
            loop.traffic.add(now, made, now - since)
        for each in requests:
            _respond(each, each.answer if error is None else error)


def _respond(request: Request, answer: object) -> None:
    """Respond, whatever happens to the others."""
    try:
        request.respond(answer)
    except Exception:
        log.exception("could not deliver an answer")
