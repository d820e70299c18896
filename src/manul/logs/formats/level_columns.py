"""The column `density_levels` of a log: what each action was drawn from.

In Arrow and Parquet it is a list of the levels of each row (`actions.levels`), or a struct of such lists by knob; in JSON, CSV
and data frames, a level is a list of four numbers: low, high, share and nearby. A row without levels has an unknown distribution.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.actions.levels import KnobLevels, Levels
from manul.actions.space import UNNAMED, ActionSpace
from manul.utils.validation import Flags, Floats

if TYPE_CHECKING:
    import pyarrow as pa

LEVELS = "density_levels"
RULE = "lists of low, high, share and nearby, with shares whose sum is 1, or missing"
_FIELDS = ("low", "high", "share", "nearby")
_ROUNDING = 1e-6  # of the sum of shares, which people may have rounded


def level_type(space: ActionSpace | None) -> pa.DataType:
    """The Arrow type of the column of a log with actions of a `space`; None if they are numbers."""
    import pyarrow as pa

    each = pa.list_(pa.struct([(name, pa.float64()) for name in _FIELDS]))
    return pa.struct([(name, each) for name in space.names]) if space is not None and space.is_named else each


def level_array(levels: Levels, space: ActionSpace | None) -> pa.Array:
    """The column of `levels` by knob."""
    import pyarrow as pa

    parts = []
    for each in levels.values():
        columns = [pa.array(column, pa.float64()) for column in each.columns().values()]
        members = pa.StructArray.from_arrays(columns, [*_FIELDS])
        parts.append(pa.ListArray.from_arrays(pa.array(each.starts, pa.int32()), members))
    wanted = level_type(space)
    if space is None or not space.is_named:
        return parts[0].cast(wanted)
    return pa.StructArray.from_arrays(parts, [*levels]).cast(wanted)


def levels_of_column(column: pa.Array, space: ActionSpace | None) -> dict[str, KnobLevels]:
    """The levels by knob of a `column` of a log."""
    import pyarrow as pa

    knobs = {} if space is None else dict(space.knobs)
    if pa.types.is_struct(column.type):
        parts = dict(zip((field.name for field in column.type), column.flatten(), strict=True))
    else:
        parts = {UNNAMED: column}
    levels = {}
    for name, part in parts.items():
        counts = np.asarray(part.value_lengths().fill_null(0), dtype=np.int64)
        starts = np.concatenate([[0], np.cumsum(counts)])
        lows, highs, shares, nearby = (_numbers(each) for each in part.flatten().flatten())
        is_discrete = name in knobs and knobs[name].is_discrete
        levels[name] = KnobLevels(starts, lows, highs, shares, nearby, is_discrete)
    return levels


def _numbers(column: pa.Array) -> Floats:
    return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def are_levels(column: pa.Array, space: ActionSpace | None) -> Flags:
    """Flag the rows whose levels are missing or can be those of a distribution, for each knob."""
    good = np.ones(len(column), dtype=np.bool_)
    for levels in levels_of_column(column, space).values():
        finite = np.isfinite(levels.lows) & np.isfinite(levels.highs) & (levels.lows < levels.highs)
        usable = finite & (levels.shares >= 0) & (levels.nearby >= 0) & (levels.nearby <= 1)
        counts = np.diff(levels.starts)
        rows = np.repeat(np.arange(len(column)), counts)
        totals = np.bincount(rows, np.where(usable, levels.shares, np.nan), len(column))
        good &= (counts == 0) | (np.abs(totals - 1.0) <= _ROUNDING)
    return good


def level_texts(column: pa.Array) -> list[str | None]:
    """The levels of each row as JSON, with None for unknown ones."""
    levels = levels_of_column(column, None)
    rows = [{name: each.row(row) for name, each in levels.items()} for row in range(len(column))]
    return [_text(row) if any(row.values()) else None for row in rows]


def _text(row: Mapping[str, Any]) -> str:
    return json.dumps(row[UNNAMED] if [*row] == [UNNAMED] else row, ensure_ascii=False)


def parse_levels(given: Any, space: ActionSpace | None) -> Any:
    """The levels of one row as Arrow takes them, from JSON or its text; raises ValueError if they are invalid.

    >>> parse_levels("[[0, 1, 1, 0]]", None)
    [{'low': 0.0, 'high': 1.0, 'share': 1.0, 'nearby': 0.0}]
    """
    if isinstance(given, str):
        given = json.loads(given) if given.strip() else None
    if given is None or given != given:
        return None
    if space is None or not space.is_named:
        return _parse_knob(given)
    if not isinstance(given, Mapping) or {*given} != {*space.names}:
        raise ValueError
    return {name: None if given[name] is None else _parse_knob(given[name]) for name in space.names}


def _parse_knob(given: Any) -> list[dict[str, float]]:
    if not isinstance(given, list | tuple):
        raise ValueError
    return [_parse_level(each) for each in given]


def _parse_level(given: Any) -> dict[str, float]:
    numbers = [given[name] for name in _FIELDS] if isinstance(given, Mapping) and {*given} == {*_FIELDS} else given
    if not isinstance(numbers, list | tuple) or len(numbers) != len(_FIELDS):
        raise ValueError
    if not all(isinstance(each, int | float) and not isinstance(each, bool) for each in numbers):
        raise ValueError
    return dict(zip(_FIELDS, map(float, numbers), strict=True))
