"""CPU time per round on one core: against h at K = 2^13, against K at h = 1/4, and of the comparators against K.

The cells take turns for a few passes, and the least time of each counts: what else the machine does only ever adds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tqdm import tqdm

from manul.paper.experiments import methods as players
from manul.paper.experiments import vowpal_wabbit
from manul.paper.experiments.methods import Player
from manul.paper.experiments.online.sweep import VW_NAMES, vw_cost
from manul.paper.experiments.problem_sets import Problem
from manul.paper.experiments.result_tables import Row
from manul.paper.experiments.timed_tasks import Crew
from manul.worlds.simulation import simulate_many

BANDWIDTH, LEAVES = "bandwidth", "leaves"
MOST_LEAVES, WIDEST = 2**13, 1 / 4
PASSES, ROUNDS, SECONDS, VW_ROUNDS = 5, 50_000, 0.25, 60_000


def cells() -> Iterator[tuple[str, Player]]:
    """What is timed, and against what."""
    for name in (players.PAPER, players.OURS):
        yield from ((BANDWIDTH, players.tree(name, MOST_LEAVES, 2.0**-power)) for power in range(2, 14))
        yield from ((LEAVES, players.tree(name, 2**power, WIDEST)) for power in range(2, 14))
    for name in (players.TREE, players.LINEAR):
        yield from ((LEAVES, players.discrete(name, 2**power)) for power in players.POWERS)


def sweep(problem: Problem, crew: Crew, *, folder: Path | None) -> list[Row]:
    """A row per cell with its µs per round; with a folder for its files, also Vowpal Wabbit's."""
    what = {"experiment": "timing", **problem.identity}
    rows = _recalled(crew, what, lambda: _timed(problem, progress=crew.progress))
    if folder is not None:
        vw_what = {**what, "experiment": "timing of VW"}
        rows += _recalled(crew, vw_what, lambda: _vw_timed(problem, folder, progress=crew.progress))
    return rows


def _recalled(crew: Crew, what: Mapping[str, Any], measure: Callable[[], list[Row]]) -> list[Row]:
    found = crew.memory.recall(what)
    if found is None:
        found = {"rows": measure()}
        crew.memory.keep(what, found)
    return list(found["rows"])


def _timed(problem: Problem, *, progress: bool) -> list[Row]:
    timed = list(cells())
    rounds = [_rounds(problem, player.cost) for _, player in timed]
    parts = {count: problem.part(0, count) for count in set(rounds)}
    least = [float("inf")] * len(timed)
    turns = [place for _ in range(PASSES) for place in range(len(timed))]
    for place in tqdm(turns, desc=f"timing {problem.name}", disable=not progress, unit=" runs"):
        agent, part = timed[place][1].make(problem.seed), parts[rounds[place]]
        started = time.process_time()
        simulate_many([agent], part, threads=1)
        least[place] = min(least[place], (time.process_time() - started) / len(part))
    return [
        _row(problem, player.name, against, player.leaves, player.bandwidth, count, each)
        for (against, player), count, each in zip(timed, rounds, least, strict=True)
    ]


def _rounds(problem: Problem, cost: float) -> int:
    return min(problem.rounds, ROUNDS, max(200, int(SECONDS * 1e6 / cost)))


def _vw_timed(problem: Problem, folder: Path, *, progress: bool) -> list[Row]:
    file = folder / f"{problem.name}-timing.vw"
    part = problem.part(0, min(problem.rounds, VW_ROUNDS))
    vowpal_wabbit.write_regression(path=file, contexts=part.contexts, targets=part.targets)
    cache = vowpal_wabbit.make_cache(file=file)
    rows = []
    for against, cell in tqdm(list(_vw_cells()), desc=f"timing VW {problem.name}", disable=not progress, unit=" runs"):
        rounds = min(len(part), max(500, int(1e6 / vw_cost(cell))))
        seconds = vowpal_wabbit.learn_seconds(cell=cell, cache=cache, rounds=rounds).per_round
        rows.append(_row(problem, VW_NAMES[cell.kind], against, cell.leaves, cell.bandwidth, rounds, seconds))
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
