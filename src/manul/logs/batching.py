"""Batches of a log, regrouped into pieces of a fixed size, so that results do not depend on the batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manul.contexts.maps import Columns
from manul.errors import InputError, ParameterError
from manul.logs.log import Fields, Log
from manul.types import Floats, Within
from manul.utils.rewards import AnyRange, check_any_range
from manul.utils.validation import check_range

SIZE = 8192  # rows per piece; results depend on it in the last digits
Logs = Log | Iterable[Log]


class Rows(NamedTuple):
    """Rows of a log; `first` is the number of the first row, `estimated` whether the densities were estimated."""

    first: int
    contexts: npt.NDArray[np.float32]
    actions: Floats
    densities: Floats
    losses: Floats
    lows: Floats | None
    highs: Floats | None
    estimated: bool = False
    fields: Fields | None = None
    floors: Floats | None = None

    def select(self, which: slice | npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Rows:
        """A selection of the rows; `first` stays as it is."""
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
            None if self.floors is None else self.floors[which],
        )

    def to_dicts(self) -> list[dict[str, object]]:
        """The contexts as dicts, without missing values."""
        assert self.fields is not None
        columns = zip(*(values.tolist() for values in self.fields.values()), strict=True)
        rows = (dict(zip(self.fields, values, strict=True)) for values in columns)
        return [{name: value for name, value in row.items() if value is not None and value == value} for row in rows]

    def function_inputs(self) -> Any:
        """The contexts for a policy that is a plain function: dicts if there is text, otherwise rows of numbers."""
        if self.fields is None or not self.fields:
            return self.contexts
        if any(values.dtype == object for values in self.fields.values()):
            return self.to_dicts()
        return np.column_stack(list(self.fields.values())).astype(np.float32)

    @property
    def within(self) -> Floats | None:
        """One (low, high) per row, or None if every row has the whole range."""
        return None if self.lows is None or self.highs is None else np.column_stack([self.lows, self.highs])

    def ends(self, actions: Within) -> tuple[Floats, Floats]:
        """The lower and upper ends of the range of each row."""
        if self.lows is None or self.highs is None:
            return np.full(len(self.actions), actions[0]), np.full(len(self.actions), actions[1])
        return self.lows, self.highs


def batches(log: Logs) -> Iterable[Log]:
    """The batches of a log; a single log is one batch.

    >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
    >>> [len(batch) for batch in batches(log)]
    [4]
    """
    return [log] if isinstance(log, Log) else log


def repeatable(log: Logs, reason: str) -> Iterable[Log]:
    """The batches of a log that is read twice; rejects iterators, which can be read only once.

    >>> len(repeatable([], "dr"))
    0
    """
    result = batches(log)
    if isinstance(result, Iterator):
        raise ParameterError(f"{reason} reads the log twice, but log is an iterator. Pass a list of logs.", "log")
    return result


def pieces(log: Logs, size: int = SIZE) -> Iterator[Rows]:
    """The rows of all batches in pieces of one size; the last one may be shorter.

    Named fields are also encoded as numbers, with the columns of the first batch.

    >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
    >>> [(piece.first, len(piece.actions)) for piece in pieces([log, log], size=3)]
    [(0, 3), (3, 3), (6, 2)]
    """
    buffer: list[Rows] = []
    first = count = 0
    columns: Columns | None = None
    for batch in batches(log):
        columns = Columns.fit(batch.fields) if columns is None and batch.fields is not None else columns
        rows = _rows(batch, columns)
        for start in range(0, len(batch), size):
            buffer.append(rows.select(slice(start, start + size)))
            count += len(buffer[-1].actions)
            if count >= size:
                piece = _concatenate(buffer, first)
                yield piece.select(slice(0, size))
                buffer, count, first = [piece.select(slice(size, None))], count - size, first + size
    if count:
        yield _concatenate(buffer, first)


def declared_ranges(log: Logs, actions: Within | None, losses: AnyRange | None) -> tuple[Within | None, Within]:
    """The ranges of actions and losses: the given ones, or those that the first batch declares; losses default to (0, 1).

    If losses are "auto", their range is that of the log.

    >>> declared_ranges([], (0, 32), None)
    ((0.0, 32.0), (0.0, 1.0))
    """
    if isinstance(losses, str):
        check_any_range("losses", losses, kind=None)
        losses = observed_range(repeatable(log, "losses='auto'"))
    undeclared = (actions is None or losses is None) and not isinstance(log, Iterator)
    first = next(iter(batches(log)), None) if undeclared else None
    actions = getattr(first, "action_range", None) if actions is None else actions
    losses = getattr(first, "loss_range", None) if losses is None else losses
    span = None if actions is None else check_range("actions", actions)
    return span, (0.0, 1.0) if losses is None else check_range("losses", losses)


def observed_range(log: Logs) -> Within:
    """The smallest range that contains the losses of a log, within 1e100; wider if all are equal.

    >>> observed_range([])
    (0.0, 1.0)
    """
    ends = [(float(batch.losses.min()), float(batch.losses.max())) for batch in batches(log) if len(batch)]
    low, high = min((end for end, _ in ends), default=0.0), max((end for _, end in ends), default=0.0)
    low, high = max(low, -1e100), min(high, 1e100)
    return low, high if low < high else low + max(1.0, 1e-9 * abs(low))


def _rows(batch: Log, columns: Columns | None) -> Rows:
    estimated = bool(getattr(batch, "densities_estimated", False))
    contexts = batch.contexts if columns is None or batch.fields is None else columns.rows(batch.fields)
    numbers = contexts, batch.actions, batch.densities, batch.losses
    return Rows(0, *numbers, batch.lows, batch.highs, estimated, batch.fields, batch.floors)


def _concatenate(parts: list[Rows], first: int) -> Rows:
    parts = [rows for rows in parts if len(rows.actions)]
    widths = {rows.contexts.shape[1] for rows in parts}
    if len(widths) > 1:
        raise InputError(f"The contexts of all batches must have the same width, got {sorted(widths)}.", "contexts")
    if len({None if rows.fields is None else tuple(rows.fields) for rows in parts}) > 1:
        raise InputError("All batches must have the same fields in the same order.", "contexts")
    if len({rows.lows is None for rows in parts}) > 1:
        raise InputError("lows and highs must be in all batches or in none. Fill in the whole range.", "lows")
    contexts = np.concatenate([rows.contexts for rows in parts])
    actions, densities, losses, lows, highs = (
        [getattr(rows, name) for rows in parts] for name in ("actions", "densities", "losses", "lows", "highs")
    )
    return Rows(
        first,
        contexts,
        np.concatenate(actions),
        np.concatenate(densities),
        np.concatenate(losses),
        None if lows[0] is None else np.concatenate(lows),
        None if highs[0] is None else np.concatenate(highs),
        any(rows.estimated for rows in parts),
        None
        if parts[0].fields is None
        else {name: np.concatenate([_field(rows, name) for rows in parts]) for name in parts[0].fields},
        _floors(parts),
    )


def _floors(parts: list[Rows]) -> Floats | None:
    """The floors, with NaN for batches without; None if no batch has any."""
    if all(rows.floors is None for rows in parts):
        return None
    return np.concatenate(
        [np.full(len(rows.actions), np.nan) if rows.floors is None else rows.floors for rows in parts]
    )


def _field(rows: Rows, name: str) -> npt.NDArray[Any]:
    assert rows.fields is not None
    return rows.fields[name]
