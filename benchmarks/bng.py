"""Compares sampled tables with their originals: `python -m benchmarks.bng [TABLE ...] [--rows 1000000]`.

Without tables, a synthetic one with dependent numeric and categorical columns is used. Every line is the largest error of
its kind with its limit, ok or MISS; a MISS makes the command fail. Categories in at least a thousandth of the rows count as
indicator columns. Correlations above 0.1 are compared; errors of means near 0 are relative to the standard deviation.
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


def synthetic_table(rows: int = 20_000, seed: int = 0) -> pa.Table:
    """Numeric and categorical columns that depend on two latent variables."""
    rng = np.random.default_rng(seed)
    one, two = rng.standard_normal((2, rows))
    region = np.digitize(one, [-1, -0.3, 0.3, 1])
    city = np.where(rng.random(rows) < 0.1, rng.integers(0, 20, rows), 4 * region + rng.integers(0, 4, rows))
    plan = np.digitize(one + two, [-1, 0, 1])
    kind = np.where(rng.random(rows) < 0.7, plan, rng.integers(0, 4, rows))
    size = np.exp(0.5 * one + 0.3 * two)
    price = 2 * size + plan + city % 4 + 0.5 * rng.standard_normal(rows)
    age = np.round(rng.uniform(0, 10, rows) + 3 * (kind == 1))
    coded = {"region": region, "city": city, "plan": plan, "kind": kind}
    categories = {name: [f"{name} {code}" for code in codes.tolist()] for name, codes in coded.items()}
    return pa.table({**categories, "size": size, "price": price, "age": age})


def checks(table: dict[str, pa.Array], rows: int, seed: int, name: str) -> Iterator[Check]:
    """Sample a larger table and compare it with the original."""
    started = time.process_time()
    sampled = columns(datasets.bng(pa.table(table), rows=rows, seed=seed))
    seconds = time.process_time() - started
    names, before, after = compare(table, sampled)
    yield Check(f"{name}, {rows:,} rows, worst error of means", *worst(names, relative_means(before, after)))
    yield Check(f"{name}, worst error of spreads", *worst(names, after.spreads / before.spreads - 1))
    pairs, errors = relative_correlations(names, before.correlations, after.correlations)
    yield Check(f"{name}, worst error of {len(pairs)} correlations", *worst(pairs, errors))
    yield Check(f"{name}, CPU seconds", seconds, SECONDS)


def worst(names: Sequence[str], errors: Floats) -> tuple[float, float, str]:
    """The largest error, the limit, and the name of its column."""
    if not len(errors):
        return 0.0, LIMIT, "none"
    index = int(np.abs(errors).argmax())
    return float(np.abs(errors[index])), LIMIT, names[index]


class Summary:
    """The means, standard deviations and correlations of columns."""

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
    """The errors of means relative to the mean, or to a tenth of the standard deviation if the mean is closer to 0."""
    return (after.means - before.means) / np.maximum(np.abs(before.means), STRONG * before.spreads)


def relative_correlations(names: Sequence[str], before: Floats, after: Floats) -> tuple[list[str], Floats]:
    """The pairs with a correlation above 0.1, and its relative error."""
    one, two = np.triu_indices(len(names), 1)
    strong = np.abs(before[one, two]) > STRONG
    one, two = one[strong], two[strong]
    pairs = [f"{names[a]} and {names[b]}" for a, b in zip(one, two, strict=True)]
    return pairs, after[one, two] / before[one, two] - 1


def compare(table: dict[str, pa.Array], sampled: dict[str, pa.Array]) -> tuple[list[str], Summary, Summary]:
    """Summaries of both tables, with missing values at the mean and categories as indicators; constant columns are omitted."""
    names, before, after = [], [], []
    for name, column in table.items():
        if pa.types.is_string(column.type):
            counts = zip(*column.value_counts().flatten(), strict=True)
            frequent = [text.as_py() for text, count in counts if text.is_valid and count.as_py() >= RARE * len(column)]
            names += [f"{name}={text}" for text in frequent]
            before += [_indicator(column, text) for text in frequent]
            after += [_indicator(sampled[name], text) for text in frequent]
        else:
            names.append(name)
            before.append(_fill(column))
            after.append(_fill(sampled[name]))
    varying = [index for index, part in enumerate(before) if part.std() > 0]
    parts = [[table[index] for index in varying] for table in (before, after)]
    return [names[index] for index in varying], Summary(parts[0]), Summary(parts[1])


def _indicator(column: pa.Array, text: str) -> Floats:
    import pyarrow.compute as pc

    return pc.fill_null(pc.equal(column, text), False).cast(pa.float64()).to_numpy(zero_copy_only=False)


def _fill(column: pa.Array) -> Floats:
    numbers = numbers_of(column)
    known = np.isfinite(numbers)
    return np.where(known, numbers, numbers[known].mean() if known.any() else 0.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Check every table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", type=Path, help="CSV, ARFF or Parquet, optionally with .gz")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    tables = {path.name.split(".")[0]: read_columns(path) for path in options.tables} or {
        "synthetic": columns(synthetic_table())
    }
    missed = 0
    for name, table in tables.items():
        for check in checks(table, options.rows, options.seed, name):
            print(check.line, flush=True)
            missed += not check.ok
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
