"""The two clients: `Client` waits for each response, and `AsyncClient` is for programs on asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Generic, TypeVar

import httpx

from manul.service.client.calls import Calls
from manul.service.client.exchange import Exchange, Outcome, Pause, Request

T = TypeVar("T")


class Progress(Generic[T]):
    """The steps of a call; what came of a step is set before the next one, and the value is known after the last one."""

    value: T

    def __init__(self, exchange: Exchange[T]) -> None:
        self._exchange = exchange
        self.outcome: Outcome = None

    def __iter__(self) -> Iterator[Request | Pause]:
        while True:
            outcome, self.outcome = self.outcome, None
            try:
                yield self._exchange.send(outcome)
            except StopIteration as end:
                self.value = end.value
                return


class Client(Calls):
    """A client of `manul serve` at a `url`, with its `token` if it has one.

    A request fails after `timeout` seconds, and is repeated up to `retries` times if the service is busy or unreachable.

    with manul.Client("http://127.0.0.1:8000", token) as client:
        decision = client.decide("heating", [4.5, 0.3])
        client.report_loss("heating", decision, 0.21)
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 10.0, retries: int = 8) -> None:
        super().__init__(url, token, timeout, retries)
        self._http = httpx.Client(**self._http_settings)

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def run(self, exchange: Exchange[T]) -> T:
        """Send the requests of a call, an `exchange`, and return its result."""
        progress = Progress(exchange)
        for step in progress:
            if isinstance(step, Pause):
                time.sleep(step.seconds)
            else:
                progress.outcome = self._send_once(step)
        return progress.value

    def _send_once(self, request: Request) -> httpx.Response | httpx.TransportError:
        try:
            with self._http.stream(request.method, request.path, content=request.body) as response:
                if request.file is None or not response.is_success:
                    response.read()
                else:
                    with request.file.open("wb") as file:
                        for chunk in response.iter_bytes():
                            file.write(chunk)
                return response
        except httpx.TransportError as error:
            return error


class AsyncClient(Calls):
    """`Client` with calls that are awaited. See there for `url`, `token`, `timeout` and `retries`.

    async with manul.AsyncClient("http://127.0.0.1:8000", token) as client:
        decision = await client.decide("heating", [4.5, 0.3])
        await client.report_loss("heating", decision, 0.21)
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 10.0, retries: int = 8) -> None:
        super().__init__(url, token, timeout, retries)
        self._http = httpx.AsyncClient(**self._http_settings)

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def run(self, exchange: Exchange[T]) -> T:
        """Send the requests of a call, an `exchange`, and return its result."""
        progress = Progress(exchange)
        for step in progress:
            if isinstance(step, Pause):
                await asyncio.sleep(step.seconds)
            else:
                progress.outcome = await self._send_once(step)
        return progress.value

    async def _send_once(self, request: Request) -> httpx.Response | httpx.TransportError:
        try:
            async with self._http.stream(request.method, request.path, content=request.body) as response:
                if request.file is None or not response.is_success:
                    await response.aread()
                else:
                    with request.file.open("wb") as file:
                        async for chunk in response.aiter_bytes():
                            file.write(chunk)
                return response
        except httpx.TransportError as error:
            return error
