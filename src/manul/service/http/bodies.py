"""Reads and decodes request bodies, and encodes responses."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from manul.service import wire
from manul.service.errors import Invalid, Malformed, Problem, TooLarge, Unavailable

T = TypeVar("T")
# A Content-Length with more digits is too large whatever the limit.
MAX_DIGITS = 18
# Bytes of each body that do not count towards the common limit, so that small requests succeed beside large ones.
FREE_BYTES = 16 * 2**10
PLAIN_TYPES = {
    "float": "a number",
    "int": "a whole number",
    "str": "text",
    "bool": "true or false",
    "object": "an object",
    "array": "an array",
}
_TYPE = re.compile(rf"^({'|'.join(PLAIN_TYPES)})\b")
_encode = msgspec.json.Encoder().encode
_PLACE = re.compile(r"^(?P<what>.*?)(?: - at `(?:key in )?\$\.?(?P<field>.*)`)?$", re.DOTALL)


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(kind)


def decode(body: bytes, decoder: msgspec.json.Decoder[T]) -> T:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _invalid(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).split("(")[0].strip()
        raise Malformed(f"The body is not valid JSON: {why}.") from None


def encode(value: Any) -> bytes:
    return _encode(value)


def error_body(problem: Problem) -> bytes:
    field = msgspec.UNSET if problem.field is None else problem.field
    return _encode(wire.Error(error=wire.ErrorBody(code=problem.code, message=problem.message, field=field)))


class Disconnected(Exception):  # noqa: N818 - an event, not an error
    """The caller disconnected before its request was complete."""


class BodyReader:
    """Reads request bodies; those that arrive in pieces may together take up to `limit` bytes of memory, or one alone more."""

    def __init__(self, limit: int) -> None:
        self._limit, self._held = limit, 0

    async def read(self, receive: Any, limit: int, announced: bytes | None = None) -> bytes:
        """Read the body of a request, up to a limit; `announced` is its Content-Length."""
        if announced is not None and announced.isdigit() and (len(announced) > MAX_DIGITS or int(announced) > limit):
            raise too_large(limit)
        message = await receive()
        if not message.get("more_body"):
            return _content(message, limit, limit)
        body, held = bytearray(), 0
        try:
            while message.get("more_body"):
                body += _content(message, limit, limit - len(body))
                held += self._hold(max(0, len(body) - FREE_BYTES) - held, alone=self._held == held)
                del message
                message = await receive()
            body += _content(message, limit, limit - len(body))
            return bytes(body)
        finally:
            self._held -= held

    def _hold(self, size: int, *, alone: bool) -> int:
        if not alone and self._held + size > self._limit:
            raise Unavailable(f"Request bodies together exceed {self._limit} bytes of memory. Retry later.")
        self._held += size
        return size


def _content(message: Any, limit: int, room: int) -> bytes:
    if message["type"] == "http.disconnect":
        raise Disconnected
    body: bytes = message.get("body", b"")
    if len(body) > room:
        raise too_large(limit)
    return body


def too_large(limit: int) -> TooLarge:
    options = "--max-body-bytes, or --max-batch-bytes or --max-model-bytes for a batch or a model"
    return TooLarge(f"The body exceeds {limit} bytes. Send less, or raise {options}.")


def _plain(types: str) -> str:
    """The types of a decoding error in plain words."""
    return " or ".join(_TYPE.sub(lambda found: PLAIN_TYPES[found[0]], each) for each in types.split(" | "))


def _invalid(message: str) -> Invalid:
    match = _PLACE.match(message)
    assert match is not None
    what, field = match["what"].replace("`", ""), match["field"]
    subject = field or "body"
    if what.startswith("Expected "):
        expected, _, got = what.removeprefix("Expected ").partition(", got ")
        sentence = f"{subject} must be {_plain(expected)}" + (f", got {_plain(got)}." if got else ".")
    elif what.startswith("Object contains unknown field "):
        field = what.removeprefix("Object contains unknown field ")
        sentence = f"{subject} has an unknown field, {field!r}."
    elif what.startswith("Object missing required field "):
        field = what.removeprefix("Object missing required field ")
        sentence = f"{subject} lacks the required field {field!r}."
    else:
        sentence = f"{subject} is invalid: {what[:1].lower()}{what[1:]}."
    return Invalid(f"{sentence} See /openapi.json.", field or None)
