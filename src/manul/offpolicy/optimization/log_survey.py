"""The first pass over a log: it counts and checks the rows, and computes checksums to recognise them."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from manul.logs.batching import Logs, batches
from manul.logs.log import Log
from manul.types import Within
from manul.utils.validation import check_has_rows, check_outcomes


@dataclass(frozen=True)
class LogSurvey:
    """The number of rows, and checksums of their actions, densities and losses."""

    rows: int
    checksums: tuple[int, ...]


def survey(log: Logs, *, actions: Within, losses: Within) -> LogSurvey:
    """Read the log once; raise an error if it has no rows or an invalid one.

    >>> log = Log(np.zeros((4, 2), np.float32), np.ones(4), np.ones(4), np.ones(4))
    >>> survey([log, log], actions=(0.0, 1.0), losses=(0.0, 1.0)).rows
    8
    """
    rows, checksums = 0, [0, 0, 0]
    for batch in batches(log):
        _check(batch, actions, losses)
        rows += len(batch)
        columns = batch.actions, batch.densities, batch.losses
        checksums = [
            zlib.crc32(np.ascontiguousarray(column, np.float64).data, crc)
            for column, crc in zip(columns, checksums, strict=True)
        ]
    check_has_rows(rows)
    return LogSurvey(rows, tuple(checksums))


def _check(batch: Log, actions: Within, losses: Within) -> None:
    if not len(batch):
        return
    whole = np.array(actions)[:, np.newaxis]
    lows, highs = whole if batch.lows is None or batch.highs is None else (batch.lows, batch.highs)
    check_outcomes(batch.actions, batch.densities, batch.losses, lows, highs, loss_range=losses)
