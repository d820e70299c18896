"""The online experiment: every method over its settings, once over the rows (left panel of the paper's first figure).

The analysis compares the best cell of every method with the published one, and explains the order of the methods.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from manul.actions.ranges import fraction
from manul.paper.experiments import hindsight, published, vowpal_wabbit
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


ORDER = (
    players.PAPER,
    players.MARGIN,
    players.TREE,
    players.LINEAR,
    "VW CATS",
    "VW dTree",
    "VW dLinear",
    players.OURS,
    players.DEFAULT,
    players.ADAPTIVE,
    players.AUTO,
    players.CONSTANT,
    players.OPTIMUM,
)
# The published program is Vowpal Wabbit, which trains one regressor per node like Cats.paper with margin.
COUNTERPART = {
    players.MARGIN: players.PAPER,
    "VW CATS": players.PAPER,
    "VW dTree": players.TREE,
    "VW dLinear": players.LINEAR,
}


def best(rows: Sequence[Row]) -> list[Row]:
    """The row with the lowest loss of each method on each data set, with the published best of the same method."""
    lowest: dict[tuple[str, str], Row] = {}
    cells: dict[tuple[str, str], int] = {}
    for row in rows:
        key = row["dataset"], row["player"]
        cells[key] = cells.get(key, 0) + 1
        if key not in lowest or row["loss"] < lowest[key]["loss"]:
            lowest[key] = row
    ranked = sorted(lowest, key=lambda key: ORDER.index(key[1]))
    return [{**lowest[key], "cells": cells[key], **_published(*key)} for key in ranked]


def _published(dataset: str, player: str) -> Row:
    cell = published.best(dataset, COUNTERPART.get(player, player))
    if cell is None:
        return {"published": None, "published_leaves": None, "published_bandwidth": None}
    return {"published": cell.loss, "published_leaves": cell.leaves, "published_bandwidth": cell.bandwidth}


def explain(rows: Sequence[Row], dataset: str) -> list[str]:
    """Explain the order of the methods on a data set in sentences."""
    by_player = {row["player"]: row for row in best(rows) if row["dataset"] == dataset}
    constant, optimum = by_player[players.CONSTANT], by_player[players.OPTIMUM]
    methods = [by_player[name] for name in (players.PAPER, players.TREE, players.LINEAR)]
    sentences = [_order_sentence(methods, dataset)]
    near = [row for row in methods if row["loss"] > 0.5 * (constant["loss"] + optimum["loss"])]
    if near:
        sentences.append(_near_constant(near, methods, constant, optimum))
    sentences.append(_many_leaves([row for row in rows if row["dataset"] == dataset]))
    sentences.append(_ours_sentence(by_player))
    return sentences


def _near_constant(near: list[Row], methods: list[Row], constant: Row, optimum: Row) -> str:
    losses = [row["loss"] for row in methods]
    cells = ", ".join(f"{row['player']} at {_cell(row)}" for row in near)
    return (
        f"Why they are so close: the loss of the best constant action is {constant['loss']:.4f}, that of the best linear policy in "
        f"hindsight {optimum['loss']:.4f}, both with smoothing and exploration. The losses of the three methods differ by at most "
        f"{max(losses) - min(losses):.4f} and are close to that of the constant ({cells}). A round informs a leaf or an action only "
        "if the chosen action is near it, with importance weights of up to K/ε, or 1/(2hε) with smoothing, so a finer grid or a "
        "narrower window costs more in learning than it gains in precision. The order depends on how quickly each method finds a "
        "few good actions near the median, not on what its policies can express, so it changes with the data, the seed and the "
        "number of rounds."
    )


def _many_leaves(rows: Sequence[Row]) -> str:
    searched = [row for row in rows if row["player"] in (players.PAPER, players.TREE, players.LINEAR)]
    most = min(
        max(row["leaves"] for row in searched if row["player"] == name) for name in {row["player"] for row in searched}
    )
    losses: dict[str, float] = {}
    for row in searched:
        if row["leaves"] == most:
            losses[row["player"]] = min(row["loss"], losses.get(row["player"], 1.0))
    text = ", ".join(f"{name} {loss:.4f}" for name, loss in losses.items())
    lowest = min(losses, key=lambda name: losses[name])
    reason = ". Smoothing helps here: one round of CATS trains all leaves of a window"
    return f"With many leaves, K = {most:,}, the lowest losses are {text}{reason if lowest == players.PAPER else ''}."


def _order_sentence(methods: list[Row], dataset: str) -> str:
    here = " < ".join(
        f"{row['player']} {row['loss']:.4f}" for row in sorted(methods, key=lambda row: float(row["loss"]))
    )
    known = [row for row in methods if row["published"] is not None]
    if not known:
        return f"Order on {dataset}: {here}."
    there = " < ".join(
        f"{row['player']} {row['published']:.4f}" for row in sorted(known, key=lambda row: float(row["published"]))
    )
    return f"Order on {dataset}, here: {here}; as published: {there}."


def _ours_sentence(by_player: dict[str, Row]) -> str:
    default, paper = by_player[players.DEFAULT], by_player[players.PAPER]
    others = ", ".join(f"{name} {by_player[name]['loss']:.4f}" for name in (players.ADAPTIVE, players.AUTO))
    comparison = "below" if default["loss"] < paper["loss"] else "not below"
    return (
        f"The loss of Cats with one fixed setting is {default['loss']:.4f}, {comparison} the best of {paper['cells']} cells of "
        f"Cats.paper. Cats trains the nodes on the path to the chosen leaf, with bounded doubly robust costs. Without settings: {others}."
    )


def _cell(row: Row) -> str:
    window = f", h = {fraction(row['bandwidth'])}" if row["bandwidth"] is not None else ""
    return f"K = {row['leaves']}{window}"
