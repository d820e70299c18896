"""Answers as they are sent, and the one place that turns an exception into one."""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from starlette.exceptions import HTTPException

from manul.service.engine.writer import FULL
from manul.service.errors import Problem, Unavailable, Unknown, WrongMethod
from manul.service.http.bodies import error_body
from manul.service.store import StoreFailure

Headers = tuple[tuple[bytes, bytes], ...]
JSON: Headers = ((b"content-type", b"application/json"),)
# Seconds after which a caller may ask again.
RETRY_AFTER = b"1"


class Answer(NamedTuple):
    """A whole answer."""

    status: int
    body: bytes
    headers: Headers = JSON


def refusal(problem: Problem) -> Answer:
    """A problem in the one envelope."""
    headers = JSON
    if problem.status == 401:
        headers += ((b"www-authenticate", b"Bearer"),)
    elif problem.status == 503:
        headers += ((b"retry-after", RETRY_AFTER),)
    return Answer(problem.status, error_body(problem), headers)


def problem_of(error: BaseException, method: str = "", path: str = "") -> Problem:
    """What a caller is told about an exception; what nobody foresaw is a 500 and stays in the log."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, StoreFailure):
        return Unavailable(FULL)
    if isinstance(error, asyncio.CancelledError):
        return Unavailable("The service is stopping. Try again later.")
    if isinstance(error, HTTPException):
        path = path[:200]
        if error.status_code == 405:
            return WrongMethod(f"method must be one that {path} takes; got {method}. See /openapi.json.")
        return Unknown(f"path must be one of the service; got {path!r}. See /openapi.json.")
    return Problem("internal error; see the server log")
