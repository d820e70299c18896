"""Rows of a log as estimators, critics and tests read them, whatever their actions and contexts are."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.actions.levels import KnobLevels, Levels
from manul.actions.limits import Left, what_is_left
from manul.actions.pieces import Pieces
from manul.actions.space import ActionSpace
from manul.contexts.schema import MOST_MEMBERS
from manul.contexts.sparse_features import Features, SparseFeatures, concatenate
from manul.contexts.table_encoding import LogColumns
from manul.errors import InputError
from manul.logs.log import Fields, Log
from manul.outcomes import LOSSES, Outcome
from manul.utils.validation import USABLE, Floats, are_within, reject, usable_densities

UNIT = (0.0, 1.0)
NUMBER = ActionSpace(UNIT)
_DENSITY_ADVICE = "Log the density of each decision, or estimate it with manul.offpolicy.estimate_densities."
_FLOOR_ADVICE = "Log the smallest density of any action, or omit floors."


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a log: `first` is the number of the first one, and `estimated` says that densities were not logged.

    `space` is that of the actions, `outcome` says what the losses are, and `scale` is their range.

    Contexts are `numbers`, or named: `fields` by column, or sparse `features`. Fields that an older version logged as numbers
    although they had been dates or lists are in `converted`. Rows whose space is no number have actions and
    `densities_by_knob` as columns by knob, and `knob_ranges`, the narrower ranges of each row.
    """

    first: int
    numbers: npt.NDArray[np.float32] | None
    actions: Any
    densities: Floats
    losses: Floats
    lows: Floats | None = None
    highs: Floats | None = None
    estimated: bool = False
    fields: Fields | None = None
    floors: Floats | None = None
    features: SparseFeatures | None = None
    columns: Callable[[], LogColumns | None] = lambda: None
    space: ActionSpace = NUMBER
    densities_by_knob: dict[str, Floats] | None = None
    knob_ranges: npt.NDArray[Any] | None = None
    outcome: Outcome = LOSSES
    converted: Mapping[str, str] = field(default_factory=dict)
    scale: Within = UNIT
    levels: Levels | None = None

    @classmethod
    def of(
        cls,
        log: Log,
        *,
        space: ActionSpace | None = None,
        scale: Within = UNIT,
        columns: Callable[[], LogColumns | None] = lambda: None,
    ) -> Rows:
        """The rows of one batch; `space` is that of its numbers, and `columns` are those of the contexts of the whole log."""
        named = log.fields is not None or log.features is not None
        return cls(
            0,
            None if named else log.contexts,
            log.actions if log.knobs is None else log.knobs.wrap_columns(log.actions),
            log.densities,
            log.losses,
            log.lows,
            log.highs,
            log.densities_estimated,
            log.fields,
            log.floors,
            log.features,
            columns,
            space if space is not None and space.is_number and log.knobs is None else log.space or NUMBER,
            log.densities_by_knob,
            None if log.within is None else _object_array(log.within),
            log.outcome,
            log.converted,
            scale,
            log.levels,
        )

    def __len__(self) -> int:
        return len(self.losses)

    @cached_property
    def contexts(self) -> npt.NDArray[np.float32]:
        """The contexts as rows of numbers; named ones are encoded, with columns fitted to the whole log."""
        if self.numbers is not None:
            return self.numbers
        return encode_contexts(self.columns(), self.fields, self.features, len(self))

    @cached_property
    def positions(self) -> Floats:
        """The actions, or if they are no numbers, one row of positions per action, as the core takes them."""
        return self.actions if self.space.is_number else self.space.table(self.actions)

    @cached_property
    def shares(self) -> Floats:
        """The losses as shares of their range; raises InputError if a loss, density or floor is unusable."""
        self.outcome.with_losses(self.scale).check(self.losses, self.first)
        reject(~usable_densities(self.densities), self.densities, "density", USABLE, _DENSITY_ADVICE, self.first)
        if self.floors is not None:
            outside = ~(np.isnan(self.floors) | are_within(self.floors, 0.0, self.densities))
            rule = "from 0 to the density of its row, or NaN"
            reject(outside, self.floors, "floor", rule, _FLOOR_ADVICE, self.first)
        return (self.losses - self.scale[0]) / (self.scale[1] - self.scale[0])

    @cached_property
    def pieces(self) -> Pieces | None:
        """What the actions were drawn from, as pieces of constant density by knob; None if the log does not say."""
        return None if self.levels is None else {name: each.pieces for name, each in self.levels.items()}

    @property
    def one_knob(self) -> bool:
        return len(self.space.knobs) == 1

    @property
    def by_knob(self) -> dict[str, Floats] | None:
        """The densities of the knobs; None if they were not logged. A single knob has those of the actions."""
        if self.densities_by_knob is None and self.one_knob:
            return {self.space.names[0]: self.densities}
        return self.densities_by_knob

    @cached_property
    def volumes(self) -> dict[str, Floats]:
        """For each knob, 1 / (its density in each row, if its positions were uniform): the length of a range, or a count."""
        if self.space.is_number:
            lows, highs = self.ends()
            return {self.space.names[0]: highs - lows}
        if self.left is not None:
            return self.left.lengths
        columns = {
            name: knob.units(self.actions[name]) if knob.is_bent else np.full(len(self), knob.volume)
            for name, knob in self.space.knobs
        }
        for row, within in enumerate(() if self.knob_ranges is None else self.knob_ranges):
            ranges = zip(self.space.knobs, *self.space.ranges(within), strict=True)
            for (name, knob), low, high in ranges if within is not None else ():
                columns[name][row] = (high - low) * columns[name][row] if knob.is_bent else knob.size((low, high))
        return columns

    @cached_property
    def left(self) -> Left | None:
        """What the limits between knobs leave in each row; None if there are none."""
        if self.space.limited is None:
            return None
        contexts = self.to_dicts() if self.fields is not None else [None] * len(self)
        within = None if self.knob_ranges is None else [*self.knob_ranges]
        return what_is_left(self.space, self.actions, within, contexts)

    @cached_property
    def relative(self) -> tuple[Floats, Floats]:
        """The positions of the actions, one column per knob, and the densities relative to those of a uniform policy."""
        if self.space.is_number:
            lows, highs = self.ends()
            return ((self.actions - lows) / (highs - lows))[:, np.newaxis], self.densities * (highs - lows)
        return np.asarray(self.positions, np.float64), self.densities * np.prod([*self.volumes.values()], axis=0)

    def knob_rows(self) -> Iterator[tuple[str, Rows]]:
        """The rows as if they had a single number, for each knob whose density is known.

        The joint floor bounds that of each knob. Steps and options count as one action with the density that they have
        relative to equal probabilities, and bent scales as their positions.
        """
        if self.space.is_number:
            yield self.space.names[0], self
            return
        floors = None if self.floors is None else self.floors * np.prod([*self.volumes.values()], axis=0)
        for place, (name, knob) in enumerate(self.space.knobs if self.by_knob is not None else ()):
            densities, lengths = (self.by_knob or {})[name], self.volumes[name]
            given: dict[str, Any] = {"space": NUMBER, "densities_by_knob": None, "knob_ranges": None, "floors": floors}
            given["levels"] = None
            if knob.is_discrete or knob.is_bent:
                positions = np.zeros(len(self)) if knob.is_discrete else self.positions[:, place]
                yield name, replace(self, **given, actions=positions, densities=densities * lengths)
                continue
            given["space"] = ActionSpace(knob)
            given["floors"] = None if floors is None else floors / lengths
            if self.left is not None:
                given |= dict(zip(("lows", "highs"), self.left.ends[name], strict=True))
            elif self.knob_ranges is not None:
                withins = ({} if within is None else self.space.wrap_within(within) for within in self.knob_ranges)
                ends = [within.get(name, given["space"].ends) for within in withins]
                given |= dict(zip(("lows", "highs"), np.array(ends, dtype=np.float64).T, strict=True))
            yield name, replace(self, **given, actions=self.actions[name], densities=densities)

    def context_names(self) -> list[str]:
        """The names of the columns of the contexts, or their numbers if contexts have no names."""
        fitted = None if self.numbers is not None else self.columns()
        return [str(number) for number in range(self.contexts.shape[1])] if fitted is None else list(fitted.names())

    def select(self, which: slice | npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Rows:
        """A selection of the rows; `first` stays as it is."""
        arrays: dict[str, Any] = {name: _take(vars(self)[name], which) for name in _ARRAYS}
        features = None if self.features is None else self.features.select(which)
        levels = None if self.levels is None else {name: each.select(which) for name, each in self.levels.items()}
        return replace(self, **arrays, features=features, levels=levels)

    def to_dicts(self) -> list[dict[str, object]]:
        """The contexts as dicts; missing values are None, which absent ones are, too.

        >>> import manul
        >>> log = manul.Log([{"vip": True, "age": None}, {"vip": False, "age": 31, "sky": "grey"}], *np.ones((3, 2)))
        >>> Rows.of(log).to_dicts()
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
        """One (low, high) or, if actions are no numbers, narrower range per row, or None if every row has the whole range."""
        if not self.space.is_number:
            return self.knob_ranges
        return None if self.lows is None or self.highs is None else np.column_stack([self.lows, self.highs])

    def ends(self, span: Within | None = None) -> tuple[Floats, Floats]:
        """The lower and upper ends of the range of each row; of rows without one, those of `span`."""
        if self.lows is None or self.highs is None:
            low, high = self.space.ends if span is None else span
            return np.full(len(self), low), np.full(len(self), high)
        return self.lows, self.highs


def encode_contexts(
    columns: LogColumns | None, fields: Fields | None, features: SparseFeatures | None, count: int
) -> npt.NDArray[np.float32]:
    """Encode `count` named contexts as rows of numbers; a batch without any context has missing values only."""
    if isinstance(columns, Features):
        return columns.rows(features) if features is not None else np.zeros((count, len(columns.columns)), np.float32)
    return np.empty((count, 0), np.float32) if columns is None else columns.rows(fields or {}, count)


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
    """The columns by knob; parts without ranges have the whole ones, and densities by knob must be in all parts."""
    if parts[0].space.is_number:
        return {}
    by_knob = [rows.densities_by_knob for rows in parts]
    ranges = [rows.knob_ranges for rows in parts]
    whole = all(each is None for each in ranges)
    filled = [_object_array([None] * len(rows)) if rows.knob_ranges is None else rows.knob_ranges for rows in parts]
    return {
        "densities_by_knob": None if any(each is None for each in by_knob) else _join(by_knob),
        "knob_ranges": None if whole else np.concatenate(filled),
    }


def join_rows(parts: list[Rows], first: int) -> Rows:
    """The rows of several batches, which must be alike, numbered from `first`."""
    parts = [rows for rows in parts if len(rows)]
    if len({rows.lows is None for rows in parts}) > 1:
        raise InputError("lows and highs must be in all batches or in none. Fill in the whole range.", "lows")
    if len(parts) == 1:
        return replace(parts[0], first=first)
    contexts = _concatenate_contexts(parts)
    knobs = _join_knobs(parts)
    arrays: dict[str, Any] = {
        name: _join([vars(rows)[name] for rows in parts])
        for name in ("actions", "densities", "losses", "lows", "highs")
    }
    estimated = any(rows.estimated for rows in parts)
    marks: dict[str, Any] = {
        "estimated": estimated,
        "converted": dict(ChainMap(*(dict(rows.converted) for rows in parts))),
    }
    marks["levels"] = _levels(parts)
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
        parts = [_object_array(_with_gaps(values)) for values in parts]
    return np.concatenate(parts)


def _floors(parts: list[Rows]) -> Floats | None:
    """The floors, with NaN for batches without; None if no batch has any."""
    if all(rows.floors is None for rows in parts):
        return None
    return np.concatenate([np.full(len(rows), np.nan) if rows.floors is None else rows.floors for rows in parts])


def _levels(parts: list[Rows]) -> Levels | None:
    """The levels, unknown for batches without; None if no batch has any."""
    if all(rows.levels is None for rows in parts):
        return None
    known = next(rows.levels for rows in parts if rows.levels is not None)
    joined = {}
    for name, one in known.items():
        own = [one.unknown(len(rows)) if rows.levels is None else rows.levels[name] for rows in parts]
        joined[name] = KnobLevels.join(own)
    return joined


def _object_array(values: Sequence[Any]) -> npt.NDArray[Any]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array
