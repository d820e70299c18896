"""Logs of any length, cut into pieces of one size: how a log arrives in batches changes no bit of a result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manul.contexts.maps import Columns
from manul.errors import InputError, ParameterError
from manul.logs.log import Fields, Log
from manul.types import Floats, Within
from manul.utils.validation import check_range

SIZE = 8192
Logs = Log | Iterable[Log]


class Rows(NamedTuple):
    """Some rows of a log; `first` is the number of the first one, `estimated` whether densities are not as logged."""

    first: int
    contexts: npt.NDArray[np.float32]
    actions: Floats
    densities: Floats
    losses: Floats
    lows: Floats | None
    highs: Floats | None
    estimated: bool = False
    fields: Fields | None = None

    def select(self, which: slice | npt.NDArray[np.bool_]) -> Rows:
        """Some of the rows, under the same first number."""
        return Rows(
            self.first,
            self.contexts[which],
            self.actions[which],
            self.densities[which],
            self.losses[which],
            None if self.lows is None else self.lows[which],
            None if self.highs is None else self.highs[which],
            self.estimated,
            None if self.fields is None else {name: values[which] for name, values in self.fields.items()},
        )

    def to_dicts(self) -> list[dict[str, object]]:
        """The contexts by name, gaps left out."""
        assert self.fields is not None
        columns = zip(*(values.tolist() for values in self.fields.values()), strict=True)
        rows = (dict(zip(self.fields, values, strict=True)) for values in columns)
        return [{name: it for name, it in row.items() if it is not None and it == it} for row in rows]

    def function_inputs(self) -> Any:
        """The contexts as a function of one's own gets them: by name where there is text, and else as rows of numbers."""
        if self.fields is None or not self.fields:
            return self.contexts
        if any(values.dtype == object for values in self.fields.values()):
            return self.to_dicts()
        return np.column_stack(list(self.fields.values())).astype(np.float32)

    @property
    def within(self) -> Floats | None:
        """One (low, high) per row, or None where every row has the whole range."""
        return None if self.lows is None or self.highs is None else np.column_stack([self.lows, self.highs])

    def ends(self, actions: Within) -> tuple[Floats, Floats]:
        """The range of each row."""
        if self.lows is None or self.highs is None:
            return np.full(len(self.actions), actions[0]), np.full(len(self.actions), actions[1])
        return self.lows, self.highs


def batches(log: Logs) -> Iterable[Log]:
    """A log as batches: a log is one, and anything that yields logs stays as it is.

    >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
    >>> [len(batch) for batch in batches(log)]
    [4]
    """
    return [log] if isinstance(log, Log) else log


def repeatable(log: Logs, reason: str) -> Iterable[Log]:
    """Batches that can be gone through more than once; refuses a generator.

    >>> len(repeatable([], "dr"))
    0
    """
    found = batches(log)
    if isinstance(found, Iterator):
        raise ParameterError(f"log must be readable twice for {reason}; got an iterator. Pass a list of logs.", "log")
    return found


def pieces(log: Logs, size: int = SIZE) -> Iterator[Rows]:
    """The rows of all batches in pieces of one size; the last one may be shorter.

    Contexts with names are also there as numbers, by the columns of the first batch.

    >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
    >>> [(piece.first, len(piece.actions)) for piece in pieces([log, log], size=3)]
    [(0, 3), (3, 3), (6, 2)]
    """
    held: list[Rows] = []
    first = waiting = 0
    columns: Columns | None = None
    for batch in batches(log):
        columns = Columns.fit(batch.fields) if columns is None and batch.fields is not None else columns
        rows = _rows(batch, columns)
        for start in range(0, len(batch), size):
            held.append(rows.select(slice(start, start + size)))
            waiting += len(held[-1].actions)
            if waiting >= size:
                joined = _concatenate(held, first)
                yield joined.select(slice(0, size))
                held, waiting, first = [joined.select(slice(size, None))], waiting - size, first + size
    if waiting:
        yield _concatenate(held, first)


def declared_ranges(log: Logs, actions: Within | None, losses: Within | None) -> tuple[Within | None, Within]:
    """The ranges of actions and of losses: as given, or as the first batch declares them; losses are else in (0, 1).

    >>> declared_ranges([], (0, 32), None)
    ((0.0, 32.0), (0.0, 1.0))
    """
    look = (actions is None or losses is None) and not isinstance(log, Iterator)
    first = next(iter(batches(log)), None) if look else None
    actions = getattr(first, "action_range", None) if actions is None else actions
    losses = getattr(first, "loss_range", None) if losses is None else losses
    span = None if actions is None else check_range("actions", actions)
    return span, (0.0, 1.0) if losses is None else check_range("losses", losses)


def _rows(batch: Log, columns: Columns | None) -> Rows:
    estimated = bool(getattr(batch, "densities_estimated", False))
    contexts = batch.contexts if columns is None or batch.fields is None else columns.rows(batch.fields)
    given = contexts, batch.actions, batch.densities, batch.losses
    return Rows(0, *given, batch.lows, batch.highs, estimated, batch.fields)


def _concatenate(held: list[Rows], first: int) -> Rows:
    held = [rows for rows in held if len(rows.actions)]
    widths = {rows.contexts.shape[1] for rows in held}
    if len(widths) > 1:
        raise InputError(
            f"contexts must have one width; got {sorted(widths)}. Evaluate such logs one by one.", "contexts"
        )
    if len({None if rows.fields is None else tuple(rows.fields) for rows in held}) > 1:
        raise InputError("logs must have the same fields in one order; got others. Evaluate them one by one.", "logs")
    if len({rows.lows is None for rows in held}) > 1:
        raise InputError("lows and highs must be in all batches or in none; got some. Fill in the whole range.")
    contexts = np.concatenate([rows.contexts for rows in held])
    actions, densities, losses, lows, highs = (
        [getattr(rows, name) for rows in held] for name in ("actions", "densities", "losses", "lows", "highs")
    )
    return Rows(
        first,
        contexts,
        np.concatenate(actions),
        np.concatenate(densities),
        np.concatenate(losses),
        None if lows[0] is None else np.concatenate(lows),
        None if highs[0] is None else np.concatenate(highs),
        any(rows.estimated for rows in held),
        None
        if held[0].fields is None
        else {name: np.concatenate([_field(it, name) for it in held]) for name in held[0].fields},
    )


def _field(rows: Rows, name: str) -> npt.NDArray[Any]:
    assert rows.fields is not None
    return rows.fields[name]
