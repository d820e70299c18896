"""Responses as they are sent, and the conversion of exceptions to error responses."""

from __future__ import annotations

import asyncio
from http import HTTPStatus
from typing import NamedTuple

from starlette.exceptions import HTTPException

from manul.service.engine.group_commit import UNWRITABLE
from manul.service.errors import INTERNAL, Problem, TooManyRequests, Unavailable, Unknown, WrongMethod
from manul.service.http.bodies import error_body
from manul.service.store import StoreFailure

Headers = tuple[tuple[bytes, bytes], ...]
JSON: Headers = ((b"content-type", b"application/json"),)
# The Retry-After header of a 503, in seconds.
RETRY_AFTER = b"1"


class Answer(NamedTuple):
    status: int
    body: bytes
    headers: Headers = JSON


STATUS_LINES = {each.value: b"HTTP/1.1 %d %b\r\n" % (each.value, each.phrase.encode()) for each in HTTPStatus}


def header_lines(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % header for header in headers])


JSON_LINES = header_lines(JSON)


def encode(answer: Answer, request_id: bytes, date: bytes, *, close: bool) -> bytes:
    """A whole response; with `close`, it is the last one of its connection."""
    lines = JSON_LINES if answer.headers is JSON else header_lines(answer.headers)
    if close:
        lines += b"connection: close\r\n"
    told = (STATUS_LINES[answer.status], date, len(answer.body), request_id, lines, answer.body)
    return b"%bdate: %b\r\ncontent-length: %d\r\nx-request-id: %b\r\n%b\r\n%b" % told


def refusal(problem: Problem) -> Answer:
    headers = JSON
    if problem.status == 401:
        headers += ((b"www-authenticate", b"Bearer"),)
    elif problem.status == 503:
        headers += ((b"retry-after", RETRY_AFTER),)
    elif isinstance(problem, WrongMethod):
        headers += ((b"allow", problem.allow.encode()),)
    elif isinstance(problem, TooManyRequests):
        headers += ((b"retry-after", b"%d" % problem.seconds),)
    return Answer(problem.status, error_body(problem), headers)


def problem_of(error: BaseException, method: str = "", path: str = "") -> Problem:
    """The problem to report for an exception. Details of unexpected exceptions go to the log only."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, StoreFailure):
        return Unavailable(UNWRITABLE)
    if isinstance(error, asyncio.CancelledError):
        return Unavailable("The service is stopping. Try again later.")
    if isinstance(error, HTTPException):
        path = path[:200]
        if error.status_code == 405:
            allow = (error.headers or {}).get("Allow", "GET, HEAD")
            return WrongMethod(f"Method {method} is not allowed for {path}. See /openapi.json.", allow)
        return Unknown(f"No such path: {path}. See /openapi.json.")
    return Problem(INTERNAL)
