"""The CPU time per round on one core (the paper's second figure): against h at K = 2^13, against K at h = 1/4, and of the
comparators against K.

The cells take turns for several passes, and the lowest time of each counts, because other processes only add time. The
analysis fits the growth of the time with the bandwidth and with the leaves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from tqdm import tqdm

from manul.paper.experiments import methods, vowpal_wabbit
from manul.paper.experiments.methods import Player
from manul.paper.experiments.problem_sets import Problem
from manul.paper.experiments.result_tables import Row, power_of_two
from manul.paper.experiments.timed_tasks import TaskRunner
from manul.worlds.simulation import simulate_many

BANDWIDTH, LEAVES = "bandwidth", "leaves"
MOST_LEAVES, WIDEST = 2**13, 1 / 4
# A measurement runs for about SECONDS, but for at most ROUNDS.
PASSES, ROUNDS, SECONDS, VW_ROUNDS = 5, 50_000, 0.25, 60_000


def cells() -> Iterator[tuple[str, Player]]:
    """Yield each cell to be timed, with the axis that it belongs to."""
    for name in (methods.PAPER, methods.OURS):
        yield from ((BANDWIDTH, methods.tree(name, MOST_LEAVES, 2.0**-power)) for power in range(2, 14))
        yield from ((LEAVES, methods.tree(name, 2**power, WIDEST)) for power in range(2, 14))
    for name in (methods.TREE, methods.LINEAR):
        yield from ((LEAVES, methods.discrete(name, 2**power)) for power in methods.POWERS)


def sweep(problem: Problem, runner: TaskRunner, *, folder: Path | None) -> list[Row]:
    """A row per cell with its µs per round; with a folder for temporary files, also the cells of Vowpal Wabbit."""
    settings = {"experiment": "timing", **problem.identity}
    result = runner.file.get_or_measure(settings, lambda: {"rows": _measure(problem, progress=runner.progress)})
    rows = list(result["rows"])
    if folder is not None:
        vw_settings = {**settings, "experiment": "timing of VW"}
        vw = partial(_measure_vw, problem, folder, progress=runner.progress)
        rows += runner.file.get_or_measure(vw_settings, lambda: {"rows": vw()})["rows"]
    return rows


def _measure(problem: Problem, *, progress: bool) -> list[Row]:
    players = list(cells())
    rounds = [_rounds(problem, player.cost) for _, player in players]
    parts = {count: problem.part(0, count) for count in set(rounds)}
    lowest = [float("inf")] * len(players)
    turns = [index for _ in range(PASSES) for index in range(len(players))]
    for index in tqdm(turns, desc=f"timing {problem.name}", disable=not progress, unit=" runs"):
        agent, part = players[index][1].make(problem.seed), parts[rounds[index]]
        started = time.process_time()
        simulate_many([agent], part, threads=1)
        lowest[index] = min(lowest[index], (time.process_time() - started) / len(part))
    return [
        _row(problem, player.name, against, player.leaves, player.bandwidth, count, seconds)
        for (against, player), count, seconds in zip(players, rounds, lowest, strict=True)
    ]


def _rounds(problem: Problem, cost: float) -> int:
    return min(problem.rounds, ROUNDS, max(200, int(SECONDS * 1e6 / cost)))


def _measure_vw(problem: Problem, folder: Path, *, progress: bool) -> list[Row]:
    file = folder / f"{problem.name}-timing.vw"
    part = problem.part(0, min(problem.rounds, VW_ROUNDS))
    vowpal_wabbit.write_regression(path=file, contexts=part.contexts, targets=part.targets)
    cache = vowpal_wabbit.make_cache(file=file)
    rows = []
    for against, cell in tqdm(list(_vw_cells()), desc=f"timing VW {problem.name}", disable=not progress, unit=" runs"):
        rounds = min(len(part), max(500, int(1e6 / cell.cost)))
        seconds = vowpal_wabbit.learn_seconds(cell=cell, cache=cache, rounds=rounds).per_round
        rows.append(_row(problem, cell.name, against, cell.leaves, cell.bandwidth, rounds, seconds))
    return rows


def _vw_cells() -> Iterator[tuple[str, vowpal_wabbit.Cell]]:
    for power in (2, 6, 9, 13):
        yield BANDWIDTH, vowpal_wabbit.Cell(kind="cats", leaves=MOST_LEAVES, bandwidth=2.0**-power)
    for power in (2, 5, 8, 11, 13):
        yield LEAVES, vowpal_wabbit.Cell(kind="cats", leaves=2**power, bandwidth=WIDEST)
        yield LEAVES, vowpal_wabbit.Cell(kind="dtree", leaves=2**power)
    for power in (2, 4, 6, 8):
        yield LEAVES, vowpal_wabbit.Cell(kind="dlinear", leaves=2**power)


def _row(
    problem: Problem,
    player: str,
    against: str,
    leaves: int | None,
    bandwidth: float | None,
    rounds: int,
    seconds: float,
) -> Row:
    row: dict[str, Any] = {"dataset": problem.name, "player": player, "against": against, "leaves": leaves}
    return {**row, "bandwidth": bandwidth, "rounds": rounds, "microseconds": seconds * 1e6}


MANY = 64  # below, the time of methods that are linear in the leaves is mostly overhead


@dataclass(frozen=True)
class Slope:
    """The slope of a fitted line, and the share of the variance that it explains."""

    slope: float
    explained: float


def fit_line(xs: npt.ArrayLike, ys: npt.ArrayLike) -> Slope:
    """Fit a line by least squares.

    >>> fit_line([0.0, 1.0, 2.0], [1.0, 3.0, 5.0])
    Slope(slope=2.0, explained=1.0)
    """
    x, y = np.asarray(xs, dtype=np.float64), np.asarray(ys, dtype=np.float64)
    slope, intercept = np.polyfit(x, y, 1)
    total = float(((y - y.mean()) ** 2).sum())
    residual = float(((y - slope * x - intercept) ** 2).sum())
    return Slope(round(float(slope), 12), round(1 - residual / total, 12) if total > 0 else 1.0)


def slopes(rows: Sequence[Row]) -> list[Row]:
    """The exponent of a power law and the µs per doubling, per data set, method and axis."""
    fits = []
    groups = dict.fromkeys((row["dataset"], row["player"], row["against"]) for row in rows)
    for dataset, player, against in groups:
        points = [row for row in rows if (row["dataset"], row["player"], row["against"]) == (dataset, player, against)]
        if len(points) < 3:
            continue
        logs, times = np.log2([row[against] for row in points]), np.array([row["microseconds"] for row in points])
        many = [index for index, row in enumerate(points) if row["leaves"] >= MANY]
        if player in methods.EVERY_LEAF and len(many) >= 2:
            logs, times = logs[many], times[many]
        doubling = fit_line(logs, times)
        power = fit_line(logs, np.log2(np.maximum(times, 1e-9)))
        fits.append(
            {
                "dataset": dataset,
                "player": player,
                "against": against,
                "exponent": power.slope,
                "exponent_explained": power.explained,
                "microseconds_per_doubling": doubling.slope,
                "doubling_explained": doubling.explained,
                "fastest": float(times.min()),
                "slowest": float(times.max()),
            }
        )
    return fits


def explain(rows: Sequence[Row], dataset: str) -> list[str]:
    fits = {(row["player"], row["against"]): row for row in slopes(rows) if row["dataset"] == dataset}
    sentences = []
    for player in (methods.PAPER, methods.OURS, "VW CATS"):
        if (player, BANDWIDTH) in fits:
            flat = fits[player, BANDWIDTH]
            sentences.append(
                f"{player} against h at K = 8192: time ∝ h^{flat['exponent']:.3f}, between {flat['fastest']:.2f} and "
                f"{flat['slowest']:.2f} µs while h grows from {power_of_two(-13)} to {power_of_two(-2)} (exponent 0: constant, "
                "1: proportional)."
            )
    for player in (methods.PAPER, methods.OURS, methods.TREE, "VW CATS"):
        if (player, LEAVES) in fits:
            steps = fits[player, LEAVES]
            sentences.append(
                f"{player} against K: {steps['microseconds_per_doubling']:+.3f} µs per doubling of K; a straight line in log K "
                f"explains {steps['doubling_explained']:.0%} of the variation (as a power law: K^{steps['exponent']:.2f})."
            )
    for player in (methods.LINEAR, "VW dTree", "VW dLinear"):
        if (player, LEAVES) in fits:
            steps = fits[player, LEAVES]
            limit = f" from K = {MANY} on" if player in methods.EVERY_LEAF else ""
            sentences.append(
                f"{player} against K{limit}: time ∝ K^{steps['exponent']:.2f}, up to {steps['slowest']:.0f} µs."
            )
    return sentences
