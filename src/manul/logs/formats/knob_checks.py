"""Checks of the actions, densities and narrower ranges of rows whose actions are no numbers in a range."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from manul.actions.space import ActionSpace
from manul.errors import InputError
from manul.logs.formats.knob_columns import Columns, label
from manul.utils.validation import Flags, Floats, are_densities

_ROUNDING, _PEOPLE_ROUND = 1e-9, 0.05

Withins = Sequence[Any]


def rules(knobs: ActionSpace, actions: Columns, densities: Columns | None) -> Iterator[tuple[str, Flags, str]]:
    """The columns action.NAME and density.NAME with flags of bad rows, and the rule that they break.

    >>> from manul import Stepped
    >>> knobs = ActionSpace({"days": Stepped(1, 14, 1)})
    >>> [(name, bad.tolist(), rule) for name, bad, rule in rules(knobs, {"days": np.array([3.0, 3.5])}, None)]
    [('action.days', [False, True], 'one of 1, 2, …, 14')]
    """
    for name, knob in knobs.knobs:
        yield label("action", name), ~knob.are_values(actions[name]), knob.rule
        if densities is not None and not knob.is_discrete:
            yield label("density_by_knob", name), ~are_densities(densities[name]), "above 0 and finite"
        elif densities is not None:
            rule = "a probability, above 0 and at most 1"
            yield label("density_by_knob", name), ~are_probabilities(densities[name]), rule


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


def outside(knobs: ActionSpace, actions: Columns, withins: Withins) -> Iterator[tuple[str, Flags]]:
    """For each knob, flags of the rows whose action is not within the narrower range of the row."""
    ranges = [{} if within is None else knobs.wrap_within(within) for within in withins]
    for name, knob in knobs.knobs:
        flags = np.zeros(len(withins), dtype=np.bool_)
        for row, within in enumerate(ranges):
            if name in within:
                place = knob.position(actions[name][row], name)
                flags[row] = not knob.contains(*knob.narrow(within[name], name), place)
        yield label("action", name), flags


def normal_within(within: Any, knobs: ActionSpace) -> Any:
    """Narrower ranges in one form: pairs of numbers and lists of options, in the order of knobs; None if there are none.

    >>> from manul import Choice
    >>> knobs = ActionSpace({"price": (10, 50), "template": Choice(["a", "b"])})
    >>> normal_within({"template": "a", "price": [12, 20]}, knobs)
    {'price': (12.0, 20.0), 'template': ['a']}
    """
    knobs.ranges(within)
    given = {} if within is None else knobs.wrap_within(within)
    ranges = {
        name: knob.stated(given[name], name or "action") for name, knob in knobs.knobs if given.get(name) is not None
    }
    return knobs.unwrap(ranges) if ranges else None


def within_text(within: Any) -> str | None:
    return None if within is None else json.dumps(within, ensure_ascii=False)


def parse_within(text: Any, knobs: ActionSpace) -> Any:
    """The narrower ranges of a JSON text, in the form of `normal_within`; raises InputError."""
    if not isinstance(text, str):
        return normal_within(text, knobs)
    try:
        within = json.loads(text)
    except (ValueError, RecursionError):
        raise InputError(f"within must be JSON, got {text!r:.60}.", "within") from None
    return normal_within(within, knobs)


def check_actions(actions: Any, knobs: ActionSpace) -> Columns:
    """Columns of actions by knob, as arrays; raises InputError for a missing, unknown or differing knob.

    >>> from manul import Choice
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
        title = name or "action"
        given = _values(actions[name], title)
        columns[name] = knob.as_column(given, title)
        for row in np.flatnonzero(~knob.are_values(columns[name]))[:1]:
            raise InputError(f"{title} must be {knob.rule}, got {given[row]!r} in row {row}.", title)
    return columns


def _values(column: Any, name: str) -> list[Any]:
    values = column.tolist() if isinstance(column, np.ndarray) else column
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise InputError(f"{name} must be a column with one value per row, got {values!r:.60}.", name)
    return [value.item() if isinstance(value, np.generic) else value for value in values]
