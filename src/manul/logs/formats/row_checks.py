"""Checks of the rows of a log, for a whole table at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manul.actions.space import ActionSpace
from manul.contexts.schema import Field
from manul.errors import InputError
from manul.logs.formats.level_columns import LEVELS, RULE, are_levels, level_texts
from manul.logs.formats.log_schema import (
    FLOOR,
    NUMBERS,
    PART,
    RANGE,
    Columns,
    Metadata,
    columns_of,
    context_layout,
    label,
    numbers,
    parse_within,
    part_columns,
    single_array,
    stated_name,
    user_columns,
)
from manul.logs.formats.readers import REMEDY, Problems
from manul.outcomes import KIND_RULES
from manul.outcomes.parts import are_parts
from manul.utils.validation import Flags, Floats, are_densities, are_within

if TYPE_CHECKING:
    import pyarrow as pa

DECLARE = "Declare the range with {}_range=(low, high), or skip invalid rows with skip_bad=True."
CONTEXT_FLOOR = "If it is a column of the context, rename it."
# Sums of probabilities are off by rounding, and people round densities that they write down.
_ROUNDING, _PEOPLE_ROUND = 1e-9, 0.05


def valid_rows(table: pa.Table, rows: npt.NDArray[np.int64], metadata: Metadata, problems: Problems) -> pa.Table:
    """The valid rows; an invalid row is an error, or is skipped and counted."""
    good = np.ones(len(table), dtype=np.bool_)
    for column, bad, rule, remedy in _rules(table, metadata, needs_density=problems.needs_density):
        shown = stated_name(column, metadata)
        for index in np.flatnonzero(bad & good):
            value = _bad_value(table, column, int(index))
            if column == "loss" and value is not None:
                value = metadata.outcome.from_loss(value)
            problems.report(int(rows[index]), shown, rule, value, remedy)
        good &= ~bad
    return table if good.all() else table.filter(good)


def _rules(table: pa.Table, metadata: Metadata, *, needs_density: bool) -> Iterator[tuple[str, Flags, str, str]]:
    own = NUMBERS[1:] if metadata.knobs is not None else (*NUMBERS, *RANGE)
    values = {name: numbers(table, name) for name in own if name in table.column_names}
    if metadata.knobs is not None:
        yield from _knob_rules(table, metadata.knobs)
    for name, column in values.items():
        if name != "density":
            yield name, ~np.isfinite(column), "a finite number", REMEDY
    if needs_density:
        yield "density", ~are_densities(values["density"]), "above 0 and finite", REMEDY
    if metadata.knobs is not None and "density_by_knob" in table.column_names:
        by_knob = columns_of(table, "density_by_knob", metadata.knobs)
        different = ~are_products(values["density"], by_knob)
        yield "density", different, "the product of the densities of the knobs", REMEDY
    for name, limits in (("action", metadata.action_range), ("loss", metadata.loss_range)):
        if limits is not None and name in values:
            rule = metadata.outcome.rule if name == "loss" else f"in [{limits[0]:g}, {limits[1]:g}]"
            stated = stated_name(name, metadata)
            yield name, ~are_within(values[name], *limits), rule, DECLARE.format(stated)
    if "low" in values:
        low, high, action = values["low"], values["high"], values["action"]
        yield "low", ~(low < high), "below high", REMEDY
        yield "action", ~are_within(action, low, high), "between low and high", REMEDY
    if FLOOR in table.column_names and needs_density:
        floor = numbers(table, FLOOR)
        usable = np.isnan(floor) | are_within(floor, 0.0, values["density"])
        yield FLOOR, ~usable, "the smallest density, from 0 to the density of the action, or missing", CONTEXT_FLOOR
    if LEVELS in table.column_names:
        yield LEVELS, ~are_levels(single_array(table, LEVELS), metadata.knobs), RULE, REMEDY
    for name in part_columns(table.schema):
        kind = metadata.outcome.parts.get(name.removeprefix(PART))
        column, rule = numbers(table, name), "a finite number" if kind is None else KIND_RULES[kind]
        yield name, ~(np.isnan(column) | are_parts(column, kind)), f"{rule}, or missing", REMEDY
    if context_layout(table.schema) != "columns":
        yield "context", _infinite(table), "finite numbers without missing values", REMEDY
    if context_layout(table.schema) == "sparse":
        yield "context", _misplaced(table, metadata), f"values with indices below {metadata.width}", REMEDY
    for name in user_columns(table.schema):
        if Field.of_arrow(table.schema.field(name).type, name).kind == "number":
            yield name, np.isinf(numbers(table, name)), "finite or missing", REMEDY


def _knob_rules(table: pa.Table, knobs: ActionSpace) -> Iterator[tuple[str, Flags, str, str]]:
    """The rules of the knobs; rows that break one are not checked against narrower ranges."""
    actions = columns_of(table, "action", knobs)
    by_knob = "density_by_knob" in table.column_names
    densities = columns_of(table, "density_by_knob", knobs) if by_knob else None
    bad = np.zeros(len(table), dtype=np.bool_)
    for name, flags, rule in rules(knobs, actions, densities):
        bad |= flags
        yield name, flags, rule, REMEDY
    if "within" in table.column_names:
        withins: list[Any] = [None] * len(table)
        invalid = np.zeros(len(table), dtype=np.bool_)
        for row, text in enumerate(table.column("within").to_pylist()):
            try:
                withins[row] = None if bad[row] else parse_within(text, knobs)
            except InputError:
                invalid[row] = True
        yield "within", invalid, "ranges and options of the knobs, as JSON", REMEDY
        for name, flags in outside(knobs, actions, withins):
            yield name, flags, "in the range that within leaves", REMEDY


def _infinite(table: pa.Table) -> Flags:
    """Flag the rows whose context is missing or has a number that is not finite."""
    import pyarrow.compute as pc

    context = single_array(table, "context")
    lists = context if context_layout(table.schema) == "dense" else context.field("value")
    lengths = np.asarray(pc.list_value_length(lists).fill_null(0))
    flat = np.asarray(lists.flatten().to_numpy(zero_copy_only=False), dtype=np.float32)
    # `flatten` skips missing lists.
    bad = np.asarray(context.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_).copy()
    bad[np.repeat(np.arange(len(table)), lengths)[~np.isfinite(flat)]] = True
    return bad


def _misplaced(table: pa.Table, metadata: Metadata) -> Flags:
    """Flag the rows of sparse contexts that have not one index within the width for each value."""
    import pyarrow.compute as pc

    context = single_array(table, "context")
    lengths = np.asarray(pc.list_value_length(context.field("index")).fill_null(0))
    indices = np.asarray(context.field("index").flatten().fill_null(-1))
    bad: Flags = lengths != np.asarray(pc.list_value_length(context.field("value")).fill_null(0))
    outside = (indices < 0) | (indices >= (metadata.width or 0))
    bad[np.repeat(np.arange(len(table)), lengths)[outside]] = True
    return bad


def _bad_value(table: pa.Table, column: str, index: int) -> Any:
    if column not in table.column_names:
        part, _, name = column.partition(".")
        struct = table.column("action" if part == "action" else "density_by_knob")[index].as_py()
        return (struct or {}).get(name)
    if column == LEVELS:
        return level_texts(single_array(table, column))[index]
    value = table.column(column)[index].as_py()
    if isinstance(value, dict):
        value = value["value"]
    if isinstance(value, list):
        return next((number for number in value if number is None or not np.isfinite(number)), value)
    return value


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


def outside(knobs: ActionSpace, actions: Columns, withins: Sequence[Any]) -> Iterator[tuple[str, Flags]]:
    """For each knob, flags of the rows whose action is not within the narrower range of the row."""
    ranges = [{} if within is None else knobs.wrap_within(within) for within in withins]
    for name, knob in knobs.knobs:
        flags = np.zeros(len(withins), dtype=np.bool_)
        for row, within in enumerate(ranges):
            if name in within:
                place = knob.position(actions[name][row], name)
                flags[row] = not knob.contains(*knob.narrow(within[name], name), place)
        yield label("action", name), flags


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
