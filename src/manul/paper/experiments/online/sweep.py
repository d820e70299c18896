"""Runs every cell once over the rows and measures its progressive loss."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Any

from manul.paper.experiments import hindsight, vowpal_wabbit
from manul.paper.experiments import methods as players
from manul.paper.experiments.methods import Player
from manul.paper.experiments.problem_sets import Problem
from manul.paper.experiments.result_tables import Row, loss_row
from manul.paper.experiments.timed_tasks import Report, Task, TaskRunner
from manul.worlds.simulation import simulate_many

# Cells that Vowpal Wabbit runs in reasonable time: its dTree and dLinear take time proportional to the leaves.
VW_CELLS = (
    *vowpal_wabbit.grid(),
    *(vowpal_wabbit.Cell(kind="dtree", leaves=2**power) for power in range(1, 11)),
    *(vowpal_wabbit.Cell(kind="dlinear", leaves=2**power) for power in range(1, 7)),
)
SECONDS_AT_ONCE = 0.2  # between two updates of the progress bar


def sweep(problem: Problem, runner: TaskRunner, *, folder: Path | None) -> list[Row]:
    """A row per cell; with a folder for temporary files, also the cells of Vowpal Wabbit."""
    tasks = [_task(problem, player) for player in players.online()] + [_hindsight_task(problem)]
    if folder is not None:
        tasks += _vw_tasks(problem, folder)
    results = runner.results(tasks, f"online {problem.name}")
    return [row for result in results for row in result["rows"]]


def _task(problem: Problem, player: Player) -> Task:
    cell = {"player": player.name, "leaves": player.leaves, "bandwidth": player.bandwidth}
    return Task(
        {"experiment": "online", **problem.identity, **cell},
        player.cost * problem.rounds / 1e6,
        partial(_measure, problem, player),
    )


def _measure(problem: Problem, player: Player, report: Report) -> dict[str, Any]:
    agent, total, seconds = player.make(problem.seed), 0.0, 0.0
    step = max(256, int(SECONDS_AT_ONCE * 1e6 / player.cost))
    for first in range(0, problem.rounds, step):
        part = problem.part(first, min(first + step, problem.rounds))
        started = time.thread_time()
        total += float(simulate_many([agent], part, threads=1)[0].log.losses.sum())
        seconds += time.thread_time() - started
        report(len(part) / problem.rounds)
    row = loss_row(problem.name, player.name, player.leaves, player.bandwidth, total / problem.rounds, problem.rounds)
    return {"rows": [{**row, "seconds": seconds}]}


def _hindsight_task(problem: Problem) -> Task:
    settings = {"experiment": "hindsight", **problem.identity}
    return Task(settings, 40e-6 * problem.rounds, lambda _: {"rows": _hindsight_rows(problem)})


def _hindsight_rows(problem: Problem) -> list[Row]:
    return [
        {**loss_row(problem.name, name, None, best.bandwidth, best.loss, problem.rounds), "seconds": None}
        for name, best in hindsight.best_policies(problem.world.contexts, problem.world.targets).items()
    ]


def _vw_tasks(problem: Problem, folder: Path) -> list[Task]:
    file = folder / f"{problem.name}.vw"

    def measure(cell: vowpal_wabbit.Cell, _: Report) -> dict[str, Any]:
        loss = vowpal_wabbit.loss(cell=cell, file=file, seed=problem.seed)
        row = loss_row(problem.name, cell.name, cell.leaves, cell.bandwidth, loss, problem.rounds)
        return {"rows": [{**row, "seconds": None}]}

    vowpal_wabbit.write_regression(path=file, contexts=problem.world.contexts, targets=problem.world.targets)
    vowpal_wabbit.make_cache(file=file)
    tasks = []
    for cell in VW_CELLS:
        settings = {
            "experiment": "online",
            **problem.identity,
            "vw": cell.kind,
            "leaves": cell.leaves,
            "bandwidth": cell.bandwidth,
        }
        tasks.append(Task(settings, 0.5 + cell.cost * problem.rounds / 1e6, partial(measure, cell)))
    return tasks
