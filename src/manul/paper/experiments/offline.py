"""Off-policy optimisation from the log of one setting (right panel of the paper's first figure).

The paper's protocol: CATS with (4, 1/4) logs 80 % of the rows, CATS_Off learns from the log, the rest is the test. The
analysis compares the test losses before and after optimisation with each other and with the published ones.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from manul.actions.ranges import fraction
from manul.agents.cats import Cats
from manul.errors import FileError
from manul.logs.log import Log
from manul.offpolicy.optimization.grid import Grid, Rule
from manul.offpolicy.optimization.optimize import optimize
from manul.paper.experiments import hindsight, published
from manul.paper.experiments.methods import EPSILON, INITIAL, RULES
from manul.paper.experiments.problem_sets import Problem
from manul.paper.experiments.result_tables import Row, loss_row
from manul.paper.experiments.timed_tasks import Result, TaskRunner
from manul.worlds.regression import Regression
from manul.worlds.simulation import simulate

GRID = Grid.paper()
TRAIN = 0.8  # of the rows, as in the paper


def sweep(problem: Problem, runner: TaskRunner, *, folder: Path) -> list[Row]:
    """A row per policy with its loss on the test rows; an interrupted run resumes from the folder."""
    cut = round(TRAIN * problem.rounds)
    train, test = problem.part(0, cut), problem.part(cut, problem.rounds)
    agent = Cats.paper(leaves=4, bandwidth=1 / 4, epsilon=EPSILON, seed=problem.seed)
    log = simulate(agent, train).log
    rows = [loss_row(problem.name, INITIAL, 4, 1 / 4, _test_loss(agent, test), len(test))]
    for rule, name in RULES.items():
        settings = {"experiment": "offline", **problem.identity, "rule": rule}
        measure = partial(_optimise, problem, runner, log, test, rule, folder / f"{problem.name}-{rule}")
        result = runner.file.get_or_measure(settings, measure)
        rows.append(loss_row(problem.name, name, result["leaves"], result["bandwidth"], result["loss"], len(test)))
    return rows + _hindsight_rows(problem, test)


def _optimise(problem: Problem, runner: TaskRunner, log: Log, test: Regression, rule: Rule, folder: Path) -> Result:
    with _remove_incomplete(folder):
        best = optimize(
            log,
            grid=GRID,
            rule=rule,
            penalty=1.0,
            epsilon=EPSILON,
            seed=problem.seed,
            threads=runner.threads,
            resume=folder,
            progress=runner.progress,
        )
    loss = _test_loss(best.policy, test)
    shutil.rmtree(folder, ignore_errors=True)
    return {"leaves": best.leaves, "bandwidth": best.bandwidth, "loss": loss}


@contextmanager
def _remove_incomplete(folder: Path) -> Iterator[None]:
    """Remove the folder if a full disk leaves it without a checkpoint to resume from."""
    try:
        yield
    except FileError:
        if not (folder / "progress.json").exists():
            shutil.rmtree(folder, ignore_errors=True)
            with suppress(OSError):
                folder.parent.rmdir()
        raise


def _test_loss(policy: Any, test: Regression) -> float:
    """The mean loss of a policy that does not learn."""
    return float(np.abs(policy.decide_many(test.contexts).actions - test.targets).mean())


def _hindsight_rows(problem: Problem, test: Regression) -> list[Row]:
    named = hindsight.best_policies(test.contexts, test.targets)
    return [loss_row(problem.name, name, None, best.bandwidth, best.loss, len(test)) for name, best in named.items()]


def compare(rows: Sequence[Row]) -> list[Row]:
    """Add the published loss of the same policy to each row."""
    return [{**row, **_published(row)} for row in rows]


def _published(row: Row) -> Row:
    known = published.offline().get(row["dataset"])
    if known is None or row["player"] not in (INITIAL, *RULES.values()):
        return {"published": None, "published_half": None}
    if row["player"] == INITIAL:
        return {"published": known.initial, "published_half": known.initial_half}
    return {"published": known.optimised, "published_half": known.optimised_half}


def explain(rows: Sequence[Row], dataset: str) -> list[str]:
    by_player = {row["player"]: row for row in rows if row["dataset"] == dataset}
    before = by_player[INITIAL]
    sentences = []
    for name in RULES.values():
        after = by_player[name]
        apart = after["high"] < before["low"]
        cell = f"K = {after['leaves']}, h = {fraction(after['bandwidth'])}"
        sentences.append(
            f"{dataset}: {name} chose {cell}. Its test loss is {after['loss']:.4f} [{after['low']:.4f}, {after['high']:.4f}], that of "
            f"the logging policy {before['loss']:.4f} [{before['low']:.4f}, {before['high']:.4f}]; the intervals "
            f"{'do not overlap' if apart else 'overlap'}."
        )
    return sentences
