"""Play every cell once through, and say what it lost on the way."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from manul.paper.experiments import hindsight, vowpal_wabbit
from manul.paper.experiments import methods as players
from manul.paper.experiments.methods import Player
from manul.paper.experiments.problem_sets import Problem
from manul.paper.experiments.result_tables import Row, clopper_pearson
from manul.paper.experiments.timed_tasks import Crew, Report, Task
from manul.worlds.simulation import simulate_many

VW_NAMES: dict[vowpal_wabbit.Kind, str] = {"cats": "VW CATS", "dtree": "VW dTree", "dlinear": "VW dLinear"}
# What Vowpal Wabbit can play in the time of the others: its dTree and dLinear take a time that grows with the leaves.
VW_CELLS = (
    *vowpal_wabbit.grid(),
    *(vowpal_wabbit.Cell(kind="dtree", leaves=2**power) for power in range(1, 11)),
    *(vowpal_wabbit.Cell(kind="dlinear", leaves=2**power) for power in range(1, 7)),
)
SECONDS_AT_ONCE = 0.2


def sweep(problem: Problem, crew: Crew, *, folder: Path | None) -> list[Row]:
    """A row per cell; with a folder for its files, also Vowpal Wabbit's."""
    tasks = [_task(problem, player) for player in players.online()] + [_hindsight_task(problem)]
    if folder is not None:
        tasks += _vw_tasks(problem, folder)
    found = crew.results(tasks, f"online {problem.name}")
    return [row for result in found for row in result["rows"]]


def _task(problem: Problem, player: Player) -> Task:
    what = {"experiment": "online", **problem.identity, **_settings(player)}
    return Task(what, player.cost * problem.rounds / 1e6, partial(_played, problem, player))


def _played(problem: Problem, player: Player, report: Report) -> dict[str, Any]:
    agent, total, seconds = player.make(problem.seed), 0.0, 0.0
    step = max(256, int(SECONDS_AT_ONCE * 1e6 / player.cost))
    for first in range(0, problem.rounds, step):
        part = problem.part(first, min(first + step, problem.rounds))
        started = time.thread_time()
        total += float(simulate_many([agent], part, threads=1)[0].log.losses.sum())
        seconds += time.thread_time() - started
        report(len(part) / problem.rounds)
    return {"rows": [_row(problem, **_settings(player), loss=total / problem.rounds, seconds=seconds)]}


def _settings(player: Player) -> dict[str, Any]:
    return {"player": player.name, "leaves": player.leaves, "bandwidth": player.bandwidth}


def _row(problem: Problem, *, loss: float, seconds: float | None, **settings: Any) -> Row:
    low, high = clopper_pearson(loss, problem.rounds)
    row = {"dataset": problem.name, **settings, "rounds": problem.rounds, "loss": loss, "low": low, "high": high}
    return {**row, "seconds": seconds}


def _hindsight_task(problem: Problem) -> Task:
    what = {"experiment": "hindsight", **problem.identity}
    return Task(what, 40e-6 * problem.rounds, lambda _: {"rows": _hindsight(problem)})


def _hindsight(problem: Problem) -> list[Row]:
    targets = problem.world.targets
    constant = hindsight.best_constant(targets)
    centres, _ = hindsight.linear_centres(problem.world.contexts, targets)
    optimum = hindsight.best_bandwidth(targets, centres)
    named = {players.CONSTANT: constant, players.OPTIMUM: optimum}
    return [
        _row(problem, player=name, leaves=None, bandwidth=found.bandwidth, loss=found.loss, seconds=None)
        for name, found in named.items()
    ]


def _vw_tasks(problem: Problem, folder: Path) -> list[Task]:
    file = folder / f"{problem.name}.vw"

    def played(cell: vowpal_wabbit.Cell, _: Report) -> dict[str, Any]:
        loss = vowpal_wabbit.loss(cell=cell, file=file, seed=problem.seed)
        settings = {"player": VW_NAMES[cell.kind], "leaves": cell.leaves, "bandwidth": cell.bandwidth}
        return {"rows": [_row(problem, **settings, loss=loss, seconds=None)]}

    vowpal_wabbit.write_regression(path=file, contexts=problem.world.contexts, targets=problem.world.targets)
    vowpal_wabbit.make_cache(file=file)
    tasks = []
    for cell in VW_CELLS:
        what = {
            "experiment": "online",
            **problem.identity,
            "vw": cell.kind,
            "leaves": cell.leaves,
            "bandwidth": cell.bandwidth,
        }
        tasks.append(Task(what, 0.5 + vw_cost(cell) * problem.rounds / 1e6, partial(played, cell)))
    return tasks


def vw_cost(cell: vowpal_wabbit.Cell) -> float:
    """Guessed µs per round.

    >>> vw_cost(vowpal_wabbit.Cell(kind="dlinear", leaves=64))
    37.0
    """
    each = {
        "cats": 3 + 0.9 * cell.leaves.bit_length(),
        "dtree": 3 + 0.006 * cell.leaves,
        "dlinear": 5 + 0.5 * cell.leaves,
    }
    return each[cell.kind]
