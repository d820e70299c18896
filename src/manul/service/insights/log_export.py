"""Writes the log of a loop as Parquet, reading the store a few blocks at a time.

A row is a decision with its outcome. Decisions without an outcome, and actions of unknown density, are omitted.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.actions.knobs import Knobs
from manul.contexts.dates import seconds
from manul.contexts.table_encoding import flatten_fields
from manul.logs.formats import knob_checks, knob_columns
from manul.logs.formats.arrow_tables import dense_column
from manul.logs.formats.log_schema import ARM, FLOOR, Metadata, reserved_names
from manul.logs.log import Log, LogWriter
from manul.service.engine.action_space import SeveralKnobs
from manul.service.engine.loop import Loop
from manul.service.engine.write_operations import id_of
from manul.service.errors import Conflict
from manul.service.store import OUTCOMES, Event, Store
from manul.service.store.blocks import DecisionRow

# Blocks that are read at a time.
BLOCKS = 64
Row = tuple[DecisionRow, float]
Fields = dict[str, bool]
VIEWS = {"action": "actions", "density": "densities", "loss": "losses", "low": "lows", "high": "highs", FLOOR: "floors"}
VIEWS |= {"time": "times", "id": "ids", ARM: "arms"}


def write(
    store: Store,
    loop: Loop,
    path: Path,
    *,
    after: int = 0,
    through: int | None = None,
    only: Container[int] | None = None,
) -> int:
    """Write the decisions after one number and up to another; returns the number of rows.

    `only` are the first numbers of the blocks to include, if not all.
    """
    fields, notes = Fields(), FieldNotes()
    count, by_knob, arms = 0, True, False
    for rows in pages(store, loop.number, after, through, only):
        count += len(rows)
        for decision, _ in rows:
            by_knob &= decision.densities is not None
            arms |= decision.ticket is not None
            if isinstance(decision.context, dict):
                columns = flat_columns(decision.context, several=_several(loop))
                fields = _note_types([columns], fields)
                notes.add(columns, _converted(decision.context, several=_several(loop)))
    if not count:
        raise Conflict("The log is empty: no decision of this loop has an outcome yet. Report losses first.")
    with LogWriter(path) as writer:
        for rows in pages(store, loop.number, after, through, only):
            if rows:
                writer.write(log_of(loop, rows, fields, by_knob=by_knob, arms=arms, changes=notes.changes()))
    return count


def pages(
    store: Store, loop: int, after: int = 0, through: int | None = None, only: Container[int] | None = None
) -> Iterator[list[Row]]:
    while blocks := store.blocks(loop, after, BLOCKS):
        included = [block for block in blocks if only is None or block.first in only]
        decisions = [each for block in included for each in block.decisions()]
        decisions = [each for each in decisions if through is None or each.number <= through]
        events = store.events_of(loop, [each.number for each in decisions])
        rows = ((each, outcome(events.get(each.number, []))) for each in decisions if each.density is not None)
        yield [(each, loss) for each, loss in rows if loss is not None]
        after = blocks[-1].last
        if through is not None and after >= through:
            return


def outcome(events: Sequence[Event]) -> float | None:
    """The loss of a decision, if it has an outcome.

    >>> outcome([Event(1, 7, "default", 1.0, 0.0), Event(2, 7, "late", 0.25, 0.0)])
    1.0
    """
    return next((event.loss for event in events if event.kind in OUTCOMES), None)


def flat_columns(context: dict[str, Any], *, several: bool = False) -> dict[str, float | str | None]:
    """A context with names as columns of a table with the actions of one knob or several.

    >>> flat_columns({"sky": "grey", "rooms": [{"warm": True}], "loss": 2})
    {'sky': 'grey', 'rooms[0].warm': 1.0, 'context.loss': 2.0}
    """
    fields = flatten_fields(context).items()
    return {_column_name(name, several=several): _column_value(value) for name, value in fields}


def _column_name(name: str, *, several: bool) -> str:
    return f"context.{name}" if name in reserved_names(several=several) else name


def _converted(context: dict[str, Any], *, several: bool) -> dict[str, str]:
    """The columns of a context that were dates or flags, or texts of a list.

    >>> _converted({"sky": "grey", "at": {"$date": "2024-02-29"}, "tags": ["old"], "rooms": [{"warm": True}]}, several=False)
    {'at': 'date', 'rooms[0].warm': 'flag', 'tags=old': 'list'}
    """
    fields = flatten_fields(context)
    kinds = {name: DATES for name, value in fields.items() if isinstance(value, date)}
    kinds |= {name: FLAGS for name, value in fields.items() if isinstance(value, bool)}
    kinds |= dict.fromkeys(fields.keys() - flatten_fields(_without_texts(context)).keys(), LISTS)
    return {_column_name(name, several=several): kind for name, kind in kinds.items()}


def _without_texts(value: Any) -> Any:
    """A context with gaps for the texts in its lists."""
    if isinstance(value, dict):
        return {name: _without_texts(each) for name, each in value.items()}
    return (
        [None if isinstance(each, str) else _without_texts(each) for each in value]
        if isinstance(value, list)
        else value
    )


def _column_value(value: Any) -> float | str | None:
    """A date is its seconds since 1970, as in every log."""
    if value is None or isinstance(value, str):
        return value
    return seconds(value) if isinstance(value, date) else float(value)


def _note_types(contexts: Sequence[dict[str, float | str | None]], before: Fields | None = None) -> Fields:
    """Note the type of each column; one is text if any of its values is."""
    fields = {} if before is None else before
    for columns in contexts:
        for name, value in columns.items():
            fields[name] = fields.get(name, False) or isinstance(value, str)
    return fields


def log_of(
    loop: Loop,
    rows: Sequence[Row],
    fields: Fields | None = None,
    *,
    contexts: npt.ArrayLike | None = None,
    by_knob: bool | None = None,
    arms: bool = False,
    changes: ContextChanges | None = None,
) -> Log:
    """Convert rows to a log. `fields` are the columns of contexts that are mappings, if they are known already; `contexts`
    are numbers that replace the contexts of the rows. `by_knob` says whether the log has the densities of several knobs; by
    default, if all rows have them. `arms` says whether it has the arms of a rollout, and `changes` what became of fields."""
    import pyarrow as pa

    decisions = [each for each, _ in rows]
    losses = loop.settings.losses
    loss_range: Any = None if losses == "auto" else losses
    columns = _columns(loop, rows, by_knob=by_knob, arms=arms)
    named = bool(fields) or any(isinstance(each.context, dict) for each in decisions)
    rewards = loop.settings.rewards is not None
    knobs = loop.space.described if isinstance(loop.space, SeveralKnobs) else None
    action_range = loop.space.actions if knobs is None else None
    ranges: Any = {"action_range": action_range, "loss_range": loss_range, "knobs": knobs}
    if contexts is not None or not named:
        matrix = np.array([each.context for each in decisions] if contexts is None else contexts, np.float32)
        if knobs is None:
            views: Any = {VIEWS[name]: column for name, column in columns.items()}
            return Log(matrix, **views, **ranges, rewards=rewards)
        columns["context"] = dense_column(matrix)
    else:
        columns |= _context_columns(loop, decisions, fields)
    table = pa.table(columns).replace_schema_metadata(Metadata(rewards=rewards, changes=changes).to_arrow())
    return Log.from_table(table, **ranges)


def _context_columns(loop: Loop, decisions: Sequence[DecisionRow], fields: Fields | None) -> dict[str, Any]:
    import pyarrow as pa

    flat = [
        flat_columns(each.context, several=_several(loop)) if isinstance(each.context, dict) else {}
        for each in decisions
    ]
    columns = {}
    for name, text in (_note_types(flat) if fields is None else fields).items():
        values = [row.get(name) for row in flat]
        column = [None if value is None else str(value) for value in values] if text else values
        columns[name] = pa.array(column, pa.string() if text else pa.float64())
    return columns


def _columns(loop: Loop, rows: Sequence[Row], *, by_knob: bool | None, arms: bool) -> dict[str, Any]:
    decisions = [each for each, _ in rows]
    columns = {
        "density": np.array([each.density for each in decisions], np.float64),
        "loss": np.array([loss for _, loss in rows]),
        FLOOR: np.array([_floor(each) for each in decisions]),
        "time": np.array([each.time for each in decisions]),
        "id": [id_of(each) for each in decisions],
    }
    if arms:
        columns[ARM] = [_arm(each) for each in decisions]
    if isinstance(loop.space, SeveralKnobs):
        return columns | _knob_columns(loop.space.described, decisions, by_knob=by_knob)
    ends = np.array([each.within or loop.space.actions for each in decisions], np.float64)
    columns |= {"action": np.array([each.action for each in decisions]), "low": ends[:, 0], "high": ends[:, 1]}
    return {name: columns[name] for name in VIEWS if name in columns}


def _arm(decision: DecisionRow) -> str | None:
    return None if decision.ticket is None else "learner" if decision.ticket.learner else "baseline"


def _floor(decision: DecisionRow) -> float:
    """The smallest density; of several knobs, rounding of the products can put it above that of the action."""
    return np.nan if decision.floor is None else min(decision.floor, decision.density or decision.floor)


def _knob_columns(knobs: Knobs, decisions: Sequence[DecisionRow], *, by_knob: bool | None) -> dict[str, Any]:
    import pyarrow as pa

    actions = {name: [each.action[name] for each in decisions] for name in knobs.names}
    withins = [knob_checks.within_text(knob_checks.normal_within(each.within, knobs)) for each in decisions]
    columns = {"action": knob_columns.struct_of("action", actions, knobs), "within": pa.array(withins, pa.string())}
    known = [each.densities for each in decisions if each.densities is not None]
    if by_knob or (by_knob is None and len(known) == len(decisions)):
        densities = {name: [each[name] for each in known] for name in knobs.names}
        columns["density_by_knob"] = knob_columns.struct_of("density_by_knob", densities, knobs)
    return columns


def _several(loop: Loop) -> bool:
    return isinstance(loop.space, SeveralKnobs)
