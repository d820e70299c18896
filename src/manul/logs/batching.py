"""Batches of a log, regrouped into pieces of a fixed size, so that results do not depend on the batches."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.actions.knob_positions import position_table
from manul.actions.knobs import Knobs
from manul.contexts.schema import MOST_MEMBERS
from manul.contexts.sparse_features import Features, SparseFeatures, concatenate
from manul.errors import InputError, ParameterError
from manul.logs.column_fitting import LogColumns, fit_columns
from manul.logs.knob_views import object_array, require_one_knob
from manul.logs.log import Log
from manul.logs.view_mixin import Fields
from manul.utils.rewards import AnyRange, check_any_range, check_ranges
from manul.utils.validation import Floats, check_range

SIZE = 8192  # rows per piece; results depend on it in the last digits
Logs = Log | Iterable[Log]


class WholeLogColumns:
    """The columns of a log, fitted to all of its rows when they are first needed.

    >>> WholeLogColumns([]).fitted
    """

    def __init__(self, log: Logs) -> None:
        self._log = log

    @cached_property
    def fitted(self) -> LogColumns | None:
        """The columns; None if contexts are rows of numbers."""
        return fit_columns(repeatable(self._log, "Encoding named contexts"))


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a log; `first` is the number of the first row, `estimated` whether the densities were estimated.

    `rewards` says that the losses are negative rewards.

    Contexts are `numbers`, or named: `fields` by column, or sparse `features`. Fields that an older version logged as numbers
    although they had been dates or lists are in `converted`. Rows with several `knobs` have actions and
    `densities_by_knob` as columns by knob, and `knob_ranges`, the narrower ranges of each row.
    """

    first: int
    numbers: npt.NDArray[np.float32] | None
    actions: Any
    densities: Floats
    losses: Floats
    lows: Floats | None
    highs: Floats | None
    estimated: bool = False
    fields: Fields | None = None
    floors: Floats | None = None
    features: SparseFeatures | None = None
    columns: WholeLogColumns | None = None
    knobs: Knobs | None = None
    densities_by_knob: dict[str, Floats] | None = None
    knob_ranges: npt.NDArray[Any] | None = None
    rewards: bool = False
    converted: Mapping[str, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.losses)

    @property
    def named(self) -> bool:
        return self.numbers is None

    @cached_property
    def contexts(self) -> npt.NDArray[np.float32]:
        """The contexts as rows of numbers; named ones are encoded, with columns fitted to the whole log."""
        if self.numbers is not None:
            return self.numbers
        assert self.columns is not None
        return encode_contexts(self.columns.fitted, self.fields, self.features, len(self))

    @cached_property
    def positions(self) -> Floats:
        """The actions, or with several knobs, one row of positions per action, as the core takes them."""
        return self.actions if self.knobs is None else position_table(self.knobs, self.actions)

    def select(self, which: slice | npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Rows:
        """A selection of the rows; `first` stays as it is."""
        arrays: dict[str, Any] = {name: _take(getattr(self, name), which) for name in _ARRAYS}
        features = None if self.features is None else self.features.select(which)
        return replace(self, **arrays, features=features)

    def to_dicts(self) -> list[dict[str, object]]:
        """The contexts as dicts; missing values are None, which absent ones are, too.

        >>> import manul
        >>> log = manul.Log([{"vip": True, "age": None}, {"vip": False, "age": 31, "sky": "grey"}], *np.ones((3, 2)))
        >>> next(pieces(log)).to_dicts()
        [{'vip': True, 'age': None, 'sky': None}, {'vip': False, 'age': 31.0, 'sky': 'grey'}]
        """
        if self.features is not None:
            return self.features.to_dicts()
        assert self.fields is not None
        if not self.fields:
            return [{} for _ in self.losses]
        columns = zip(*map(_with_gaps, self.fields.values()), strict=True)
        rows = [dict(zip(self.fields, values, strict=True)) for values in columns]
        if len(self.fields) <= MOST_MEMBERS:
            return rows
        return [{name: value for name, value in row.items() if value is not None} for row in rows]

    def named_contexts(self) -> Any:
        """The contexts as the batch methods of agents take them: columns by name, or dicts if they are sparse."""
        if not self.fields or len(self.fields) > MOST_MEMBERS:
            return self.to_dicts()
        return {name: values.tolist() if values.dtype == object else values for name, values in self.fields.items()}

    def function_inputs(self) -> Any:
        """The contexts for a policy that is a plain function: rows of numbers, or dicts if there is text or features.

        Dicts are without missing values, so that functions may use `get` with a default.
        """
        if self.numbers is not None:
            return self.numbers
        if not self.fields or any(values.dtype != np.float64 for values in self.fields.values()):
            rows = self.to_dicts()
            return [{name: value for name, value in row.items() if value is not None} for row in rows]
        return np.column_stack(list(self.fields.values())).astype(np.float32)

    @property
    def within(self) -> npt.NDArray[Any] | None:
        """One (low, high) or, for several knobs, mapping per row, or None if every row has the whole range."""
        if self.knobs is not None:
            return self.knob_ranges
        return None if self.lows is None or self.highs is None else np.column_stack([self.lows, self.highs])

    def ends(self, actions: Within) -> tuple[Floats, Floats]:
        """The lower and upper ends of the range of each row."""
        if self.lows is None or self.highs is None:
            return np.full(len(self), actions[0]), np.full(len(self), actions[1])
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


def pieces(log: Logs, size: int = SIZE, *, several: bool = False) -> Iterator[Rows]:
    """The rows of all batches in pieces of one size; the last one may be shorter. Without `several`, rejects several knobs.

    >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
    >>> [(piece.first, len(piece)) for piece in pieces([log, log], size=3)]
    [(0, 3), (3, 3), (6, 2)]
    """
    buffer: list[Rows] = []
    first = count = 0
    columns = WholeLogColumns(log)
    for batch in same_outcomes(batches(log)):
        if not several:
            require_one_knob(batch, "This function")
        rows = _rows(batch, columns)
        for start in range(0, len(batch), size):
            buffer.append(rows.select(slice(start, start + size)))
            count += len(buffer[-1])
            if count >= size:
                piece = _concatenate(buffer, first)
                yield piece.select(slice(0, size))
                buffer, count, first = [piece.select(slice(size, None))], count - size, first + size
    if count:
        yield _concatenate(buffer, first)


def same_outcomes(log: Iterable[Log]) -> Iterator[Log]:
    """The batches of a log, which must all have losses or all have rewards.

    >>> row = np.zeros((1, 1), np.float32), np.ones(1), np.ones(1), np.ones(1)
    >>> list(same_outcomes([Log(*row), Log(*row, rewards=True)]))
    Traceback (most recent call last):
    manul.errors.InputError: logs must all have losses or all have rewards, got both.
    """
    rewards = None
    for batch in log:
        if rewards not in (None, has_rewards(batch)):
            raise InputError("logs must all have losses or all have rewards, got both.", "logs")
        rewards = has_rewards(batch)
        yield batch


def encode_contexts(
    columns: LogColumns | None, fields: Fields | None, features: SparseFeatures | None, count: int
) -> npt.NDArray[np.float32]:
    """Encode `count` named contexts as rows of numbers; a batch without any context has missing values only.

    >>> log = Log.from_table({"kind": ["a", "b"], "action": [1, 2], "density": [1, 1], "loss": [0, 1]})
    >>> encode_contexts(fit_columns(log), log.fields, None, 2).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    if isinstance(columns, Features):
        return columns.rows(features) if features is not None else np.zeros((count, len(columns.columns)), np.float32)
    return np.empty((count, 0), np.float32) if columns is None else columns.rows(fields or {}, count)


def has_rewards(first: Log | None) -> bool:
    """Whether the first batch of a log has rewards.

    >>> has_rewards(None)
    False
    """
    return first is not None and first.rewards is not None


def as_loss_range(first: Log | None, losses: AnyRange | None, rewards: AnyRange | None) -> AnyRange | None:
    """The range of losses that is given as such or as `rewards`, which only a log of rewards has; None if none is given.

    >>> log = Log(np.zeros((1, 1), np.float32), np.ones(1), np.ones(1), np.ones(1), rewards=True)
    >>> as_loss_range(log, None, (0, 100))
    (-100.0, 0.0)
    """
    if rewards is None:
        return losses
    span, _ = check_ranges(losses, rewards, kind=None)
    if first is not None and not has_rewards(first):
        raise ParameterError("rewards is for logs of rewards; this one has losses. Use losses=(low, high).", "rewards")
    return span


def declared_ranges(log: Logs, actions: Within | None, losses: AnyRange | None) -> tuple[Within | None, Within]:
    """The ranges of actions and losses: the given ones, or those that the first batch declares; losses default to (0, 1).

    If losses are "auto", their range is that of the log.

    >>> declared_ranges([], (0, 32), None)
    ((0.0, 32.0), (0.0, 1.0))
    """
    if isinstance(losses, str):
        check_any_range("losses", losses, kind=None)
        losses = observed_range(repeatable(log, "The range 'auto'"))
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


def _rows(batch: Log, columns: WholeLogColumns) -> Rows:
    named = batch.fields is not None or batch.features is not None
    rows = Rows(
        0,
        None if named else batch.contexts,
        batch.actions,
        batch.densities,
        batch.losses,
        batch.lows,
        batch.highs,
        batch.densities_estimated,
        batch.fields,
        batch.floors,
        batch.features,
        columns,
        rewards=has_rewards(batch),
        converted=batch.converted,
    )
    if batch.knobs is None:
        return rows
    ranges = None if batch.within is None else object_array(batch.within)
    return replace(rows, knobs=batch.knobs, densities_by_knob=batch.densities_by_knob, knob_ranges=ranges)


_KNOB_COLUMNS = ("densities_by_knob", "knob_ranges")
_ARRAYS = ("numbers", "actions", "densities", "losses", "lows", "highs", "fields", "floors", *_KNOB_COLUMNS)


def _with_gaps(values: npt.NDArray[Any]) -> list[Any]:
    """The values of a field with None for missing ones."""
    listed: list[Any] = values.tolist()
    if values.dtype == np.float64:
        for place in np.flatnonzero(np.isnan(values)).tolist():
            listed[place] = None
    return listed


def _take(array: Any, which: Any) -> Any:
    """A selection of the rows of an array, or of the arrays of a dict."""
    if isinstance(array, dict):
        return {name: values[which] for name, values in array.items()}
    return None if array is None else array[which]


def _join(arrays: list[Any]) -> Any:
    """The arrays one after the other, or the arrays of dicts; None if the first is None."""
    if isinstance(arrays[0], dict):
        return {name: np.concatenate([array[name] for array in arrays]) for name in arrays[0]}
    return None if arrays[0] is None else np.concatenate(arrays)


def _join_knobs(parts: list[Rows]) -> dict[str, Any]:
    """The columns of several knobs; parts without ranges have the whole ones, and densities by knob must be in all parts."""
    knobs = parts[0].knobs
    if any(rows.knobs != knobs for rows in parts):
        raise InputError("All batches must have the same knobs.", "log")
    if knobs is None:
        return {}
    by_knob = [rows.densities_by_knob for rows in parts]
    ranges = [rows.knob_ranges for rows in parts]
    whole = all(each is None for each in ranges)
    filled = [object_array([None] * len(rows)) if rows.knob_ranges is None else rows.knob_ranges for rows in parts]
    return {
        "densities_by_knob": None if any(each is None for each in by_knob) else _join(by_knob),
        "knob_ranges": None if whole else np.concatenate(filled),
    }


def _concatenate(parts: list[Rows], first: int) -> Rows:
    parts = [rows for rows in parts if len(rows)]
    if len({rows.lows is None for rows in parts}) > 1:
        raise InputError("lows and highs must be in all batches or in none. Fill in the whole range.", "lows")
    if len(parts) == 1:
        return replace(parts[0], first=first)
    contexts = _concatenate_contexts(parts)
    knobs = _join_knobs(parts)
    arrays: dict[str, Any] = {
        name: _join([getattr(rows, name) for rows in parts])
        for name in ("actions", "densities", "losses", "lows", "highs")
    }
    estimated = any(rows.estimated for rows in parts)
    marks: dict[str, Any] = {
        "estimated": estimated,
        "converted": dict(ChainMap(*(dict(rows.converted) for rows in parts))),
    }
    return replace(parts[0], first=first, floors=_floors(parts), **marks, **arrays, **knobs, **contexts)


def _concatenate_contexts(parts: list[Rows]) -> dict[str, Any]:
    """The contexts of all parts; parts without any context have missing values if others have names."""
    bare = [rows.numbers is not None and not rows.numbers.shape[1] for rows in parts]
    kinds = {_kind(rows) for rows, is_bare in zip(parts, bare, strict=True) if not is_bare}
    if len(kinds) > 1:
        raise InputError("All batches must have rows of numbers, or all must have named contexts.", "contexts")
    if kinds == {"fields"}:
        return {"numbers": None, "fields": _fields(parts)}
    if kinds == {"features"}:
        return {"numbers": None, "features": concatenate([_features(rows) for rows in parts])}
    numbers = [rows.numbers for rows in parts if rows.numbers is not None]
    widths = {rows.shape[1] for rows in numbers}
    if len(widths) > 1:
        raise InputError(f"The contexts of all batches must have the same width, got {sorted(widths)}.", "contexts")
    return {"numbers": np.concatenate(numbers)}


def _kind(rows: Rows) -> str:
    return "features" if rows.features is not None else "fields" if rows.fields is not None else "numbers"


def _features(rows: Rows) -> SparseFeatures:
    nothing = np.empty(0, np.int64)
    empty = SparseFeatures((), np.zeros(len(rows) + 1, np.int64), nothing, nothing.astype(np.float64))
    return rows.features or empty


def _fields(parts: list[Rows]) -> Fields:
    names = dict.fromkeys(name for rows in parts for name in rows.fields or {})
    return {name: _field([_values(rows, name) for rows in parts]) for name in names}


def _values(rows: Rows, name: str) -> npt.NDArray[Any]:
    values = (rows.fields or {}).get(name)
    return np.full(len(rows), np.nan) if values is None else values


def _field(parts: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """The values of a column; if parts differ in type, as those do that have only missing values, missing ones are None."""
    if len({values.dtype for values in parts}) > 1:
        parts = [object_array(_with_gaps(values)) for values in parts]
    return np.concatenate(parts)


def _floors(parts: list[Rows]) -> Floats | None:
    """The floors, with NaN for batches without; None if no batch has any."""
    if all(rows.floors is None for rows in parts):
        return None
    return np.concatenate([np.full(len(rows), np.nan) if rows.floors is None else rows.floors for rows in parts])
