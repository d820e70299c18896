"""One call of the service as a generator of requests: it decides what to send and when to retry, a client sends it."""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine, Generator
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, overload

import httpx
import msgspec

from manul.errors import ServiceError
from manul.service import wire

T = TypeVar("T")
P = ParamSpec("P")
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
# The statuses of a service that is busy or unavailable, or of a proxy in front of it.
BUSY = (502, 503, 504)
# The status of a caller over its rate limit. Nothing was changed; if the service asks for a longer wait, the call fails at once.
TOO_MANY, LONGEST_WAIT = 429, 30.0


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request; one that is not `repeatable` is sent again only if it cannot have been processed.

    The body of a successful response is written to `file` if there is one.
    """

    method: str
    path: str
    body: bytes | None = None
    repeatable: bool = True
    file: Path | None = None


@dataclass(frozen=True)
class Pause:
    """Seconds to wait before the next request."""

    seconds: float


Outcome: TypeAlias = httpx.Response | httpx.TransportError | None
# Yields what to do next, is sent what came of it (None after a pause), and returns the result of the call.
Exchange: TypeAlias = Generator[Request | Pause, Outcome, T]


class Blocking(Protocol):
    """A client whose calls return their results."""

    def run(self, exchange: Exchange[T]) -> T:
        """Send the requests of a call."""


class Awaiting(Protocol):
    """A client whose calls are awaited."""

    def run(self, exchange: Exchange[T]) -> Coroutine[Any, Any, T]:
        """Send the requests of a call."""


class call(Generic[P, T]):  # noqa: N801 - a decorator
    """A method that describes its requests; on a client it sends them, and returns or awaits the result."""

    def __init__(self, describe: Callable[Concatenate[Any, P], Exchange[T]]) -> None:
        self._describe = describe

    @overload
    def __get__(self, client: None, owner: type) -> Callable[Concatenate[Any, P], Exchange[T]]: ...
    @overload
    def __get__(self, client: Blocking, owner: type) -> Callable[P, T]: ...
    @overload
    def __get__(self, client: Awaiting, owner: type) -> Callable[P, Coroutine[Any, Any, T]]: ...
    def __get__(self, client: Any, owner: type) -> Any:
        if client is None:
            return self._describe  # for `help`

        @wraps(self._describe.__get__(client))
        def run(*arguments: P.args, **options: P.kwargs) -> Any:
            return client.run(self._describe(client, *arguments, **options))

        return run


def send(request: Request, retries: int) -> Exchange[httpx.Response]:
    """Send a request, and send it again up to `retries` times if the service is busy or cannot be reached."""
    for attempt in range(retries + 1):
        outcome = yield request
        if attempt == retries or not can_retry(request, outcome):
            break
        yield Pause(pause(attempt, wait_seconds(outcome)))
    if isinstance(outcome, httpx.Response):
        if outcome.is_success:
            return outcome
        raise refusal(outcome)
    raise ServiceError(
        f"The service cannot be reached ({type(outcome).__name__}). Check the URL, and that manul serve is running.",
        code="unreachable",
    ) from outcome


def can_retry(request: Request, outcome: Outcome) -> bool:
    """Whether sending the request again can help and cannot do harm."""
    if isinstance(outcome, httpx.Response):
        if outcome.status_code == TOO_MANY:
            return wait_seconds(outcome) <= LONGEST_WAIT
        return outcome.status_code in BUSY if request.repeatable else outcome.status_code == 503
    return request.repeatable or isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout)


def wait_seconds(outcome: Outcome) -> float:
    """The seconds that a response to too many requests asks for in its Retry-After; 0 for other outcomes, and for a date."""
    if not isinstance(outcome, httpx.Response) or outcome.status_code != TOO_MANY:
        return 0.0
    given = outcome.headers.get("retry-after", "")
    return float(given) if given.isascii() and given.isdigit() else 0.0


def decode(response: httpx.Response, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(response.content, type=kind, strict=False)
    except msgspec.DecodeError as error:
        raise ServiceError(
            f"The response is not from a manul service ({error}). Check the URL.", status=response.status_code
        ) from None


def refusal(response: httpx.Response) -> ServiceError:
    """An error response as an exception, with the service's own message."""
    try:
        error = msgspec.json.decode(response.content, type=wire.Error).error
    except msgspec.DecodeError:
        return ServiceError(
            f"Unexpected response with status {response.status_code}. Check the URL, and proxies before the service.",
            status=response.status_code,
        )
    field = None if error.field is msgspec.UNSET else error.field
    return ServiceError(error.message, status=response.status_code, code=error.code, field=field)


def pause(attempt: int, least: float = 0.0) -> float:
    """Seconds before the next attempt: they double each time, and are randomized so that clients do not retry in step.

    `least` is what the service asked for.
    """
    return least + min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempt) * random.uniform(0.5, 1.0)
