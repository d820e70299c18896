"""How well a grown table keeps what the original has: `python -m benchmarks.bng [TABLE ...] [--rows 1000000]`.

Without tables, one of numbers and texts that depend on each other is drawn. Every line is the worst of its kind beside its
limit, ok or MISS; a MISS makes the command fail. A text that a thousandth of the rows have counts as a column of zeros and
ones. Correlations are compared where they are beyond 0.1, means in spreads where they are nearer to 0 than that, and time
is that of one processor.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.auto import Check
from manul.paper import datasets
from manul.worlds.tables.table_columns import columns, numbers_of, read_columns

ROWS, LIMIT, SECONDS = 1_000_000, 0.1, 60
STRONG, RARE, CHUNK = 0.1, 1e-3, 50_000

Floats = NDArray[np.float64]


def drawn(rows: int = 20_000, seed: int = 0) -> pa.Table:
    """Numbers and texts from three hidden numbers: cities within regions, plans that follow the region, prices of both."""
    rng = np.random.default_rng(seed)
    one, two = rng.standard_normal((2, rows))
    region = np.digitize(one, [-1, -0.3, 0.3, 1])
    city = np.where(rng.random(rows) < 0.1, rng.integers(0, 20, rows), 4 * region + rng.integers(0, 4, rows))
    plan = np.digitize(one + two, [-1, 0, 1])
    kind = np.where(rng.random(rows) < 0.7, plan, rng.integers(0, 4, rows))
    size = np.exp(0.5 * one + 0.3 * two)
    price = 2 * size + plan + city % 4 + 0.5 * rng.standard_normal(rows)
    age = np.round(rng.uniform(0, 10, rows) + 3 * (kind == 1))
    texts = {"region": region, "city": city, "plan": plan, "kind": kind}
    named = {name: [f"{name} {code}" for code in codes.tolist()] for name, codes in texts.items()}
    return pa.table({**named, "size": size, "price": price, "age": age})


def checks(table: dict[str, pa.Array], rows: int, seed: int, name: str) -> Iterator[Check]:
    """Grow a table and compare."""
    started = time.process_time()
    grown = columns(datasets.bng(pa.table(table), rows=rows, seed=seed))
    seconds = time.process_time() - started
    names, before, after = compared(table, grown)
    yield Check(f"{name}, {rows:,} rows, worst error of means", *worst(names, relative_means(before, after)))
    yield Check(f"{name}, worst error of spreads", *worst(names, after.spreads / before.spreads - 1))
    pairs, errors = relative_correlations(names, before.correlations, after.correlations)
    yield Check(f"{name}, worst error of {len(pairs)} correlations", *worst(pairs, errors))
    yield Check(f"{name}, seconds of one processor", seconds, SECONDS)


def worst(names: Sequence[str], errors: Floats) -> tuple[float, float, str]:
    """The largest error, the limit, and whose it is."""
    if not len(errors):
        return 0.0, LIMIT, "none"
    place = int(np.abs(errors).argmax())
    return float(np.abs(errors[place])), LIMIT, names[place]


class Summary:
    """Means, spreads and correlations of columns."""

    def __init__(self, parts: Sequence[Floats]) -> None:
        rows = len(parts[0])
        self.means = np.array([part.mean() for part in parts])
        self.spreads = np.array([part.std() for part in parts])
        scale = np.where(self.spreads > 0, self.spreads, 1.0)
        self.correlations = np.zeros((len(parts), len(parts)))
        for first in range(0, rows, CHUNK):
            block = np.stack([part[first : first + CHUNK] for part in parts], axis=1)
            block = (block - self.means) / scale
            self.correlations += block.T @ block / rows


def relative_means(before: Summary, after: Summary) -> Floats:
    """Errors of means over the mean, or over a tenth of the spread where the mean is nearer to 0."""
    return (after.means - before.means) / np.maximum(np.abs(before.means), STRONG * before.spreads)


def relative_correlations(names: Sequence[str], before: Floats, after: Floats) -> tuple[list[str], Floats]:
    """The pairs whose correlation is beyond 0.1, and its relative error."""
    one, two = np.triu_indices(len(names), 1)
    strong = np.abs(before[one, two]) > STRONG
    one, two = one[strong], two[strong]
    pairs = [f"{names[a]} and {names[b]}" for a, b in zip(one, two, strict=True)]
    return pairs, after[one, two] / before[one, two] - 1


def compared(table: dict[str, pa.Array], grown: dict[str, pa.Array]) -> tuple[list[str], Summary, Summary]:
    """The columns that vary, with gaps at the mean and texts as zeros and ones, of both tables."""
    names, before, after = [], [], []
    for name, column in table.items():
        if pa.types.is_string(column.type):
            counts = zip(*column.value_counts().flatten(), strict=True)
            texts = [text.as_py() for text, count in counts if text.is_valid and count.as_py() >= RARE * len(column)]
            names += [f"{name}={text}" for text in texts]
            before += [_indicator(column, text) for text in texts]
            after += [_indicator(grown[name], text) for text in texts]
        else:
            names.append(name)
            before.append(_filled(column))
            after.append(_filled(grown[name]))
    vary = [place for place, part in enumerate(before) if part.std() > 0]
    parts = [[each[place] for place in vary] for each in (before, after)]
    return [names[place] for place in vary], Summary(parts[0]), Summary(parts[1])


def _indicator(column: pa.Array, text: str) -> Floats:
    import pyarrow.compute as pc

    return pc.fill_null(pc.equal(column, text), False).cast(pa.float64()).to_numpy(zero_copy_only=False)


def _filled(column: pa.Array) -> Floats:
    numbers = numbers_of(column)
    known = np.isfinite(numbers)
    return np.where(known, numbers, numbers[known].mean() if known.any() else 0.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check every table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path, help="CSV, ARFF or Parquet, also with .gz")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    tables = {path.name.split(".")[0]: read_columns(path) for path in options.tables} or {"drawn": columns(drawn())}
    missed = 0
    for name, table in tables.items():
        for check in checks(table, options.rows, options.seed, name):
            print(check.line, flush=True)
            missed += not check.ok
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
