"""Bodies of requests and answers: bytes in, checked structs out, and every error in the one shape."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from manul.service import schema
from manul.service.errors import Invalid, Malformed, Problem, TooLarge, Unavailable

T = TypeVar("T")
# Digits of a length that is surely too large, and the bytes of each body that count for no limit but its own: small
# requests are taken even while large ones take all there is.
DIGITS, UNCOUNTED = 18, 16 * 2**10
_encode = msgspec.json.Encoder().encode
_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<field>.*)`)?$", re.DOTALL)


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """A decoder of one kind of request."""
    return msgspec.json.Decoder(kind)


def decoded(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    """What a body says."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = "nesting too deep" if isinstance(error, RecursionError) else str(error).split("(")[0].strip()
        raise Malformed(f"body must be JSON in UTF-8; got something else ({why}). Check how it was made.") from None


def encoded(value: Any) -> bytes:
    """An answer."""
    return _encode(value)


def error_body(problem: Problem) -> bytes:
    """A problem as it is answered."""
    field = msgspec.UNSET if problem.field is None else problem.field
    return _encode(schema.Error(error=schema.ErrorBody(code=problem.code, message=problem.message, field=field)))


class Disconnected(Exception):  # noqa: N818 - nobody is left to be answered
    """The caller is gone before its request was complete."""


class BodyReader:
    """Reads bodies of requests; together those that arrive in pieces may take so many bytes."""

    def __init__(self, limit: int) -> None:
        self._limit, self._held = limit, 0

    async def read(self, receive: Any, limit: int, announced: bytes | None = None) -> bytes:
        """The whole body of a request, up to a limit."""
        if announced is not None and announced.isdigit() and (len(announced) > DIGITS or int(announced) > limit):
            raise too_large(limit)
        message = await receive()
        if not message.get("more_body"):
            return _checked(message, limit, limit)
        body, held = bytearray(), 0
        try:
            while message.get("more_body"):
                body += _checked(message, limit, limit - len(body))
                held += self._hold(max(0, len(body) - UNCOUNTED) - held)
                del message
                message = await receive()
            body += _checked(message, limit, limit - len(body))
            return bytes(body)
        finally:
            self._held -= held

    def _hold(self, size: int) -> int:
        if self._held + size > self._limit:
            raise Unavailable(
                f"bodies of requests must have at most {self._limit} bytes together; got more. Try again later."
            )
        self._held += size
        return size


def _checked(message: Any, limit: int, room: int) -> bytes:
    if message["type"] == "http.disconnect":
        raise Disconnected
    body: bytes = message.get("body", b"")
    if len(body) > room:
        raise too_large(limit)
    return body


def too_large(limit: int) -> TooLarge:
    """What is said about a body beyond the limit."""
    return TooLarge(f"body must have at most {limit} bytes; got more. Send smaller batches, or raise --max-body-bytes.")


def _invalid(message: str) -> Invalid:
    match = _PLACE.match(message)
    assert match is not None
    what, field = match["what"].replace("`", ""), match["field"]
    subject = field or "body"
    if what.startswith("Expected "):
        expected, _, got = what.removeprefix("Expected ").partition(", got ")
        sentence = f"{subject} must be {expected}" + (f"; got {got}." if got else ".")
    elif what.startswith("Object contains unknown field "):
        field = what.removeprefix("Object contains unknown field ")
        sentence = f"{subject} must have known fields only; got {field!r}."
    elif what.startswith("Object missing required field "):
        field = what.removeprefix("Object missing required field ")
        sentence = f"{subject} must have the field {field!r}; it is missing."
    else:
        sentence = f"{subject} cannot be used: {what[:1].lower()}{what[1:]}."
    return Invalid(f"{sentence} See /openapi.json.", field or None)
