"""How often `optimize` calls a gain likely or proven where nothing can be gained, and where something can.

    python -m benchmarks.verdicts [LOGS] [--processes 2] [--only WORD]        # 60 logs per cell by default

Contexts are uniform on [0, 1]^3. In null cells, losses depend on the context or the time, but not on the action: whatever
`optimize` finds, its gain is 0. In the other cells, the loss depends on the distance of the action to 1/4 + context / 2, and
the true gain is that of the returned policy on other contexts. Agents learn after every block of 20 decisions while they log;
"uniform" and "wide" are fixed policies. Exits with status 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import manul
from manul.actions.levels import DrawnLevels, KnobLevels
from manul.utils.validation import Floats

LOGS, BLOCK, TESTED = 60, 20, 4000
MOST_WRONG, MOST_WRONG_IN_A_CELL, LEAST_SAID, ENOUGH = 0.05, 0.10, 0.85, 100
WORTHWHILE = 0.1  # of the logged loss: a smaller gain need not be seen
SAID = ("likely", "proven")


@dataclass(frozen=True)
class Cell:
    """A kind of log."""

    logger: str
    loss: str
    rows: int
    null: bool

    def __str__(self) -> str:
        return f"{'null' if self.null else 'gain'} {self.logger:8} {self.loss:9} {self.rows:6}"


LOSSES = ("binary", "rare", "skewed", "zeros", "trending")
LEARNERS = ("auto", "cats", "fading")
GRIDS: list[tuple[Iterable[str], Iterable[str], Iterable[int], Iterable[bool]]] = [
    (LEARNERS, LOSSES, (1500,), (True,)),
    (LEARNERS, ("rare", "skewed", "trending"), (10_000,), (True,)),
    (("fading",), ("trending",), (50_000,), (True,)),
    (("uniform", "wide"), ("binary", "skewed", "trending"), (1500,), (True,)),
    (("uniform", "wide", "cats"), ("binary", "skewed", "zeros", "trending"), (1500, 10_000), (False,)),
    (("auto", "fading"), ("binary", "trending"), (10_000,), (False,)),
]
CELLS = [Cell(*settings) for grid in GRIDS for settings in product(*grid)]


def mean_loss(cell: Cell, contexts: Floats, actions: Floats) -> Floats:
    """The expected loss, apart from what the kind of losses adds: a function of the context alone in null cells."""
    first = contexts[:, 0].astype(np.float64)
    return 0.3 + 0.4 * first if cell.null else np.abs(actions - 0.25 - first / 2)


def draw_losses(kind: str, means: Floats, times: Floats, rng: np.random.Generator) -> Floats:
    """Losses in [0, 1] that grow with the mean; `times` run from 0 to 1."""
    count = len(means)
    if kind == "binary":
        return (rng.random(count) < means).astype(np.float64)
    if kind == "rare":
        return (rng.random(count) < 0.1 * means).astype(np.float64)
    if kind == "skewed":
        return np.minimum(0.5 * means * rng.pareto(1.5, count), 1.0)
    if kind == "zeros":
        return np.where(rng.random(count) < 0.8, 0.0, np.minimum(2 * means * rng.random(count), 1.0))
    return np.clip(0.1 + 0.5 * times + 0.4 * means + 0.1 * rng.standard_normal(count), 0.0, 1.0)


def expected_losses(kind: str, means: Floats) -> Floats:
    """The mean of such losses over the draws and over the time, on a grid of means."""
    rng, grid = np.random.default_rng(0), np.linspace(0, 1, 101)
    table = [draw_losses(kind, np.full(40_000, mean), np.linspace(0, 1, 40_000), rng).mean() for mean in grid]
    return np.interp(means, grid, table)


class Window:
    """A fixed policy that logs: uniform in a window around 0.4, and with probability epsilon in the whole range."""

    def __init__(self, half: float, epsilon: float, seed: int) -> None:
        self.low, self.high, self.current_epsilon = 0.4 - half, 0.4 + half, epsilon
        self.rng = np.random.default_rng([seed, 1])

    def decide_many(self, contexts: Floats, *, levels: bool) -> manul.Decisions:
        """Actions and densities, and what they were drawn from."""
        assert levels
        count, epsilon = len(contexts), self.current_epsilon
        explored = self.rng.random(count) < epsilon
        actions = np.where(explored, self.rng.random(count), self.rng.uniform(self.low, self.high, count))
        inside = (self.low <= actions) & (actions <= self.high)
        windows = np.tile([self.low, self.high, 0.0, epsilon], (count, 1))
        drawn = DrawnLevels({"": KnobLevels.of_windows(windows, np.zeros(count), np.ones(count))})
        return manul.Decisions(actions, epsilon + (1 - epsilon) * inside / (self.high - self.low), drawn=drawn)

    def learn_many(self, contexts: Floats, decisions: manul.Decisions, losses: Floats) -> None:
        """Nothing is learned."""


def make_logger(name: str, seed: int) -> Any:
    """The policy that logs."""
    if name == "auto":
        return manul.Auto(seed=seed)
    if name == "uniform":
        return Window(0.4, 1.0, seed)
    if name == "wide":
        return Window(0.3, 0.2, seed)
    epsilon = manul.schedules.Fading(first=0.3, last=0.01, rounds=100) if name == "fading" else 0.05
    return manul.Cats(leaves=16, bandwidth=1 / 8, epsilon=epsilon, seed=seed)


def make_log(cell: Cell, seed: int) -> manul.Log:
    """A log of a cell."""
    rng, logger = np.random.default_rng([seed, cell.rows]), make_logger(cell.logger, seed)
    contexts, columns = rng.random((cell.rows, 3)).astype(np.float32), []
    for start in range(0, cell.rows, BLOCK):
        part = contexts[start : start + BLOCK]
        floors, decisions = np.full(len(part), logger.current_epsilon), logger.decide_many(part, levels=True)
        times = (start + np.arange(len(part))) / cell.rows
        losses = draw_losses(cell.loss, mean_loss(cell, part, decisions.actions), times, rng)
        logger.learn_many(part, decisions, losses)
        columns.append((decisions.actions, decisions.densities, losses, floors, decisions.levels[""]))
    *arrays, levels = zip(*columns, strict=True)
    actions, densities, losses, floors = map(np.concatenate, arrays)
    given = {"floors": floors, "levels": {"": KnobLevels.join(levels)}, "action_range": (0.0, 1.0)}
    return manul.Log(contexts, actions, densities, losses, **given)


class Judged(NamedTuple):
    """One log: the status of the verdict, the effective sample size, the claimed gain, and the true gain and logged loss."""

    status: str
    size: float
    claimed: float
    gain: float
    logged: float


def judge(cell: Cell, seed: int) -> Judged:
    """Optimise a log, and compare the verdict with the truth."""
    log = make_log(cell, seed)
    best = manul.optimize(log)
    assert best.verdict is not None
    logged = float(expected_losses(cell.loss, mean_loss(cell, log.contexts, log.actions)).mean())
    contexts = np.random.default_rng([seed, 2]).random((TESTED, 3)).astype(np.float32)
    played = mean_loss(cell, contexts, best.policy.decide_many(contexts).actions)
    gain = 0.0 if cell.null else logged - float(expected_losses(cell.loss, played).mean())
    return Judged(best.verdict.status, best.verdict.effective_size, best.verdict.gain, gain, logged)


def summary(cell: Cell, judged: list[Judged]) -> tuple[str, int, int]:
    """A line about a cell, and its numbers of logs that count and of claims among them."""
    counted = [each for each in judged if cell.null or (each.size >= ENOUGH and each.gain >= WORTHWHILE * each.logged)]
    said = sum(each.status in SAID for each in counted)
    proven = sum(each.status == "proven" for each in counted)
    wrong = sum(each.status in SAID and each.gain <= 0 for each in judged)
    sizes, gains = np.array([each.size for each in judged]), np.array([each.gain for each in judged])
    line = f"{cell}  said {said:2} of {len(counted):2} ({proven} proven), wrong {wrong:2}; "
    line += f"effective size {np.median(sizes):6.0f}, true gain {np.median(gains):6.3f}"
    return line, said, len(counted)


def main(logs: int, processes: int, only: str) -> int:
    missed, totals = [], {True: np.zeros(2, int), False: np.zeros(2, int)}
    cells = [cell for cell in CELLS if only in str(cell)]
    with ProcessPoolExecutor(processes) as pool:
        for cell in cells:
            line, said, counted = summary(cell, list(pool.map(judge, [cell] * logs, range(logs), chunksize=2)))
            print(line, flush=True)
            totals[cell.null] += said, counted
            if cell.null and said > MOST_WRONG_IN_A_CELL * counted:
                missed.append(f"{cell}: {said} of {counted} claimed")
    for null, (said, counted) in totals.items():
        if counted:
            print(
                f"{'null cells: claimed' if null else 'gains with enough matching decisions: said'} {said} of {counted}"
            )
            if said > MOST_WRONG * counted if null else said < LEAST_SAID * counted:
                missed.append("too many claims" if null else "too few claims")
    print("\n".join(missed) or "all targets met")
    return int(bool(missed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", type=int, nargs="?", default=LOGS)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default="", help="cells whose line contains this text")
    options = parser.parse_args()
    sys.exit(main(options.logs, options.processes, options.only))
