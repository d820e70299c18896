"""Hashes of the rows of a log, which do not depend on its format, its batches or the order of its rows and columns.

A context counts as its features: a number by its name, a text by `name=text`, as Vowpal Wabbit's formats write it. Zeros and
missing values do not count, and numbers of contexts have single precision, because formats of sparse features do not keep more.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.logs.batching import Logs, Rows, pieces
from manul.types import Floats
from manul.utils.row_sketch import Hashes, RowSketch, SketchBuilder

_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # of the generator SplitMix64


def sketch_log(log: Logs) -> RowSketch:
    """The sketch of the rows of a log, which must have some.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=100)).log
    >>> train, held_out = log.split(0.5, by="random")
    >>> [sketch_log(train).share(row_hashes(next(pieces(part)))) for part in (train, held_out)]
    [1.0, 0.0]
    """
    builder = SketchBuilder()
    for rows in pieces(log, several=True):
        builder.add(row_hashes(rows))
    return builder.sketch()


def row_hashes(rows: Rows) -> Hashes:
    """One hash per row, of its action, density, loss and context; see `sketch_log` for an example.

    Estimated densities do not count: they depend on the rows that they were estimated from.
    """
    columns = [rows.losses] if rows.estimated else [rows.losses, rows.densities]
    total = np.zeros(len(rows), np.uint64)
    for place, column in enumerate([*columns, *np.atleast_2d(rows.positions.T)]):
        total = _mix(total + _mix(_bits(column) + _code(f"column {place}")))
    return _mix(total + _context_hashes(rows))


def _context_hashes(rows: Rows) -> Hashes:
    total = np.zeros(len(rows), np.uint64)
    if rows.features is not None:
        codes = np.array([_code(str(name)) for name in rows.features.names], np.uint64)
        each = _feature(codes[rows.features.places], rows.features.values)
        np.add.at(total, np.repeat(np.arange(len(rows)), np.diff(rows.features.starts)), each)
        return total
    if rows.numbers is not None:
        for place, column in enumerate(rows.numbers.T):
            total += _feature(_code(str(place)), column)
        return total
    for name, values in (rows.fields or {}).items():
        total += _text_hashes(name, values) if values.dtype == object else _feature(_code(name), values)
    return total


def _text_hashes(name: str, values: npt.NDArray[Any]) -> Hashes:
    one, codes = np.ones(1), {None: np.uint64(0)}
    for text in {*values.tolist()} - {None}:
        codes[text] = _feature(_code(f"{name}={text}"), one)[0]
    return np.array([codes[text] for text in values.tolist()], np.uint64)


def _feature(codes: Any, values: npt.NDArray[Any]) -> Hashes:
    """The hashes of features with values; 0 if the value is 0 or missing."""
    with np.errstate(over="ignore"):
        single = np.nan_to_num(values.astype(np.float32, copy=False), nan=0.0)
    hashes = _mix(single.view(np.uint32).astype(np.uint64) + codes)
    return np.where(single == 0, np.uint64(0), hashes)


def _bits(column: Floats) -> Hashes:
    return np.ascontiguousarray(column + 0.0, np.float64).view(np.uint64)  # + 0.0: rewards of 0 are losses of -0


def _code(name: str) -> np.uint64:
    data = name.encode("utf-8", "surrogatepass")
    return np.uint64(zlib.crc32(data) << 32 | zlib.adler32(data))


def _mix(numbers: Any) -> Any:
    """SplitMix64: each bit of the result depends on all bits."""
    first, second, third = map(np.uint64, _MULTIPLIERS)
    mixed = numbers + first
    mixed = (mixed ^ (mixed >> np.uint64(30))) * second
    mixed = (mixed ^ (mixed >> np.uint64(27))) * third
    return mixed ^ (mixed >> np.uint64(31))
