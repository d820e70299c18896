"""The errors that the service answers with: a status, a code for programs and a message for people."""

from __future__ import annotations

from typing import Any, ClassVar

from manul.errors import ManulError


class Problem(ManulError):  # noqa: N818 - the name of an error response in HTTP APIs
    """Internal error of the service."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message, field)
        self.message = message

    def __init_subclass__(cls, status: int | None = None, code: str | None = None, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.status, cls.code = status or cls.status, code or cls.code


class Malformed(Problem, status=400, code="malformed"):
    """The request is not valid HTTP, or its body is not valid JSON."""


class Unauthorized(Problem, status=401, code="unauthorized"):
    """The token is missing or unknown."""


class Forbidden(Problem, status=403, code="forbidden"):
    """The token lacks the required right or is for other loops; without tokens, the request is for a foreign host or from another site."""


class Unknown(Problem, status=404, code="not_found"):
    """The path, loop or decision does not exist."""


class WrongMethod(Problem, status=405, code="method_not_allowed"):
    """Method not allowed for this path; the header Allow has those that are."""

    def __init__(self, message: str, allow: str) -> None:
        super().__init__(message)
        self.allow = allow


class Timeout(Problem, status=408, code="timeout"):
    """The request did not arrive in time."""


class Conflict(Problem, status=409, code="conflict"):
    """The request conflicts with the current state of the loop."""


class TooLarge(Problem, status=413, code="too_large"):
    """The request body exceeds the size limit."""


class Invalid(Problem, status=422, code="invalid"):
    """A value is invalid."""


class HeadTooLarge(Problem, status=431, code="head_too_large"):
    """The request line and headers exceed the size limit."""


class TooManyRequests(Problem, status=429, code="too_many_requests"):
    """The rate limit of the token is exceeded. Nothing was changed; retry after the seconds in Retry-After."""

    def __init__(self, message: str, seconds: int) -> None:
        super().__init__(message)
        self.seconds = seconds


class Unavailable(Problem, status=503, code="unavailable"):
    """The service, its store or the loop is unavailable. Nothing was changed, unless the message says so; retry."""


KINDS: tuple[type[Problem], ...] = (Problem, *Problem.__subclasses__())
INTERNAL = "Internal error; see the server log."
