"""The log of a loop as Parquet, out of the store, a few blocks at a time.

A row is a decision with its outcome. Decisions that wait, and actions of the caller whose density is not known, have none.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.contexts.encoding import flatten_fields
from manul.logs.formats.log_schema import RESERVED
from manul.logs.log import Log, LogWriter
from manul.service.engine.loop import Loop
from manul.service.engine.writes import id_of
from manul.service.errors import Conflict
from manul.service.store import OUTCOMES, Event, Store
from manul.service.store.blocks import Decided

BLOCKS = 64
Row = tuple[Decided, float]
Fields = dict[str, bool]
VIEWS = {"action": "actions", "density": "densities", "loss": "losses", "low": "lows", "high": "highs", "time": "times"}
VIEWS |= {"id": "ids"}


def write(
    store: Store,
    loop: Loop,
    path: Path,
    *,
    after: int = 0,
    through: int | None = None,
    only: Container[int] | None = None,
) -> int:
    """Writes the rows of the decisions after one number and up to another; returns how many there were.

    `only` are the first numbers of the blocks to take, if not all.
    """
    fields: Fields = {}
    count = 0
    for rows in pages(store, loop.number, after, through, only):
        count += len(rows)
        for decided, _ in rows:
            if isinstance(decided.context, dict):
                fields = _noted([flattened(decided.context)], fields)
    if not count:
        raise Conflict(
            "log must have at least one row; no decision of this loop has an outcome yet. Report losses first."
        )
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
        taken = [block for block in blocks if only is None or block.first in only]
        decided = [each for block in taken for each in block.decisions() if through is None or each.number <= through]
        events = store.events_of(loop, [each.number for each in decided])
        found = ((each, outcome(events.get(each.number, []))) for each in decided if each.density is not None)
        yield [(each, loss) for each, loss in found if loss is not None]
        after = blocks[-1].last
        if through is not None and after >= through:
            return


def outcome(events: Sequence[Event]) -> float | None:
    """What a decision led to, if that is known.

    >>> outcome([Event(1, 7, "default", 1.0, 0.0), Event(2, 7, "late", 0.25, 0.0)])
    1.0
    """
    return next((event.loss for event in events if event.kind in OUTCOMES), None)


def flattened(context: dict[str, Any]) -> dict[str, float | str | None]:
    """A context with names as columns of a table.

    >>> flattened({"sky": "grey", "rooms": [{"warm": True}], "loss": 2})
    {'sky': 'grey', 'rooms[0].warm': 1.0, 'context.loss': 2.0}
    """
    return {
        f"context.{name}" if name in RESERVED else name: value
        if value is None or isinstance(value, str)
        else float(value)
        for name, value in flatten_fields(context).items()
    }


def _noted(contexts: Sequence[dict[str, float | str | None]], before: Fields | None = None) -> Fields:
    """A column is text where any of its values is."""
    fields = {} if before is None else before
    for columns in contexts:
        for name, value in columns.items():
            fields[name] = fields.get(name, False) or isinstance(value, str)
    return fields


def log_of(
    loop: Loop, rows: Sequence[Row], fields: Fields | None = None, *, contexts: npt.ArrayLike | None = None
) -> Log:
    """Rows as a log; `fields` are the columns of contexts with names, where they are known already, and `contexts` numbers
    in the place of the rows' own."""
    import pyarrow as pa

    decided = [each for each, _ in rows]
    ranges: Any = {"action_range": loop.settings.actions, "loss_range": loop.settings.losses}
    columns = _columns(loop, rows)
    named = bool(fields) or any(isinstance(each.context, dict) for each in decided)
    if contexts is not None or not named:
        numbers = [each.context for each in decided] if contexts is None else contexts
        views: Any = {VIEWS[name]: column for name, column in columns.items()}
        return Log(np.array(numbers, np.float32), **views, **ranges)
    flat = [flattened(each.context) if isinstance(each.context, dict) else {} for each in decided]
    for name, text in (_noted(flat) if fields is None else fields).items():
        values = [row.get(name) for row in flat]
        kept = [None if value is None else str(value) for value in values] if text else values
        columns[name] = pa.array(kept, pa.string() if text else pa.float64())
    return Log.from_table(columns, **ranges)


def _columns(loop: Loop, rows: Sequence[Row]) -> dict[str, Any]:
    decided = [each for each, _ in rows]
    ends = np.array([each.within or loop.settings.actions for each in decided], np.float64)
    return {
        "action": np.array([each.action for each in decided]),
        "density": np.array([each.density for each in decided], np.float64),
        "loss": np.array([loss for _, loss in rows]),
        "low": ends[:, 0],
        "high": ends[:, 1],
        "time": np.array([each.time for each in decided]),
        "id": [id_of(each) for each in decided],
    }
