"""Hashes of the rows of a log, which do not depend on its format, its batches or the order of its rows and columns.

A context counts as its features: a number by its name, a text by `name=text`, as Vowpal Wabbit's formats write it. Zeros and
missing values do not count, and numbers of contexts have single precision, because formats of sparse features do not keep more.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.logs.rows import Rows
from manul.logs.sample import Logs, Sample
from manul.utils.row_sketch import Hashes, RowSketch, SketchBuilder

FEW = 0.01  # of the rows that equal another one: contexts need not tell them apart
_MULTIPLIERS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)  # of the generator SplitMix64


def sketch_log(log: Logs | Sample) -> RowSketch:
    """The sketch of the rows of a log, which must have some.

    Contexts count only if many rows are alike without them, as with discrete actions, because hashing them takes time.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=100)).log
    >>> train, held_out = log.split(0.5, by="random")
    >>> sketch = sketch_log(train)
    >>> [int(known_rows(sketch, Rows.of(part)).sum()) for part in (train, held_out)]
    [50, 0]
    """
    sample = log if isinstance(log, Sample) else Sample.of(log)
    sketch = _sketch(sample, contexts=False)
    return sketch if sketch.repeated <= FEW else _sketch(sample, contexts=True)


def _sketch(sample: Sample, *, contexts: bool) -> RowSketch:
    builder = SketchBuilder()
    for rows in sample.pieces():
        builder.add(row_hashes(rows, contexts=contexts))
    return builder.sketch(contexts=contexts)


def known_rows(sketch: RowSketch, rows: Rows) -> npt.NDArray[np.bool_]:
    """Of the rows of which a sketch can say it, whether they are in it; see `sketch_log` for an example."""
    return sketch.known(row_hashes(rows, contexts=sketch.contexts))


def row_hashes(rows: Rows, *, contexts: bool) -> Hashes:
    """One hash per row, of its action, density and loss, and if asked for, of its context.

    Estimated densities do not count: they depend on the rows that they were estimated from.
    """
    columns = [rows.losses] if rows.estimated else [rows.losses, rows.densities]
    total = _context_sums(rows) if contexts else np.zeros(len(rows), np.uint64)
    for column in (*columns, *np.atleast_2d(rows.positions.T)):
        # Rewards of 0 are losses of -0, which are 0 once 0 is added.
        total = _mix(total + np.ascontiguousarray(column + 0.0, np.float64).view(np.uint64))
    return total


def _context_sums(rows: Rows) -> Hashes:
    """The sum of a context's values, as bits, times a multiplier of their names, modulo 2^64."""
    if rows.numbers is not None:
        return _bits(rows.numbers) @ _multipliers(map(str, range(rows.numbers.shape[1])))
    total = np.zeros(len(rows), np.uint64)
    if rows.features is not None:
        each = _bits(rows.features.values) * _multipliers(rows.features.names)[rows.features.places]
        np.add.at(total, np.repeat(np.arange(len(rows)), np.diff(rows.features.starts)), each)
    for name, values in (rows.fields or {}).items():
        total += _text_parts(name, values) if values.dtype == object else _bits(values) * _multipliers([name])
    return total


def _text_parts(name: str, values: npt.NDArray[Any]) -> Hashes:
    listed = [value if value is None or isinstance(value, str) else repr(value) for value in values.tolist()]
    texts = [text for text in {*listed} if text is not None]
    parts = _bits(np.ones(len(texts))) * _multipliers(f"{name}={text}" for text in texts)
    known: dict[str | None, int] = {None: 0, **dict(zip(texts, parts.tolist(), strict=True))}
    return np.array([known[text] for text in listed], np.uint64)


def _bits(values: npt.NDArray[Any]) -> Hashes:
    """The bits of numbers in single precision; 0 for missing values."""
    with np.errstate(over="ignore"):
        single = np.asarray(values, np.float32) + np.float32(0)  # + 0: no negative zeros
    return np.where(np.isnan(single), np.uint32(0), single.view(np.uint32)).astype(np.uint64)


def _multipliers(names: Iterable[str]) -> Hashes:
    data = [name.encode("utf-8", "surrogatepass") for name in names]
    codes = np.array([zlib.crc32(each) << 32 | zlib.adler32(each) for each in data], np.uint64)
    odd: Hashes = _mix(codes) | np.uint64(1)
    return odd


def _mix(numbers: Hashes) -> Hashes:
    """SplitMix64: each bit of the result depends on all bits."""
    first, second, third = map(np.uint64, _MULTIPLIERS)
    mixed = numbers + first
    mixed = (mixed ^ (mixed >> np.uint64(30))) * second
    mixed = (mixed ^ (mixed >> np.uint64(27))) * third
    return mixed ^ (mixed >> np.uint64(31))
