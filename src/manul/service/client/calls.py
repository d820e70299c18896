"""Every call of the service as a value: what is sent, and what its answer means. Nothing here speaks to anybody."""

from __future__ import annotations

import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar
from urllib.parse import quote

import httpx
import msgspec
import numpy as np

from manul.errors import FileError, ParameterError, ServiceError
from manul.service import schema
from manul.types import Floats, Within

T = TypeVar("T")
Context: TypeAlias = Sequence[float] | Floats | Mapping[str, Any] | None
Loss: TypeAlias = tuple[schema.Decision | schema.Observed | str, float]
AT_ONCE = 1000
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 2.0
# What a proxy or the service itself answers while nobody can take the request.
BUSY = (502, 503, 504)


@dataclass(frozen=True, kw_only=True)
class Call(Generic[T]):
    """A request. One that is not `repeatable` is sent again only where it surely did not arrive."""

    method: str
    path: str
    answers: type[T]
    body: bytes | None = None
    repeatable: bool = True


def checked_url(url: str) -> str:
    """The address of a service.

    >>> checked_url("http://127.0.0.1:8000/")
    'http://127.0.0.1:8000'
    """
    if not url.startswith(("http://", "https://")):
        raise ParameterError(f"url must begin with http:// or https://; got {url!r}. Try http://127.0.0.1:8000.")
    return url.rstrip("/")


def limits(seconds: float) -> httpx.Timeout:
    """Every step of a request has its time, but any number of calls may wait for a free connection.

    >>> limits(10.0).pool is None
    True
    """
    return httpx.Timeout(seconds, pool=None)


def headers(token: str | None) -> dict[str, str]:
    """What every request carries.

    >>> headers("secret")
    {'Authorization': 'Bearer secret'}
    """
    return {} if token is None else {"Authorization": f"Bearer {token}"}


def create(settings: Mapping[str, Any]) -> Call[schema.Status]:
    """Create a loop; the same settings again give the loop that is there."""
    return Call(method="POST", path="/v1/loops", body=_encoded(settings), answers=schema.Status)


def loops() -> Call[schema.Loops]:
    """All loops."""
    return Call(method="GET", path="/v1/loops", answers=schema.Loops)


def status(loop: str) -> Call[schema.Status]:
    """A loop as it is now."""
    return Call(method="GET", path=_path(loop), answers=schema.Status)


def change(loop: str, change: str, *, repeatable: bool = True) -> Call[schema.Status]:
    """Pause, resume, promote or reset. A reset that is repeated would delete what came after the first one."""
    return Call(method="POST", path=_path(loop, change), answers=schema.Status, repeatable=repeatable)


def delete(loop: str) -> Call[schema.Deleted]:
    """Delete a loop. Repeated, it would say that there is no such loop, or delete one made since."""
    return Call(method="DELETE", path=_path(loop), answers=schema.Deleted, repeatable=False)


def report(loop: str) -> Call[schema.Report]:
    """What the agent believes, and what others would have lost."""
    return Call(method="GET", path=_path(loop, "report"), answers=schema.Report)


def decide(loop: str, context: Context, within: Within | None, given: str | None) -> Call[schema.Decision]:
    """Decide in one context."""
    body = _encoded(_question(context, within, given))
    return Call(method="POST", path=_path(loop, "decisions"), body=body, answers=schema.Decision)


def decide_many(
    loop: str, contexts: Sequence[Context] | Floats, withins: Sequence[Within | None] | None, ids: Sequence[str] | None
) -> Iterator[Call[schema.Decisions]]:
    """Decide in many contexts, some at a time."""
    count = len(contexts)
    for name, values in (("withins", withins), ("ids", ids)):
        if values is not None and len(values) != count:
            raise ParameterError(
                f"{name} must be as many as the contexts, {count}; got {len(values)}. Give one for each."
            )
    asked = [
        _question(contexts[place], None if withins is None else withins[place], None if ids is None else ids[place])
        for place in range(count)
    ]
    for some in _some(asked):
        body = _encoded({"decisions": some})
        yield Call(method="POST", path=_path(loop, "decisions", "batch"), body=body, answers=schema.Decisions)


def lose(
    loop: str, decision: schema.Decision | schema.Observed | str, loss: float, key: str | None
) -> Call[schema.Loss]:
    """Report what a decision led to."""
    path = _path(loop, "decisions", _id(decision), "loss")
    return Call(method="POST", path=path, body=_encoded({"loss": loss, "key": key or _new()}), answers=schema.Loss)


def lose_many(loop: str, losses: Sequence[Loss]) -> Iterator[Call[schema.Losses]]:
    """Report many losses, some at a time."""
    told = [{"id": _id(decision), "loss": loss, "key": _new()} for decision, loss in losses]
    for some in _some(told):
        yield Call(method="POST", path=_path(loop, "losses"), body=_encoded({"losses": some}), answers=schema.Losses)


def observe(loop: str, seen: Mapping[str, Any]) -> Call[schema.Observed]:
    """Report what the caller did by itself."""
    body = _encoded({**seen, "id": seen.get("id") or _new()})
    return Call(method="POST", path=_path(loop, "observations"), body=body, answers=schema.Observed)


def file(loop: str, name: str) -> Call[bytes]:
    """The log or the model."""
    return Call(method="GET", path=_path(loop, name), answers=bytes)


def replace(loop: str, path: str | Path) -> Call[schema.Status]:
    """Put a `.manul` file in the place of the model. Twice would undo what was learned in between."""
    try:
        model = Path(path).read_bytes()
    except OSError as error:
        raise FileError(f"{path} must be a readable file; got {error.strerror}. Check the name.") from None
    return Call(method="PUT", path=_path(loop, "model"), body=model, answers=schema.Status, repeatable=False)


def understood(call: Call[T], response: httpx.Response) -> T:
    """What an answer says; the service's own sentence where it refuses."""
    if not response.is_success:
        raise refusal(response)
    try:
        return msgspec.json.decode(response.content, type=call.answers, strict=False)
    except msgspec.DecodeError as error:
        raise ServiceError(
            f"url must be that of a manul service; its answer is none ({error}). Check it.", status=response.status_code
        ) from None


def refusal(response: httpx.Response) -> ServiceError:
    """An answer that is an error, as an exception."""
    try:
        error = msgspec.json.decode(response.content, type=schema.Error).error
    except msgspec.DecodeError:
        return ServiceError(
            f"service must answer; got status {response.status_code}. Check the url and what is in between.",
            status=response.status_code,
        )
    field = None if error.field is msgspec.UNSET else error.field
    return ServiceError(error.message, status=response.status_code, code=error.code, field=field)


def unreachable(error: httpx.HTTPError) -> ServiceError:
    """No answer at all, as an exception."""
    return ServiceError(
        f"service must be reachable; got {type(error).__name__}. Check the url, and that manul serve runs.",
        code="unreachable",
    )


def again(call: Call[Any], outcome: httpx.Response | httpx.TransportError) -> bool:
    """Whether to ask again."""
    if isinstance(outcome, httpx.Response):
        return outcome.status_code in BUSY if call.repeatable else outcome.status_code == 503
    return call.repeatable or isinstance(outcome, httpx.ConnectError | httpx.ConnectTimeout)


def pause(attempt: int) -> float:
    """Seconds before the next try: twice as long each time, and scattered so that callers do not come together.

    >>> 0.025 <= pause(0) <= 0.05
    True
    """
    return min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**attempt) * random.uniform(0.5, 1.0)


def _path(*parts: str) -> str:
    return "/".join(["/v1/loops", *(quote(part, safe="~:@=+") for part in parts)])


def _question(context: Context, within: Within | None, given: str | None) -> dict[str, Any]:
    return {"context": context, "within": within, "id": given or _new()}


def _id(decision: schema.Decision | schema.Observed | str) -> str:
    return decision if isinstance(decision, str) else decision.id


def _new() -> str:
    return uuid.uuid4().hex


def _some(values: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for first in range(0, len(values), AT_ONCE):
        yield values[first : first + AT_ONCE]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    raise ParameterError(
        f"context must hold numbers, texts and lists of these; got a {type(value).__name__}. Convert it."
    )


_encoded = msgspec.json.Encoder(enc_hook=_plain).encode
