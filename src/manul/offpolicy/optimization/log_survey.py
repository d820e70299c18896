"""The first pass over a log: it counts and checks the rows, and computes checksums to recognise them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from manul.actions.decision import Within
from manul.actions.space import ActionSpace
from manul.errors import InputError
from manul.logs.batching import Logs, batches, same_outcomes
from manul.logs.log import Log
from manul.utils.validation import (
    LOG_DENSITIES,
    USABLE,
    check_has_rows,
    check_taken,
    reject,
    usable_densities,
)


@dataclass(frozen=True)
class LogSurvey:
    """The number of rows, checksums of their columns, and whether some of the densities were estimated."""

    rows: int
    checksums: dict[str, int]
    estimated: bool = False


def survey(log: Logs, *, actions: Within | ActionSpace, losses: Within, contexts: bool = False) -> LogSurvey:
    """Read the log once, with checksums of `contexts` if they are needed; raise an error if it has no rows or an invalid one.

    >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
    >>> survey([log, log], actions=(0.0, 1.0), losses=(0.0, 1.0)).rows
    8
    """
    rows, estimated, checksums = 0, False, dict[str, int]()
    for batch in same_outcomes(batches(log)):
        _check(batch, actions, losses)
        rows += len(batch)
        estimated = estimated or batch.densities_estimated
        for name, column in [*_outcomes(batch), *(_contexts(batch) if contexts else ())]:
            checksums[name] = zlib.crc32(column, checksums.get(name, 0))
    check_has_rows(rows)
    return LogSurvey(rows, checksums, estimated)


def _outcomes(batch: Log) -> Iterator[tuple[str, bytes]]:
    if batch.knobs is not None:
        yield from ((name, getattr(batch, name).tobytes()) for name in ("densities", "losses"))
        return
    names = "actions", "densities", "losses", "lows", "highs", "floors"
    columns = {name: getattr(batch, name) for name in names}
    yield from ((name, np.asarray(each, np.float64).tobytes()) for name, each in columns.items() if each is not None)


def _contexts(batch: Log) -> Iterator[tuple[str, bytes]]:
    if batch.features is not None:
        yield "features", "".join(f"{row}\n" for row in batch.features.to_dicts()).encode()
    elif batch.fields is None:
        yield "contexts", np.asarray(batch.contexts, np.float32).tobytes()
    for name, column in (batch.fields or {}).items():
        if column.dtype != object:
            yield f"field {name}", column.tobytes()
        else:
            yield f"field {name}", "".join(f"{value!r}\n" for value in column.tolist()).encode()


def _check(batch: Log, actions: Within | ActionSpace, losses: Within) -> None:
    if not len(batch):
        return
    if batch.knobs is not None or isinstance(actions, ActionSpace):
        if batch.knobs != actions:
            raise InputError("All batches must have the same knobs, in the same order.", "log")
        batch.outcome.with_losses(losses).check(batch.losses)
        reject(~usable_densities(batch.densities), batch.densities, "density", USABLE, LOG_DENSITIES)
        return
    whole = np.array(actions)[:, np.newaxis]
    lows, highs = whole if batch.lows is None or batch.highs is None else (batch.lows, batch.highs)
    check_taken(batch.actions, batch.densities, lows, highs, logged=True)
    batch.outcome.with_losses(losses).check(batch.losses)
