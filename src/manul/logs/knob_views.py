"""The columns of a log with several knobs that is made of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from manul.actions.knob_positions import position_table
from manul.actions.knobs import Choice, Knobs, Span
from manul.actions.limits import field_values
from manul.errors import InputError, ParameterError
from manul.logs.formats import knob_checks
from manul.utils.validation import Floats


def check_knobs(knobs: Mapping[str, Any] | Knobs | None) -> Knobs | None:
    """The knobs, which are given as to an agent.

    >>> check_knobs({"price": (10, 50)}).names
    ['price']
    """
    if knobs is None or isinstance(knobs, Knobs):
        return knobs
    if not isinstance(knobs, Mapping):
        raise ParameterError(f"knobs must be a mapping of names to knobs, got {knobs!r}.", "knobs")
    return Knobs.check(knobs)


def knob_views(knobs: Knobs | None, views: Mapping[str, Any]) -> dict[str, Any]:
    """The actions, densities by knob and narrower ranges in the form of a log; those with one knob have no such columns."""
    if knobs is None:
        for name in ("densities_by_knob", "within"):
            if views[name] is not None:
                raise ParameterError(f"{name} is for logs with several knobs. Pass knobs={{...}} too.", name)
        if isinstance(views["actions"], Mapping):
            raise ParameterError("actions are columns by knob, so a log needs knobs={...} too.", "knobs")
        return {}
    for name in ("lows", "highs", "action_range"):
        if views[name] is not None:
            raise ParameterError(f"{name} is for logs with one knob. Give knobs their ranges, or use within.", name)
    densities, withins = views["densities_by_knob"], views["within"]
    return {
        "actions": knob_checks.check_actions(views["actions"], knobs),
        "densities_by_knob": None if densities is None else _densities(densities, knobs),
        "within": None if withins is None else _withins(withins, knobs),
    }


def lengths(views: Mapping[str, Any]) -> set[int]:
    """The lengths of columns, some of which are columns by knob.

    >>> lengths({"actions": {"price": [1, 2]}, "losses": [0], "times": None})
    {1, 2}
    """
    columns = [column for column in views.values() if column is not None]
    parts = [part for column in columns for part in (column.values() if isinstance(column, dict) else [column])]
    return {len(part) for part in parts}


def volumes(knobs: Knobs, withins: Sequence[Mapping[str, Any] | None] | None, rows: int) -> dict[str, Floats]:
    """The length of the range of each knob, or the number of its steps or options, in each row.

    >>> from manul import Stepped
    >>> knobs = Knobs.check({"price": (10, 50), "days": Stepped(1, 14, 1), "kind": Choice(["a", "b", "c"])})
    >>> volumes(knobs, [{"price": (10, 20), "days": (1, 3), "kind": ["b", "c"]}], 1)
    {'price': array([10.]), 'days': array([3.]), 'kind': array([2.])}
    """
    columns = {name: np.full(rows, knob.volume) for name, knob in knobs.knobs}
    for row, within in enumerate(withins or ()):
        for name, knob in knobs.knobs if within else ():
            low, high = knob.narrow((within or {}).get(name), name)
            columns[name][row] = int(low).bit_count() if isinstance(knob, Choice) else (high - low) * knob.volume
    return columns


class Left(NamedTuple):
    """What limits leave of each knob in each row: its length or number of options, and the ends of ranges of numbers."""

    lengths: dict[str, Floats]
    ends: dict[str, tuple[Floats, Floats]]
    inside: npt.NDArray[np.bool_]  # whether the action is


def what_is_left(
    knobs: Knobs, actions: Mapping[str, Any], withins: Any = None, contexts: Iterable[Mapping[str, Any] | None] = ()
) -> Left:
    """What limits leave, given the other knobs and the contexts."""
    positions = position_table(knobs, actions)
    if knobs.limited is None:
        return Left(volumes(knobs, withins, len(positions)), {}, np.ones(len(positions), np.bool_))
    ends = [knobs.ranges(within) for within in withins or [None] * len(positions)]
    lows, highs = (np.array([pair[side] for pair in ends]).reshape(positions.shape) for side in (0, 1))
    fields = [field_values(knobs.limited, context) for context in contexts] if knobs.limited.fields else None
    lengths, inside = knobs.limited.lengths(lows, highs, positions, None if fields is None else np.array(fields))
    left = {
        name: (knob.low + lows[:, number] * knob.volume, knob.low + highs[:, number] * knob.volume)
        for number, (name, knob) in enumerate(knobs.knobs)
        if isinstance(knob, Span)
    }
    return Left(dict(zip(knobs.names, lengths.T, strict=True)), left, inside)


def require_one_knob(log: Any, purpose: str) -> None:
    """Reject a log with several knobs where actions are single numbers.

    >>> require_one_knob(None, "This")
    """
    knobs = getattr(log, "knobs", None)
    if isinstance(knobs, Knobs):
        raise InputError(
            f"{purpose} takes logs with one knob, but the actions of this one set {', '.join(knobs.names)}.", "log"
        )


def object_array(values: Sequence[Any]) -> npt.NDArray[Any]:
    """An array of any objects, such as mappings.

    >>> object_array([{}, None])
    array([{}, None], dtype=object)
    """
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _densities(densities: Any, knobs: Knobs) -> dict[str, Any]:
    if not isinstance(densities, Mapping) or {*densities} != {*knobs.names}:
        raise InputError(
            f"densities_by_knob must map each of {', '.join(knobs.names)} to a column.", "densities_by_knob"
        )
    try:
        return {name: np.atleast_1d(np.asarray(densities[name], dtype=np.float64)) for name in knobs.names}
    except (TypeError, ValueError):
        raise InputError("densities_by_knob must be columns of numbers.", "densities_by_knob") from None


def _withins(withins: Sequence[Any], knobs: Knobs) -> list[dict[str, Any] | None] | None:
    if isinstance(withins, Mapping):
        raise InputError("within must have one mapping per row, got a single one.", "within")
    checked = [knob_checks.normal_within(within, knobs) for within in withins]
    return checked if any(within is not None for within in checked) else None
