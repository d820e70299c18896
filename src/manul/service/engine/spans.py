"""Spans of traces: how the threads of the engine tell how long their work takes, if somebody collects that."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

NOTHING: AbstractContextManager[Any] = nullcontext()


class SpanMaker(Protocol):
    """Makes a context manager that measures what runs inside it."""

    def __call__(self, name: str, **attributes: str | int) -> AbstractContextManager[Any]:
        """Start a span."""


def no_span(name: str, **attributes: str | int) -> AbstractContextManager[Any]:  # noqa: ARG001
    return NOTHING
