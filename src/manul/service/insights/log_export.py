"""Writes the log of a loop as Parquet, reading the store a few blocks at a time.

A row is a decision with its outcome. Decisions without an outcome, and actions of unknown density, are omitted.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.contexts.table_encoding import flatten_fields
from manul.logs.formats.log_schema import FLOOR, RESERVED, Metadata
from manul.logs.log import Log, LogWriter
from manul.service.engine.loop import Loop
from manul.service.engine.write_operations import id_of
from manul.service.errors import Conflict
from manul.service.store import OUTCOMES, Event, Store
from manul.service.store.blocks import DecisionRow

# Blocks that are read at a time.
BLOCKS = 64
Row = tuple[DecisionRow, float]
Fields = dict[str, bool]
VIEWS = {"action": "actions", "density": "densities", "loss": "losses", "low": "lows", "high": "highs", "time": "times"}
VIEWS |= {"id": "ids", FLOOR: "floors"}


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
    fields: Fields = {}
    count = 0
    for rows in pages(store, loop.number, after, through, only):
        count += len(rows)
        for decision, _ in rows:
            if isinstance(decision.context, dict):
                fields = _note_types([flat_columns(decision.context)], fields)
    if not count:
        raise Conflict("The log is empty: no decision of this loop has an outcome yet. Report losses first.")
    with LogWriter(path) as writer:
        for rows in pages(store, loop.number, after, through, only):
            if rows:
                writer.write(log_of(loop, rows, fields))
    return count


def pages(
    store: Store, loop: int, after: int = 0, through: int | None = None, only: Container[int] | None = None
) -> Iterator[list[Row]]:
    """Decisions with their outcomes, the oldest first."""
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


def flat_columns(context: dict[str, Any]) -> dict[str, float | str | None]:
    """A context with names as columns of a table.

    >>> flat_columns({"sky": "grey", "rooms": [{"warm": True}], "loss": 2})
    {'sky': 'grey', 'rooms[0].warm': 1.0, 'context.loss': 2.0}
    """
    return {
        f"context.{name}" if name in RESERVED else name: value
        if value is None or isinstance(value, str)
        else float(value)
        for name, value in flatten_fields(context).items()
    }


def _note_types(contexts: Sequence[dict[str, float | str | None]], before: Fields | None = None) -> Fields:
    """Note the type of each column; one is text if any of its values is."""
    fields = {} if before is None else before
    for columns in contexts:
        for name, value in columns.items():
            fields[name] = fields.get(name, False) or isinstance(value, str)
    return fields


def log_of(
    loop: Loop, rows: Sequence[Row], fields: Fields | None = None, *, contexts: npt.ArrayLike | None = None
) -> Log:
    """Convert rows to a log. `fields` are the columns of contexts that are mappings, if they are known already; `contexts`
    are numbers that replace the contexts of the rows."""
    import pyarrow as pa

    decisions = [each for each, _ in rows]
    losses = loop.settings.losses
    ranges: Any = {"action_range": loop.settings.actions, "loss_range": None if losses == "auto" else losses}
    columns = _columns(loop, rows)
    named = bool(fields) or any(isinstance(each.context, dict) for each in decisions)
    rewards = loop.settings.rewards is not None
    if contexts is not None or not named:
        numbers = [each.context for each in decisions] if contexts is None else contexts
        views: Any = {VIEWS[name]: column for name, column in columns.items()}
        return Log(np.array(numbers, np.float32), **views, **ranges, rewards=rewards)
    flat = [flat_columns(each.context) if isinstance(each.context, dict) else {} for each in decisions]
    for name, text in (_note_types(flat) if fields is None else fields).items():
        values = [row.get(name) for row in flat]
        column = [None if value is None else str(value) for value in values] if text else values
        columns[name] = pa.array(column, pa.string() if text else pa.float64())
    table = pa.table(columns).replace_schema_metadata(Metadata(rewards=rewards).to_arrow())
    return Log.from_table(table, **ranges)


def _columns(loop: Loop, rows: Sequence[Row]) -> dict[str, Any]:
    decisions = [each for each, _ in rows]
    ends = np.array([each.within or loop.settings.actions for each in decisions], np.float64)
    floors = np.array([np.nan if each.floor is None else each.floor for each in decisions])
    return {
        "action": np.array([each.action for each in decisions]),
        "density": np.array([each.density for each in decisions], np.float64),
        "loss": np.array([loss for _, loss in rows]),
        "low": ends[:, 0],
        "high": ends[:, 1],
        FLOOR: floors,
        "time": np.array([each.time for each in decisions]),
        "id": [id_of(each) for each in decisions],
    }
