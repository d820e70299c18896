"""Logs for the tests of the formats."""

import numpy as np

from manul.logs.log import Log

SUFFIXES = [".parquet", ".csv", ".jsonl", ".vw", ".json", ".dsjson"]
ALL = [*SUFFIXES, *(suffix + ".gz" for suffix in SUFFIXES)]


def dense(rows=7, width=3, seed=0, **more):
    rng = np.random.default_rng(seed)
    contexts = rng.normal(size=(rows, width)).astype(np.float32)
    return Log(contexts, rng.random(rows), 0.1 + rng.random(rows), rng.random(rows), **more)


def narrowed(rows=7):
    return dense(
        rows,
        lows=np.zeros(rows),
        highs=np.ones(rows),
        times=np.arange(rows) + 0.5,
        ids=[f"n{row}" for row in range(rows)],
    )


def own(**more):
    columns = {"age": [30.0, None, 0.25], "from": ["Bath", "über|all: x", None]}
    decided = {"action": [0.1, 0.2, 0.3], "density": [1.0, 2.0, 0.5], "loss": [0.0, 0.5, 1.0]}
    return Log.from_table({**columns, **decided, **more})


def sparse():
    contexts = [
        {"index": [0, 2], "value": [1.5, -2.0]},
        {"index": [], "value": []},
        {"index": [1, 3], "value": [1e-7, 3e20]},
    ]
    return Log.from_table(
        {"context": contexts, "action": [0.1, 0.2, 0.3], "density": [1.0, 2.0, 0.5], "loss": [0, 0.5, 1]}
    )


def rows(log):
    """Everything that a log says, in a form that can be compared."""
    names = ("actions", "densities", "losses", "lows", "highs", "times")
    columns = [None if (view := getattr(log, name)) is None else view.tolist() for name in names]
    return [*columns, log.ids, list(log.context_rows())]
