"""One text field with many levels, and a mixed table: the loss of Auto by mapping and by encoded rows.

    python -m benchmarks.levels [--levels 40,80,200,5000] [--seeds 3] [--agents mapping,rows,cats,summary] [--table cars.csv --target price]

The target of a level is uniform in [0, 1] and the loss is |action - target|, so a level is learned only from its own
rounds. Printed are the mean loss of the last 4,000 of 20,000 rounds (50,000 rounds from 1,000 levels on; for a table the
mean of all rounds), the mean over seeds with its standard error, and microseconds per round.

- mapping: Auto with {"city": "level 17"}
- rows: Auto with one-hot rows; from 1,000 levels on only if named in --agents, because it takes milliseconds per round
- cats: Cats with mappings, hashed; 256 leaves, bandwidth 1/64
- summary: Auto with three numbers made by hand: the best action of this level so far, its loss, and the number of rounds
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import manul
from manul.contexts.table_encoding import Columns
from manul.worlds.tables.table_columns import read_columns

Play = Callable[[int, int, int], tuple[float, float]]
LAST = 4000


def mean_loss(agent: Any, contexts: Iterator[Any], targets: Any, last: int) -> tuple[float, float]:
    """The mean loss of the last rounds, and microseconds per round."""
    losses, started = [], time.process_time()
    for context, target in zip(contexts, targets, strict=True):
        decision = agent.decide(context)
        losses.append(abs(decision.action - target))
        agent.learn(context, decision, losses[-1])
    return float(np.mean(losses[-last:])), (time.process_time() - started) / len(losses) * 1e6


def world(levels: int, rounds: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    targets, drawn = rng.random(levels), rng.integers(levels, size=rounds)
    return drawn, targets[drawn]


def mapping(levels: int, rounds: int, seed: int) -> tuple[float, float]:
    drawn, targets = world(levels, rounds, seed)
    agent = manul.Auto(seed=seed, epsilon=0.05)
    return mean_loss(agent, ({"city": f"level {level}"} for level in drawn), targets, LAST)


def rows(levels: int, rounds: int, seed: int) -> tuple[float, float]:
    drawn, targets = world(levels, rounds, seed)
    one_hot = np.eye(levels, dtype=np.float32)
    return mean_loss(manul.Auto(seed=seed, epsilon=0.05), (one_hot[level] for level in drawn), targets, LAST)


def cats(levels: int, rounds: int, seed: int) -> tuple[float, float]:
    drawn, targets = world(levels, rounds, seed)
    agent = manul.Cats(leaves=256, bandwidth=1 / 64, seed=seed, epsilon=0.05)
    return mean_loss(agent, ({"city": f"level {level}"} for level in drawn), targets, LAST)


def summary(levels: int, rounds: int, seed: int) -> tuple[float, float]:
    drawn, targets = world(levels, rounds, seed)
    agent, losses, started = manul.Auto(seed=seed, epsilon=0.05), [], time.process_time()
    best = np.tile([0.5, 0.25, 0.0], (levels, 1))  # the middle of the range and its mean loss before the first round
    for level, target in zip(drawn, targets, strict=True):
        context = best[level].copy()
        decision = agent.decide(context)
        losses.append(abs(decision.action - target))
        agent.learn(context, decision, losses[-1])
        if context[2] == 0 or losses[-1] < context[1]:
            best[level, :2] = decision.action, losses[-1]
        best[level, 2] += 1
    return float(np.mean(losses[-LAST:])), (time.process_time() - started) / rounds * 1e6


AGENTS: dict[str, Play] = {"mapping": mapping, "rows": rows, "cats": cats, "summary": summary}


def line(name: str, results: list[tuple[float, float]]) -> str:
    losses, times = zip(*results, strict=True)
    error = np.std(losses, ddof=1) / math.sqrt(len(losses)) if len(losses) > 1 else math.nan
    return f"{name:24} {np.mean(losses):.4f} ± {error:.4f}   {np.mean(times):8.1f} µs"


def play_levels(levels: int, seeds: int, agents: list[str] | None) -> None:
    rounds = 50_000 if levels >= 1000 else 20_000
    for name in agents or [name for name in AGENTS if name != "rows" or levels < 1000]:
        results = [AGENTS[name](levels, rounds, seed) for seed in range(seeds)]
        print(line(f"{levels} levels, {name}", results), flush=True)


def play_table(path: str, target: str, seeds: int) -> None:
    table = {name: column.to_pylist() for name, column in read_columns(path).items()}
    values = np.array(table.pop(target), dtype=np.float64)
    targets = (values - values.min()) / (values.max() - values.min())
    encoded = Columns.fit(table).rows(table)
    records = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    for name, contexts in (("mapping", records), ("rows", encoded)):
        results = []
        for seed in range(seeds):
            order = np.random.default_rng(seed).permutation(len(targets))
            agent = manul.Auto(seed=seed, epsilon=0.05)
            results.append(mean_loss(agent, (contexts[i] for i in order), targets[order], len(order)))
        print(line(f"{path.rsplit('/', 1)[-1]}, {name}", results), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--levels", default="40,80,200,5000")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--agents", help="some of mapping, rows, cats and summary, separated by commas")
    parser.add_argument("--table", help="a table with texts and numbers, instead of levels")
    parser.add_argument("--target", help="its column of targets")
    arguments = parser.parse_args()
    if arguments.table:
        play_table(arguments.table, arguments.target, arguments.seeds)
    else:
        for levels in arguments.levels.split(","):
            play_levels(int(levels), arguments.seeds, arguments.agents and arguments.agents.split(","))


if __name__ == "__main__":
    main()
