"""`make bench-loss`: the mean loss of manul, a LightGBM critic and Vowpal Wabbit, with the best constant and the optimum.

    python -m benchmarks.loss --table diamonds.csv.gz --target price
    python -m benchmarks.loss --worlds linear --players auto lightgbm --encoded kin40k.npz

Epsilon is 0.05 unless the row says otherwise; that of `Auto()` and of the LightGBM critic fades, and Vowpal Wabbit has the best
of 0.05, 0.01 and 0.002. Losses are means over the seeds with their standard errors; a seed generates the world (or the order of
a table's rows) and seeds the agent. *The optimum* of regression data is the best linear policy in hindsight (least absolute
deviations) with the best bandwidth from 1/4 to 1/128; that of the other worlds is the best of all policies. The optimum and
the best constant do not explore. *Excess* is loss minus optimum, *share* is the excess divided by that of Vowpal Wabbit's
best CATS cell in hindsight.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import manul
from benchmarks import lightgbm_critic, problems, search
from benchmarks.problems import Problem
from manul.paper import datasets
from manul.paper.experiments import vowpal_wabbit
from manul.paper.experiments.methods import EPSILON

# The cells at which Cats and Vowpal Wabbit are compared on the linear world, and those of the best Cats in hindsight.
CELLS = tuple((leaves, h) for leaves in (16, 128, 1024, 8192) for h in (1 / 16, 1 / 64) if leaves * h >= 1)
COMPARED_CELLS = ((4, 1 / 4), *CELLS)
CATS_CELLS = tuple((2**k, 2.0**-j) for k in (4, 6, 8, 10, 12) for j in range(3, 11) if k >= j)
VW_CELLS: dict[str, list[vowpal_wabbit.Cell]] = {
    "cats": vowpal_wabbit.grid(),
    "dtree": [vowpal_wabbit.Cell(kind="dtree", leaves=2**power) for power in range(2, 11)],
    "dlinear": [vowpal_wabbit.Cell(kind="dlinear", leaves=2**power) for power in range(1, 7)],
}

# Targets of tables are clipped to these percentiles, because a few outliers would compress all others.
PERCENTILES = (0.5, 99.5)

# The epsilons with which the best cells of Vowpal Wabbit run.
VW_EPSILONS = (0.05, 0.01, 0.002)

MakeAgent = Callable[[int], manul.policies.Agent]


@dataclass(frozen=True)
class Row:
    """One method on one problem."""

    player: str
    losses: tuple[float, ...]
    excess: float
    share: float | None = None
    note: str = ""

    @property
    def loss(self) -> float:
        return float(np.mean(self.losses))

    @property
    def error(self) -> float:
        return float(np.std(self.losses, ddof=1) / np.sqrt(len(self.losses))) if len(self.losses) > 1 else float("nan")


@dataclass(frozen=True)
class CellRow:
    """Cats and Vowpal Wabbit with the same leaves and bandwidth."""

    leaves: int
    bandwidth: float
    optimum: float
    cats: float
    vw: float

    @property
    def ratio(self) -> float:
        return (self.cats - self.optimum) / (self.vw - self.optimum)


def agents() -> dict[str, dict[str, MakeAgent]]:
    """Functions that create the agents of manul from a seed, by the name in the table, for each player of `--players`."""
    linear = manul.policies.Linear
    return {
        "cats": {"Cats(leaves=512, bandwidth=1/32)": lambda s: _cats(512, 1 / 32, s)},
        "adaptive": {
            "AdaptiveCats(leaves=256)": lambda s: manul.AdaptiveCats(leaves=256, epsilon=EPSILON, seed=s),
        },
        "greedy": {
            "SmoothedGreedy(Linear, bandwidth=1/32)": lambda s: manul.agents.SmoothedGreedy(
                policies=linear(), bandwidth=1 / 32, epsilon=EPSILON, seed=s
            ),
        },
        "auto": {
            "Auto()": lambda s: manul.Auto(seed=s),
            "Auto(epsilon=0.05)": lambda s: manul.Auto(epsilon=EPSILON, seed=s),
        },
    }


PLAYERS = ("vw", *agents(), "lightgbm", "best-cats")


def measure(problem: Problem, seeds: Sequence[int], players: Sequence[str] = PLAYERS) -> list[Row]:
    """Measure the chosen methods on one problem."""
    known = [problem.hindsight(seed) for seed in seeds]
    results = {"best constant": (tuple(best.constant for best in known), "")}
    bandwidths = ", ".join(sorted({_fraction(best.optimum.bandwidth) for best in known}))
    results["optimum"] = tuple(best.optimum.loss for best in known), f"bandwidth {bandwidths}"
    for kind in problem.kinds if "vw" in players else ():
        best = search.best(VW_CELLS[kind], problem.vw_loss, rounds=problem.rounds, seeds=seeds, epsilons=VW_EPSILONS)
        results[f"VW {NAMES[kind]}, best in hindsight"] = best.losses, f"{search.label(best.cell)} (of {best.runs})"
    for player, makers in agents().items():
        if player in players:
            results.update({name: (_run(problem, make, seeds, name), "") for name, make in makers.items()})
    if "lightgbm" in players:
        results["LightGBM critic"] = _lightgbm(problem, seeds), "fading epsilon"
    if "best-cats" in players:
        results["Cats, best in hindsight"] = _best_cats(problem, seeds)
    return _rows(results)


NAMES = {"cats": "CATS", "dtree": "dTree", "dlinear": "dLinear"}


def measure_cells(problem: Problem, seeds: Sequence[int]) -> list[CellRow]:
    """Compare Cats with Vowpal Wabbit's CATS at the same cells."""
    return [_cell_row(problem, leaves, bandwidth, seeds) for leaves, bandwidth in COMPARED_CELLS]


def _cell_row(problem: Problem, leaves: int, bandwidth: float, seeds: Sequence[int]) -> CellRow:
    cell = vowpal_wabbit.Cell(kind="cats", leaves=leaves, bandwidth=bandwidth)
    theirs = np.mean([problem.vw_loss(cell, seed, problem.rounds) for seed in seeds])
    ours = np.mean(_run(problem, lambda seed: _cats(leaves, bandwidth, seed), seeds, f"Cats {search.label(cell)}"))
    optimum = np.mean([problem.hindsight(seed).by_bandwidth[bandwidth] for seed in seeds])
    return CellRow(leaves, bandwidth, float(optimum), float(ours), float(theirs))


def _best_cats(problem: Problem, seeds: Sequence[int]) -> tuple[tuple[float, ...], str]:
    by_seed = []
    for seed in seeds:
        players = [_cats(leaves, bandwidth, seed) for leaves, bandwidth in CATS_CELLS]
        by_seed.append([run.mean_loss for run in manul.worlds.simulate_many(players, problem.world(seed))])
    winner = int(np.argmin(np.mean(by_seed, axis=0)))
    leaves, bandwidth = CATS_CELLS[winner]
    note = f"leaves {leaves}, bandwidth {_fraction(bandwidth)} (of {len(CATS_CELLS)} cells, all seeds)"
    return tuple(losses[winner] for losses in by_seed), note


def _run(problem: Problem, make: MakeAgent, seeds: Sequence[int], name: str) -> tuple[float, ...]:
    losses = tuple(manul.simulate(make(seed), problem.world(seed)).mean_loss for seed in seeds)
    print(f"  {name}: {np.mean(losses):.4f}", file=sys.stderr)
    return losses


def _lightgbm(problem: Problem, seeds: Sequence[int]) -> tuple[float, ...]:
    epsilon = lightgbm_critic.fading
    losses = tuple(
        float(lightgbm_critic.play(problem.world(seed), epsilon=epsilon, seed=seed).mean()) for seed in seeds
    )
    print(f"  LightGBM critic: {np.mean(losses):.4f}", file=sys.stderr)
    return losses


def _cats(leaves: int, bandwidth: float, seed: int) -> manul.Cats:
    return manul.Cats(leaves=leaves, bandwidth=bandwidth, epsilon=EPSILON, seed=seed)


def _rows(results: dict[str, tuple[tuple[float, ...], str]]) -> list[Row]:
    optimum = np.mean(results["optimum"][0])
    theirs = results.get(f"VW {NAMES['cats']}, best in hindsight")
    vw_excess = None if theirs is None else np.mean(theirs[0]) - optimum
    rows = []
    for player, (losses, note) in results.items():
        excess = float(np.mean(losses) - optimum)
        share = None if vw_excess is None else float(excess / vw_excess)
        rows.append(Row(player, losses, excess, share, note))
    return rows


def as_text(rows: Sequence[Row]) -> str:
    lines = [f"{'player':40} {'loss':>7} {'± error':>8} {'excess':>8} {'share':>6}  note"]
    for row in rows:
        share = "" if row.share is None else f"{row.share:.2f}"
        lines.append(f"{row.player:40} {row.loss:7.4f} {row.error:8.4f} {row.excess:8.4f} {share:>6}  {row.note}")
    return "\n".join(line.rstrip() for line in lines)


def as_markdown(rows: Sequence[Row]) -> str:
    lines = ["| player | loss | ± error | excess | share | note |", "|---|---|---|---|---|---|"]
    for row in rows:
        share = "" if row.share is None else f"{row.share:.2f}"
        lines.append(f"| {row.player} | {row.loss:.4f} | {row.error:.4f} | {row.excess:.4f} | {share} | {row.note} |")
    return "\n".join(lines)


def cells_as_text(rows: Sequence[CellRow]) -> str:
    lines = [f"{'leaves':>6} {'bandwidth':>9} {'optimum':>8} {'VW':>7} {'Cats':>7} {'excess/VW excess':>17}"]
    for row in rows:
        numbers = f"{row.optimum:8.4f} {row.vw:7.4f} {row.cats:7.4f} {row.ratio:17.2f}"
        lines.append(f"{row.leaves:6} {_fraction(row.bandwidth):>9} {numbers}")
    return "\n".join(lines)


def cells_as_markdown(rows: Sequence[CellRow]) -> str:
    lines = ["| leaves | bandwidth | optimum | VW | Cats | excess / VW's excess |", "|---|---|---|---|---|---|"]
    for row in rows:
        numbers = f"{row.optimum:.4f} | {row.vw:.4f} | {row.cats:.4f} | {row.ratio:.2f}"
        lines.append(f"| {row.leaves} | {_fraction(row.bandwidth)} | {numbers} |")
    return "\n".join(lines)


def _fraction(bandwidth: float) -> str:
    return f"1/{round(1 / bandwidth)}"


class Results:
    """The results so far, written to loss.json and loss.md after every problem."""

    def __init__(self, folder: Path, seeds: Sequence[int]) -> None:
        self.folder, self.seeds = folder, list(seeds)
        self.json: dict[str, object] = {}
        self.markdown = [f"# Losses\n\n{__doc__.split(chr(10) * 2, 2)[2]}\nSeeds: {len(self.seeds)}.\n"]

    def add(self, problem: Problem, rows: Sequence[Row], cells: Sequence[CellRow]) -> None:
        heading = f"{problem.name}: {problem.rounds} rounds, {problem.width} columns"
        print(f"\n{heading}\n{as_text(rows)}", flush=True)
        self.markdown.append(f"## {heading}\n\n{as_markdown(rows)}\n")
        if cells:
            print(f"\n{cells_as_text(cells)}", flush=True)
            self.markdown.append(cells_as_markdown(cells) + "\n")
        self.json[problem.name] = {
            "rounds": problem.rounds,
            "width": problem.width,
            "rows": [{**asdict(row), "loss": row.loss, "error": row.error} for row in rows],
            "cells": [{**asdict(row), "ratio": row.ratio} for row in cells],
        }
        self._write()

    def _write(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "loss.json").write_text(json.dumps({"seeds": self.seeds, "problems": self.json}, indent=2))
        (self.folder / "loss.md").write_text("\n".join(self.markdown))


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--table", type=Path, action="append", default=[], help="a CSV file, optionally with .gz; repeatable"
    )
    parser.add_argument("--target", action="append", default=[], help="its target column; one per table")
    parser.add_argument(
        "--encoded",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="a .npz file with arrays X (rows of numbers) and y (targets in [0, 1]); repeatable",
    )
    parser.add_argument(
        "--rows", type=int, default=50_000, help="maximum number of rounds of a world and of rows of a table (50000)"
    )
    parser.add_argument(
        "--levels", type=int, default=32, help="one-hot columns per categorical column, one more for the rest (32)"
    )
    parser.add_argument("--worlds", nargs="*", choices=problems.WORLDS, default=list(problems.WORLDS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--players", nargs="+", choices=PLAYERS, default=list(PLAYERS), help="the methods to run (all)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder of loss.json and loss.md")
    parser.add_argument("--memory", type=Path, help="file of saved losses of Vowpal Wabbit (OUT/vw-losses.json)")
    options = parser.parse_args(arguments)
    if len(options.table) != len(options.target):
        parser.error(f"--target must be given once per --table, got {len(options.target)} for {len(options.table)}.")
    for path in [*options.table, *options.encoded]:
        if not path.is_file():
            parser.error(f"{path}: no such file.")
    return options


def main() -> None:
    options = parse()
    seeds = range(options.seeds)
    saved = search.LossFile(options.memory or options.out / "vw-losses.json")
    results = Results(options.out, seeds)
    tables = [*map(_table_maker, options.table, options.target), *map(_encoded_maker, options.encoded)]
    for make in [*map(_world_maker, options.worlds), *tables]:
        with TemporaryDirectory() as folder:
            problem = make(options, saved, Path(folder))
            print(f"{problem.name}: {problem.rounds} rounds, {problem.width} columns", file=sys.stderr)
            has_cells = problem.name == "linear" and {"vw", "cats"} <= {*options.players}
            cells = measure_cells(problem, seeds) if has_cells else []
            results.add(problem, measure(problem, seeds, options.players), cells)
    print(f"\nwritten to {options.out}/loss.json and loss.md")


MakeProblem = Callable[[argparse.Namespace, search.LossFile, Path], Problem]


def _world_maker(name: str) -> MakeProblem:
    return lambda options, saved, folder: problems.synthetic(name, saved, folder, options.rows)


def _table_maker(path: Path, target: str) -> MakeProblem:
    def make(options: argparse.Namespace, saved: search.LossFile, folder: Path) -> Problem:
        table = datasets.read(
            path, target=target, rows=options.rows, levels=options.levels, percentiles=PERCENTILES, standardised=True
        )
        return problems.table(table, saved, folder)

    return make


def _encoded_maker(path: Path) -> MakeProblem:
    return lambda options, saved, folder: problems.table(problems.encoded_table(path, rows=options.rows), saved, folder)


if __name__ == "__main__":
    main()
