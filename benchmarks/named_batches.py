"""Rows per second of `decide_many` and `learn_many` on named contexts, one core, against a loop of single calls.

    python -m benchmarks.named_batches [--rows 50000]

The contexts have six numbers and two texts, with 20 and 200 levels. Every batch has 1,000 rows. Times
are processor times, so other processes hardly disturb them.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow

import manul

BATCH = 1000
AGENTS: dict[str, Callable[[], Any]] = {
    "Cats": lambda: manul.Cats(leaves=512, bandwidth=1 / 32),
    "Auto": lambda: manul.Auto(),
}


def columns(rows: int) -> dict[str, list[Any]]:
    """The table, by column."""
    rng = np.random.default_rng(0)
    numbers = {f"number {index}": rng.normal(size=rows).tolist() for index in range(6)}
    texts = {f"text {levels}": [f"level {n}" for n in rng.integers(levels, size=rows)] for levels in (20, 200)}
    return {**numbers, **texts}


def tables(table: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The batches of each form."""
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    frame, polar, arrow = pandas.DataFrame(table), polars.DataFrame(table), pyarrow.table(table)
    starts = range(0, len(rows), BATCH)
    return {
        "mappings": [rows[start : start + BATCH] for start in starts],
        "pandas": [frame[start : start + BATCH] for start in starts],
        "polars": [polar[start : start + BATCH] for start in starts],
        "Arrow": [arrow[start : start + BATCH] for start in starts],
    }


def time_batches(agent: Any, batches: Sequence[Any]) -> tuple[float, float]:
    """The seconds of all decisions and of all learning."""
    deciding = learning = 0.0
    for batch in batches:
        start = time.process_time()
        decisions = agent.decide_many(batch)
        middle = time.process_time()
        agent.learn_many(batch, decisions, np.abs(decisions.actions - 0.3))
        deciding, learning = deciding + middle - start, learning + time.process_time() - middle
    return deciding, learning


def time_single_calls(agent: Any, batches: Sequence[Any]) -> tuple[float, float]:
    """The seconds of all decisions and of all learning, one context at a time."""
    deciding = learning = 0.0
    for batch in batches:
        start = time.process_time()
        decisions = [agent.decide(context) for context in batch]
        middle = time.process_time()
        for context, decision in zip(batch, decisions, strict=True):
            agent.learn(context, decision, abs(decision.action - 0.3))
        deciding, learning = deciding + middle - start, learning + time.process_time() - middle
    return deciding, learning


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=50_000)
    rows: int = parser.parse_args().rows
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    forms = tables(columns(rows))
    print("| agent | contexts | decide, µs | learn, µs | rows per second |\n|---|---|---|---|---|")
    for name, make in AGENTS.items():
        for form in ("single calls", *forms):
            agent = make()
            timed = time_single_calls if form == "single calls" else time_batches
            deciding, learning = timed(agent, forms.get(form, forms["mappings"]))
            parts = f"{1e6 * deciding / rows:.2f} | {1e6 * learning / rows:.2f} | {rows / (deciding + learning):,.0f}"
            print(f"| {name} | {form} | {parts} |", flush=True)


if __name__ == "__main__":
    main()
