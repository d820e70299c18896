"""Bodies of requests and answers: bytes in, checked structs out, and every error in the one shape."""

from __future__ import annotations

import re
from typing import Any, TypeVar

import msgspec

from manul.service import schema
from manul.service.problems import Invalid, Malformed, Problem, TooLarge

T = TypeVar("T")
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


def failure() -> Problem:
    """What is said when the service itself is at fault."""
    return Problem("service must answer every request; it failed on this one. Its log says why.")


async def read(receive: Any, limit: int, announced: bytes | None = None) -> bytes:
    """The whole body of a request, up to a limit."""
    if announced is not None and announced.isdigit() and int(announced) > limit:
        raise too_large(limit)
    message = await receive()
    body: bytes = message.get("body", b"")
    if message.get("more_body"):
        parts, size = [body], len(body)
        while message.get("more_body"):
            message = await receive()
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > limit:
                raise too_large(limit)
        body = b"".join(parts)
    if len(body) > limit:
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
