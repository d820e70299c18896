"""Optimization on logs with named fields: encoded logs to train on, and policies that take the fields."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

from manul.actions.decision import Within
from manul.agents import Mapped
from manul.logs.batching import SIZE, encode_contexts, repeatable
from manul.logs.column_fitting import LogColumns, fit_columns
from manul.logs.log import Log
from manul.offpolicy.optimization.grid import AnyAgent

Logs = Log | Iterable[Log]


def peek(log: Logs) -> tuple[Log | None, Logs]:
    """The first batch of a log and the whole log, which may be an iterator.

    >>> peek([])
    (None, [])
    """
    if isinstance(log, Log):
        return log, log
    if isinstance(log, Iterator):
        first = next(log, None)
        return first, log if first is None else chain([first], log)
    return next(iter(log), None), log


def first_with_contexts(log: Logs, first: Log | None) -> Log | None:
    """The first batch that has contexts, which says what they are like; the first one of an iterator."""
    if isinstance(log, Log | Iterator):
        return first
    return next((batch for batch in log if len(batch) and _has_contexts(batch)), first)


def _has_contexts(batch: Log) -> bool:
    return batch.fields is not None or batch.features is not None or batch.contexts.shape[1] > 0


def choose_range(given: Within | None, declared: Within | None) -> Within:
    """The given range, or the one that a log declares, or (0, 1).

    >>> choose_range(None, (0.0, 32.0)), choose_range(None, None)
    ((0.0, 32.0), (0.0, 1.0))
    """
    return given or declared or (0.0, 1.0)


def columns_of(first: Log, log: Logs) -> LogColumns | None:
    """The columns of a log, fitted to all of its rows; None if the contexts of its first batch are rows of numbers."""
    if first.fields is None and first.features is None:
        return None
    return fit_columns(repeatable(log, "Training on named contexts"))


class Numbers:
    """The batches of a log with their fields encoded as rows of numbers.

    >>> log = Log.from_table({"kind": ["a", "b"], "action": [1, 2], "density": [1, 1], "loss": [0, 1]})
    >>> [batch.contexts.tolist() for batch in Numbers(log, fit_columns(log))]
    [[[1.0, 0.0], [0.0, 1.0]]]
    """

    def __init__(self, log: Logs, columns: LogColumns) -> None:
        self.log, self.columns = log, columns

    def __iter__(self) -> Iterator[Log]:
        for batch in [self.log] if isinstance(self.log, Log) else self.log:
            for first in range(0, len(batch), SIZE):  # encoded contexts may be wide
                part = batch.rows(slice(first, first + SIZE))
                contexts = encode_contexts(self.columns, part.fields, part.features, len(part))
                outcomes = part.actions, part.densities, part.losses, part.lows, part.highs
                yield Log(contexts, *outcomes, floors=part.floors, outcome=replace(part.outcome, range="auto"))


def with_columns(agent: AnyAgent, columns: LogColumns | None) -> AnyAgent | Mapped:
    """A policy that takes the fields of the log instead of encoded rows."""
    return agent if columns is None else Mapped(agent=agent, features=columns)
