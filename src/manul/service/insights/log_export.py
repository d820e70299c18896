"""Writes the log of a loop as Parquet, reading the store a few blocks at a time.

A row is a decision with its outcome. Decisions without an outcome, and actions of unknown density, are omitted.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Container, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.actions.levels import DrawnWindows, KnobLevels
from manul.actions.space import ActionSpace
from manul.contexts.data_frames import from_json
from manul.contexts.schema import ContextSchema
from manul.errors import ManulError
from manul.logs.formats.level_columns import LEVELS, level_array
from manul.logs.formats.log_schema import (
    ARM,
    FLOOR,
    PART,
    PREFIX,
    Metadata,
    dense_column,
    knob_array,
    normal_within,
    reserved_names,
    within_text,
)
from manul.logs.log import Log, LogWriter
from manul.service.engine.loop import Loop
from manul.service.engine.losses import parts_of
from manul.service.errors import Conflict
from manul.service.store import OUTCOMES, Event, Store
from manul.service.store.blocks import DecisionRow

# Blocks that are read at a time.
BLOCKS = 64
Row = tuple[DecisionRow, float, Mapping[str, float] | None]
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
    schema, by_knob, arms, levels, sizes = ContextSchema(), True, False, False, list[int]()
    with tempfile.TemporaryFile() as spool:  # the columns are known only after the last row, but the store is read once
        for rows in pages(store, loop.number, after, through, only):
            schema = schema.merge(_schema(_contexts(rows)), strict=False)
            by_knob &= all(decision.densities is not None for decision, *_ in rows)
            arms |= any(decision.ticket is not None for decision, *_ in rows)
            levels |= any(decision.windows is not None or decision.levels is not None for decision, *_ in rows)
            if rows:
                sizes.append(len(rows))
                pickle.dump(rows, spool)
        if not sizes:
            raise Conflict("The log is empty: no decision of this loop has an outcome yet. Report losses first.")
        spool.seek(0)
        with LogWriter(path) as writer:
            for _ in sizes:
                rows = pickle.load(spool)  # written above
                writer.write(log_of(loop, rows, schema, by_knob=by_knob, arms=arms, levels=levels))
    return sum(sizes)


def pages(
    store: Store, loop: int, after: int = 0, through: int | None = None, only: Container[int] | None = None
) -> Iterator[list[Row]]:
    while blocks := store.blocks(loop, after, BLOCKS):
        included = [block for block in blocks if only is None or block.first in only]
        decisions = [each for block in included for each in block.decisions()]
        decisions = [each for each in decisions if through is None or each.number <= through]
        events = store.events_of(loop, [each.number for each in decisions])
        rows = ((each, outcome(events.get(each.number, []))) for each in decisions if each.density is not None)
        yield [(each, event.loss, _parts(event)) for each, event in rows if event is not None]
        after = blocks[-1].last
        if through is not None and after >= through:
            return


def outcome(events: Sequence[Event]) -> Event | None:
    """The outcome of a decision, if it has one.

    >>> outcome([Event(1, 7, "default", 1.0, 0.0), Event(2, 7, "late", 0.25, 0.0)]).loss
    1.0
    """
    return next((event for event in events if event.kind in OUTCOMES), None)


def _parts(event: Event) -> Mapping[str, float] | None:
    reported = parts_of(event)
    return None if reported is None else reported.parts


def _contexts(rows: Sequence[Row]) -> list[Any]:
    """The contexts of rows, with the dates and times of JSON as values of Python."""
    return [from_json(decision.context) for decision, *_ in rows]


def _schema(contexts: Sequence[Any]) -> ContextSchema:
    """The fields of contexts; agents may have decided on a field that changed its kind before they learned it."""
    named = [context for context in contexts if isinstance(context, dict)]
    return ContextSchema.of(named, strict=False) if named else ContextSchema()


def log_of(
    loop: Loop,
    rows: Sequence[Row],
    schema: ContextSchema | None = None,
    *,
    contexts: npt.ArrayLike | None = None,
    by_knob: bool | None = None,
    arms: bool = False,
    levels: bool = False,
) -> Log:
    """Convert rows to a log. `schema` has the fields of contexts that are mappings, if they are known already; `contexts`
    are numbers that replace the contexts of the rows. `by_knob` says whether the log has the densities of several knobs; by
    default, if all rows have them. `arms` says whether it has the arms of a rollout, and `levels` whether it has
    what the actions were drawn from."""
    import pyarrow as pa

    decisions = [each for each, *_ in rows]
    columns = _columns(loop, rows, by_knob=by_knob, arms=arms)
    schema = (_schema(_contexts(rows)) if contexts is None else ContextSchema()) if schema is None else schema
    named = bool(schema.fields) or any(isinstance(each.context, dict) for each in decisions)
    knobs = None if loop.space.is_number else loop.space
    action_range = loop.space.actions if knobs is None else None
    ranges: Any = {"action_range": action_range, "knobs": knobs}
    drawn = levels_of(loop.space, decisions) if levels else None
    outcome = loop.settings.outcome
    if contexts is not None or not named:
        matrix = np.array([each.context for each in decisions] if contexts is None else contexts, np.float32)
        if knobs is None:
            views: Any = {VIEWS[name]: column for name, column in columns.items() if name in VIEWS}
            parts = {name: columns[PART + name] for name in outcome.parts} or None
            return Log(matrix, **views, **ranges, outcome=outcome, parts=parts, levels=drawn)
        columns["context"] = dense_column(matrix)
    else:
        reserved = reserved_names(several=knobs is not None)
        mappings = [context if isinstance(context, dict) else {} for context in _contexts(rows)]
        for name, field in schema.fields.items():
            column = PREFIX + name if name in reserved else name
            columns[column] = field.to_arrow([context.get(name) for context in mappings], name)
    if drawn is not None:
        columns[LEVELS] = level_array(drawn, knobs)
    metadata = Metadata(parts=bool(outcome.parts), levels=drawn is not None).with_outcome(outcome)
    table = pa.table(columns).replace_schema_metadata(metadata.to_arrow())
    try:
        return Log.from_table(table, **ranges)
    except ManulError as error:
        raise Conflict(f"The decisions of this loop cannot be written as a log: {error}") from None


def _columns(loop: Loop, rows: Sequence[Row], *, by_knob: bool | None, arms: bool) -> dict[str, Any]:
    decisions = [each for each, *_ in rows]
    columns = {
        "density": np.array([each.density for each in decisions], np.float64),
        "loss": np.array([loss for _, loss, _ in rows]),
        FLOOR: np.array([_floor(each) for each in decisions]),
        "time": np.array([each.time for each in decisions]),
        "id": [each.public_id for each in decisions],
    }
    for name in loop.settings.outcome.parts:
        columns[PART + name] = np.array([(parts or {}).get(name, np.nan) for *_, parts in rows])
    if arms:
        columns[ARM] = [None if each.ticket is None else each.ticket.arm for each in decisions]
    if not loop.space.is_number:
        return columns | _knob_columns(loop.space, decisions, by_knob=by_knob)
    ends = np.array([each.within or loop.space.actions for each in decisions], np.float64)
    columns |= {"action": np.array([each.action for each in decisions]), "low": ends[:, 0], "high": ends[:, 1]}
    return {name: columns[name] for name in (*VIEWS, *columns) if name in columns}


def levels_of(space: ActionSpace, decisions: Sequence[DecisionRow]) -> dict[str, KnobLevels]:
    """What decisions were drawn from, by knob; unknown ones have no levels."""
    plain = [row for row, each in enumerate(decisions) if each.windows is not None]
    mixed = [row for row, each in enumerate(decisions) if each.levels is not None]
    known = {*plain, *mixed}
    order = np.argsort([*plain, *mixed, *(row for row in range(len(decisions)) if row not in known)])
    withins = [decisions[row].within for row in plain]
    ends: Any = space.boxes(withins, len(plain))
    if space.is_number:
        ends = np.array([within or space.actions for within in withins], np.float64).reshape(-1, 2).T
    windows = np.array([decisions[row].windows for row in plain], np.float64)
    drawn = DrawnWindows(space, windows, *ends).levels
    parts = {}
    for name, knob in space.knobs:
        of_windows = KnobLevels.of_rows([], is_discrete=knob.is_discrete) if drawn is None else drawn[name]
        of_rollouts = [KnobLevels.of_rows([decisions[row].levels or []], is_discrete=knob.is_discrete) for row in mixed]
        unknown = of_windows.unknown(len(decisions) - len(known))
        parts[name] = KnobLevels.join([of_windows, *of_rollouts, unknown]).select(order)
    return parts


def _floor(decision: DecisionRow) -> float:
    """The smallest density; of several knobs, rounding of the products can put it above that of the action."""
    return np.nan if decision.floor is None else min(decision.floor, decision.density or decision.floor)


def _knob_columns(knobs: ActionSpace, decisions: Sequence[DecisionRow], *, by_knob: bool | None) -> dict[str, Any]:
    import pyarrow as pa

    wrapped = [knobs.wrap(each.action) for each in decisions]
    actions = {name: [action[name] for action in wrapped] for name in knobs.names}
    withins = [within_text(normal_within(each.within, knobs)) for each in decisions]
    columns = {"action": knob_array("action", actions, knobs), "within": pa.array(withins, pa.string())}
    known = [each.densities for each in decisions if each.densities is not None]
    if by_knob or (by_knob is None and len(known) == len(decisions)):
        densities = {name: [each[name] for each in known] for name in knobs.names}
        columns["density_by_knob"] = knob_array("density_by_knob", densities, knobs)
    return columns
