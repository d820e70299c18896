"""The service for a program on asyncio: what `Client` does, to be awaited."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import httpx

from manul.service import schema
from manul.service.client import calls
from manul.service.client.calls import Call, Context, Loss
from manul.types import Floats, Within

T = TypeVar("T")


class AsyncClient:
    """Speaks to `manul serve`; asks again, up to `retries` times, where no answer comes or the service is busy.

    async with manul.AsyncClient("http://127.0.0.1:8000", token) as client:
        decision = await client.decide("heating", [4.5, 0.3])
        await client.lose("heating", decision, 0.21)
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 10.0, retries: int = 8) -> None:
        self._retries = retries
        self._http = httpx.AsyncClient(
            base_url=calls.checked_url(url), headers=calls.headers(token), timeout=calls.limits(timeout)
        )

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of the connections."""
        await self._http.aclose()

    async def create(
        self,
        name: str,
        *,
        actions: Within,
        losses: Within = (0.0, 1.0),
        agent: str | Mapping[str, Any] = "auto",
        wait: float | None = None,
        default_loss: float | None = None,
        combine: schema.Combination = "first",
        apprentice: bool = False,
    ) -> schema.Status:
        """Create a loop; the same settings again give the loop that is there."""
        settings = {"name": name, "actions": actions, "losses": losses, "agent": agent, "wait": wait}
        settings |= {"default_loss": default_loss, "combine": combine, "apprentice": apprentice}
        return await self._ask(calls.create(settings))

    async def loops(self) -> list[schema.Status]:
        """All loops."""
        return (await self._ask(calls.loops())).loops

    async def status(self, loop: str) -> schema.Status:
        """A loop as it is now."""
        return await self._ask(calls.status(loop))

    async def decide(
        self,
        loop: str,
        context: Context = None,
        *,
        within: Within | None = None,
        id: str | None = None,  # noqa: A002
    ) -> schema.Decision:
        """Decide. An id that was given seeds the randomness: the same question again gets the same answer."""
        return await self._ask(calls.decide(loop, context, within, id))

    async def decide_many(
        self,
        loop: str,
        contexts: Sequence[Context] | Floats,
        *,
        withins: Sequence[Within | None] | None = None,
        ids: Sequence[str] | None = None,
    ) -> list[schema.Decision]:
        """Decide in many contexts, a thousand to a request."""
        found: list[schema.Decision] = []
        for call in calls.decide_many(loop, contexts, withins, ids):
            found += (await self._ask(call)).decisions
        return found

    async def lose(
        self, loop: str, decision: schema.Decision | schema.Observed | str, loss: float, *, key: str | None = None
    ) -> schema.Loss:
        """Report what a decision led to; a key tells a repeat from another loss where losses combine."""
        return await self._ask(calls.lose(loop, decision, loss, key))

    async def lose_many(self, loop: str, losses: Sequence[Loss]) -> list[schema.Loss]:
        """Report many losses, each with its decision, a thousand to a request."""
        found: list[schema.Loss] = []
        for call in calls.lose_many(loop, losses):
            found += (await self._ask(call)).losses
        return found

    async def observe(
        self,
        loop: str,
        context: Context = None,
        *,
        action: float,
        density: float | None = None,
        within: Within | None = None,
        loss: float | None = None,
        id: str | None = None,  # noqa: A002
    ) -> schema.Observed:
        """Report what the caller did by itself, for an apprentice to learn from."""
        seen = {"context": context, "action": action, "density": density, "within": within, "loss": loss, "id": id}
        return await self._ask(calls.observe(loop, seen))

    async def pause(self, loop: str) -> schema.Status:
        """Freeze the model; losses are kept."""
        return await self._ask(calls.change(loop, "pause"))

    async def resume(self, loop: str) -> schema.Status:
        """Learn what came during the pause, and go on."""
        return await self._ask(calls.change(loop, "resume"))

    async def promote(self, loop: str) -> schema.Status:
        """Let an apprentice decide."""
        return await self._ask(calls.change(loop, "promote"))

    async def reset(self, loop: str) -> schema.Status:
        """Start a loop again from nothing, with the settings it was created with; its data are deleted."""
        return await self._ask(calls.change(loop, "reset", repeatable=False))

    async def delete(self, loop: str) -> schema.Deleted:
        """Delete a loop with all its decisions, losses and models."""
        return await self._ask(calls.delete(loop))

    async def report(self, loop: str) -> schema.Report:
        """What the agent believes, and what it and others would have lost."""
        return await self._ask(calls.report(loop))

    async def log(self, loop: str, path: str | Path) -> Path:
        """Write the log to a Parquet file, for `manul.Log.read`."""
        return await self._download(calls.file(loop, "log"), Path(path))

    async def model(self, loop: str, path: str | Path) -> Path:
        """Write the model to a `.manul` file, for `manul.load`."""
        return await self._download(calls.file(loop, "model"), Path(path))

    async def replace(self, loop: str, path: str | Path) -> schema.Status:
        """Put a `.manul` file in the place of the model."""
        return await self._ask(calls.replace(loop, path))

    async def _ask(self, call: Call[T]) -> T:
        return calls.understood(call, await self._sent(call))

    async def _sent(self, call: Call[Any]) -> httpx.Response:
        for attempt in range(self._retries + 1):
            try:
                response = await self._http.request(call.method, call.path, content=call.body)
            except httpx.TransportError as error:
                if attempt == self._retries or not calls.again(call, error):
                    raise calls.unreachable(error) from error
            else:
                if attempt == self._retries or not calls.again(call, response):
                    return response
            await asyncio.sleep(calls.pause(attempt))
        raise AssertionError("the last attempt returns or raises")

    async def _download(self, call: Call[bytes], path: Path) -> Path:
        """The file is whole before it is called by its name."""
        part = path.with_name(path.name + ".part")
        for attempt in range(self._retries + 1):
            try:
                async with self._http.stream(call.method, call.path) as response:
                    if response.is_success:
                        with part.open("wb") as file:
                            async for some in response.aiter_bytes():
                                file.write(some)
                        part.replace(path)
                        return path
                    await response.aread()
                    if attempt == self._retries or not calls.again(call, response):
                        raise calls.refusal(response)
            except httpx.TransportError as error:
                part.unlink(missing_ok=True)
                if attempt == self._retries:
                    raise calls.unreachable(error) from error
            await asyncio.sleep(calls.pause(attempt))
        raise AssertionError("the last attempt returns or raises")
