"""Checks of the actions, densities and narrower ranges of rows with several knobs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from manul.actions.kinds.choice import Choice
from manul.actions.kinds.span import Span
from manul.actions.kinds.stepped import Stepped
from manul.actions.space import ActionSpace
from manul.errors import InputError
from manul.logs.formats.knob_columns import Columns, Options
from manul.utils.validation import Flags, Floats, are_densities, are_within

_ROUNDING, _PEOPLE_ROUND = 1e-9, 0.05

Withins = Sequence[Mapping[str, Any] | None]


def rules(knobs: ActionSpace, actions: Columns, densities: Columns | None) -> Iterator[tuple[str, Flags, str]]:
    """The columns action.NAME and density.NAME with flags of bad rows, and the rule that they break.

    >>> knobs = ActionSpace({"days": Stepped(1, 14, 1)})
    >>> [(name, bad.tolist(), rule) for name, bad, rule in rules(knobs, {"days": np.array([3.0, 3.5])}, None)]
    [('action.days', [False, True], 'one of 1, 2, …, 14')]
    """
    for name, knob in knobs.knobs:
        yield f"action.{name}", _are_off(knob, actions[name], name), describe(knob)
        if densities is not None and isinstance(knob, Span):
            yield f"density.{name}", ~are_densities(densities[name]), "above 0 and finite"
        elif densities is not None:
            yield f"density.{name}", ~are_probabilities(densities[name]), "a probability, above 0 and at most 1"


def are_probabilities(values: Floats) -> Flags:
    """Flag the values that can be the probabilities of steps or options; sums of them are rounded.

    >>> are_probabilities(np.array([0.0, 0.5, 1 + 1e-15, 2.0]))
    array([False,  True,  True, False])
    """
    flags: Flags = (values > 0) & (values <= 1 + _ROUNDING)
    return flags


def are_products(joint: Floats, densities: Columns) -> Flags:
    """Flag the rows whose joint density is the product of those of the knobs, which people may have rounded.

    >>> are_products(np.array([0.5, 2.0]), {"price": np.array([0.5, 0.5]), "days": np.array([1.0, 1.0])})
    array([ True, False])
    """
    product = np.prod(np.column_stack([*densities.values()]), axis=1)
    flags: Flags = np.isclose(joint, product, rtol=_PEOPLE_ROUND, atol=0)
    return flags


def describe(knob: Any) -> str:
    """The values that a knob can have.

    >>> describe(Choice(["a", 2]))
    "one of 'a', 2"
    """
    if isinstance(knob, Choice):
        return f"one of {', '.join(map(repr, knob.options))}"
    if isinstance(knob, Stepped):
        return f"one of {knob.low:g}, {knob.low + knob.step:g}, …, {knob.high:g}"
    return f"in [{knob.low:g}, {knob.high:g}]"


def _are_off(knob: Any, values: Any, name: str) -> Flags:
    if isinstance(knob, Choice):
        return np.array([value is None for value in values], dtype=np.bool_)
    if isinstance(knob, Span):
        return ~are_within(values, knob.low, knob.high)
    distinct, places = np.unique(values, return_inverse=True)
    return np.array([_is_off(knob, value, name) for value in distinct], dtype=np.bool_)[places]


def _is_off(knob: Stepped, value: float, name: str) -> bool:
    try:
        knob.position(value, name)
    except InputError:
        return True
    return False


def outside(knobs: ActionSpace, actions: Columns, withins: Withins) -> Iterator[tuple[str, Flags]]:
    """For each knob, flags of the rows whose action is not within the narrower range of the row."""
    for name, knob in knobs.knobs:
        flags = np.zeros(len(withins), dtype=np.bool_)
        for row, within in enumerate(withins):
            if within is not None and name in within:
                flags[row] = not _is_inside(knob, name, actions[name][row], within[name])
        yield f"action.{name}", flags


def _is_inside(knob: Any, name: str, value: Any, limits: Any) -> bool:
    if isinstance(knob, Choice):
        return bool(int(knob.narrow(limits, name)[0]) >> int(knob.position(value, name)) & 1)
    low, high = knob.narrow(limits, name)
    return bool(low <= knob.position(value, name) <= high)


def normal_within(within: Any, knobs: ActionSpace) -> dict[str, Any] | None:
    """Narrower ranges in one form: pairs of numbers and lists of options, in the order of knobs; None if there are none.

    >>> knobs = ActionSpace({"price": (10, 50), "template": Choice(["a", "b"])})
    >>> normal_within({"template": "a", "price": [12, 20]}, knobs)
    {'price': (12.0, 20.0), 'template': ['a']}
    """
    knobs.ranges(within)
    ranges: dict[str, Any] = {}
    for name, knob in knobs.knobs:
        limits = (within or {}).get(name)
        if limits is None:
            continue
        if isinstance(knob, Choice):
            allowed = [limits] if isinstance(limits, str | int | float | np.generic) else limits
            ranges[name] = [knob.value(knob.position(option, name)) for option in allowed]
        else:
            ranges[name] = (float(limits[0]), float(limits[1]))
    return ranges or None


def within_text(within: Mapping[str, Any] | None) -> str | None:
    return None if within is None else json.dumps(within, ensure_ascii=False)


def parse_within(text: Any, knobs: ActionSpace) -> dict[str, Any] | None:
    """The narrower ranges of a JSON text, in the form of `normal_within`; raises InputError."""
    if text is None or isinstance(text, Mapping):
        return normal_within(text, knobs)
    try:
        within = json.loads(text)
    except (TypeError, ValueError, RecursionError):
        raise InputError(f"within must be JSON, got {text!r:.60}.", "within") from None
    return normal_within(within, knobs)


def check_actions(actions: Any, knobs: ActionSpace) -> Columns:
    """Columns of actions by knob, as arrays; raises InputError for a missing, unknown or differing knob.

    >>> check_actions({"n": [1, 2]}, ActionSpace({"n": Choice([1, 2])}))
    {'n': array([1, 2], dtype=object)}
    """
    if not isinstance(actions, Mapping):
        raise InputError(f"actions must map each of {', '.join(knobs.names)} to a column.", "actions")
    knobs.check_names(actions, "actions")
    missing = [name for name in knobs.names if name not in actions]
    if missing:
        raise InputError(f"actions must have the knob {missing[0]!r} too.", "actions")
    columns: Columns = {}
    for name, knob in knobs.knobs:
        given = _values(actions[name], name)
        if isinstance(knob, Choice):
            columns[name] = np.empty(len(given), dtype=object)
            options = Options(knob)
            columns[name][:] = [options.find(value) for value in given]
        else:
            columns[name] = _numbers(given, name)
        _reject(columns[name], given, name, knob)
    return columns


def _values(column: Any, name: str) -> list[Any]:
    values = column.tolist() if isinstance(column, np.ndarray) else column
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a column with one value per row, got {values!r:.60}.", name)
    return [value.item() if isinstance(value, np.generic) else value for value in values]


def _numbers(given: list[Any], name: str) -> Any:
    try:
        return np.array(given, dtype=np.float64).reshape(len(given))
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a column of numbers.", name) from None


def _reject(values: Any, given: list[Any], name: str, knob: Any) -> None:
    for row in np.flatnonzero(_are_off(knob, values, name))[:1]:
        raise InputError(f"{name} must be {describe(knob)}, got {given[row]!r} in row {row}.", name)
