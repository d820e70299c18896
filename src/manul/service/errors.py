"""What the service refuses, each with a status, a code for programs and one sentence for people."""

from __future__ import annotations

from manul.errors import ManulError


class Problem(ManulError):  # noqa: N818 - reads as what it is
    """A request that gets no answer but `{"error": {"code", "message", "field"?}}`."""

    status = 500
    code = "internal"

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message, field)
        self.message = message


class Malformed(Problem):
    """A request that is not HTTP, or a body that is not JSON."""

    status, code = 400, "malformed"


class Unauthorized(Problem):
    """No token, or one that nobody was given."""

    status, code = 401, "unauthorized"


class Forbidden(Problem):
    """A token without the right that the route asks for, or a request of another site where there are no tokens."""

    status, code = 403, "forbidden"


class Unknown(Problem):
    """A path, loop or decision that does not exist."""

    status, code = 404, "not_found"


class WrongMethod(Problem):
    """A path that exists, but not for this method."""

    status, code = 405, "method_not_allowed"


class Timeout(Problem):
    """A request that did not arrive in time."""

    status, code = 408, "timeout"


class Conflict(Problem):
    """Something else is there already."""

    status, code = 409, "conflict"


class TooLarge(Problem):
    """A body beyond the limit."""

    status, code = 413, "too_large"


class HeadTooLarge(Problem):
    """A head beyond the limit."""

    status, code = 431, "head_too_large"


class Invalid(Problem):
    """A value that cannot be used."""

    status, code = 422, "invalid"


class Unavailable(Problem):
    """The service cannot take anything at the moment; nothing was changed."""

    status, code = 503, "unavailable"
