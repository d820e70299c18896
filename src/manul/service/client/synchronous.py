"""The service for a program that waits for each answer."""

from __future__ import annotations

import time
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


class Client:
    """Speaks to `manul serve`; asks again, up to `retries` times, where no answer comes or the service is busy.

    with manul.Client("http://127.0.0.1:8000", token) as client:
        decision = client.decide("heating", [4.5, 0.3])
        client.lose("heating", decision, 0.21)
    """

    def __init__(self, url: str, token: str | None = None, *, timeout: float = 10.0, retries: int = 8) -> None:
        self._retries = retries
        self._http = httpx.Client(
            base_url=calls.checked_url(url), headers=calls.headers(token), timeout=calls.limits(timeout)
        )

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        self._http.close()

    def create(
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
        return self._ask(calls.create(settings))

    def loops(self) -> list[schema.Status]:
        """All loops."""
        return self._ask(calls.loops()).loops

    def status(self, loop: str) -> schema.Status:
        """A loop as it is now."""
        return self._ask(calls.status(loop))

    def decide(
        self,
        loop: str,
        context: Context = None,
        *,
        within: Within | None = None,
        id: str | None = None,  # noqa: A002
    ) -> schema.Decision:
        """Decide. An id that was given seeds the randomness: the same question again gets the same answer."""
        return self._ask(calls.decide(loop, context, within, id))

    def decide_many(
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
            found += self._ask(call).decisions
        return found

    def lose(
        self, loop: str, decision: schema.Decision | schema.Observed | str, loss: float, *, key: str | None = None
    ) -> schema.Loss:
        """Report what a decision led to; a key tells a repeat from another loss where losses combine."""
        return self._ask(calls.lose(loop, decision, loss, key))

    def lose_many(self, loop: str, losses: Sequence[Loss]) -> list[schema.Loss]:
        """Report many losses, each with its decision, a thousand to a request."""
        found: list[schema.Loss] = []
        for call in calls.lose_many(loop, losses):
            found += self._ask(call).losses
        return found

    def observe(
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
        return self._ask(calls.observe(loop, seen))

    def pause(self, loop: str) -> schema.Status:
        """Freeze the model; losses are kept."""
        return self._ask(calls.change(loop, "pause"))

    def resume(self, loop: str) -> schema.Status:
        """Learn what came during the pause, and go on."""
        return self._ask(calls.change(loop, "resume"))

    def promote(self, loop: str) -> schema.Status:
        """Let an apprentice decide."""
        return self._ask(calls.change(loop, "promote"))

    def reset(self, loop: str) -> schema.Status:
        """Start a loop again from nothing, with the settings it was created with; its data are deleted."""
        return self._ask(calls.change(loop, "reset", repeatable=False))

    def delete(self, loop: str) -> schema.Deleted:
        """Delete a loop with all its decisions, losses and models."""
        return self._ask(calls.delete(loop))

    def report(self, loop: str) -> schema.Report:
        """What the agent believes, and what it and others would have lost."""
        return self._ask(calls.report(loop))

    def log(self, loop: str, path: str | Path) -> Path:
        """Write the log to a Parquet file, for `manul.Log.read`."""
        return self._download(calls.file(loop, "log"), Path(path))

    def model(self, loop: str, path: str | Path) -> Path:
        """Write the model to a `.manul` file, for `manul.load`."""
        return self._download(calls.file(loop, "model"), Path(path))

    def replace(self, loop: str, path: str | Path) -> schema.Status:
        """Put a `.manul` file in the place of the model."""
        return self._ask(calls.replace(loop, path))

    def _ask(self, call: Call[T]) -> T:
        return calls.understood(call, self._sent(call))

    def _sent(self, call: Call[Any]) -> httpx.Response:
        for attempt in range(self._retries + 1):
            try:
                response = self._http.request(call.method, call.path, content=call.body)
            except httpx.TransportError as error:
                if attempt == self._retries or not calls.again(call, error):
                    raise calls.unreachable(error) from error
            else:
                if attempt == self._retries or not calls.again(call, response):
                    return response
            time.sleep(calls.pause(attempt))
        raise AssertionError("the last attempt returns or raises")

    def _download(self, call: Call[bytes], path: Path) -> Path:
        """The file is whole before it is called by its name."""
        part = path.with_name(path.name + ".part")
        for attempt in range(self._retries + 1):
            try:
                with self._http.stream(call.method, call.path) as response:
                    if response.is_success:
                        with part.open("wb") as file:
                            for some in response.iter_bytes():
                                file.write(some)
                        part.replace(path)
                        return path
                    response.read()
                    if attempt == self._retries or not calls.again(call, response):
                        raise calls.refusal(response)
            except httpx.TransportError as error:
                part.unlink(missing_ok=True)
                if attempt == self._retries:
                    raise calls.unreachable(error) from error
            time.sleep(calls.pause(attempt))
        raise AssertionError("the last attempt returns or raises")
