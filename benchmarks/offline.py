"""Off-policy optimisation: how much better the chosen policy is, and how fast the grid is beside Vowpal Wabbit.

    python -m benchmarks.offline better [--rows 1000000] [--table diamonds.csv.gz --target price]
    python -m benchmarks.offline fast [--rows 200000]

`better` follows the paper: CATS with (4, 1/4) and epsilon 0.05 logs 80 % of ds or of a table, the grid is trained on
that log, and both policies play the rest; beside them the best of Vowpal Wabbit's cells, known in hindsight. `fast`
compares CPU time on one log over a sample of the grid's cells: Vowpal Wabbit's is that of its learner alone, from a
binary cache; ours is everything that `optimize` does. Both are timed on one processor, in turn, the least of several
runs, as two that work at once may slow each other down; then the whole grid runs on all. The paper's training is timed
with one regressor per node, as Vowpal Wabbit has it.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import manul
from benchmarks.loss import PERCENTILES
from manul.paper import datasets
from manul.paper.experiments import vowpal_wabbit

GRID = manul.Grid.paper(half=False)
SAMPLE = GRID.cells[::6]
NEEDED = {"margin": 10, "path": 3}
PASSES = 4


def logged(world) -> tuple[manul.Cats, manul.Log]:
    """The agent of the paper's experiment, and what it logged."""
    agent = manul.Cats.paper(leaves=4, bandwidth=1 / 4, epsilon=0.05)
    return agent, manul.simulate(agent, world).log


def test_loss(policy, world) -> float:
    """The mean loss of what a policy plays without learning."""
    return float(np.abs(policy.decide_many(world.contexts).actions - world.targets).mean())


def better(name: str, world) -> None:
    cut = round(0.8 * len(world))
    train = manul.worlds.Regression(world.contexts[:cut], world.targets[:cut])
    held_out = manul.worlds.Regression(world.contexts[cut:], world.targets[cut:])
    agent, log = logged(train)
    before = test_loss(agent, held_out)
    print(f"{name}: logging agent {before:.4f}")
    theirs, cell = vw_best(log, held_out)
    print(
        f"{name}: Vowpal Wabbit's best of {len(GRID)} cells in hindsight {theirs:.4f}, {theirs / before:.3f} of it, {cell}"
    )
    for rule in NEEDED:
        best = manul.optimize(log, grid=GRID, rule=rule, epsilon=0.05)
        after = test_loss(best.policy, held_out)
        cell = f"bandwidth {best.bandwidth:g}, {best.leaves} leaves"
        print(
            f"{name}: rule={rule} {after:.4f}, {after / before:.3f} of it, {after / theirs:.2f} of theirs; {cell}",
            flush=True,
        )


def vw_best(log, held_out) -> tuple[float, str]:
    """The smallest test loss of Vowpal Wabbit over the grid, trained on the same log."""
    cells = [vowpal_wabbit.Cell(kind="cats", leaves=leaves, bandwidth=share) for share, leaves in GRID.cells]
    with TemporaryDirectory() as folder:
        file = Path(folder, "log.vw")
        vowpal_wabbit.write_log(
            path=file, contexts=log.contexts, actions=log.actions, densities=log.densities, losses=log.losses
        )
        vowpal_wabbit.make_cache(file=file, cell=cells[0])
        losses = vowpal_wabbit.deployed_losses(
            cells=cells, log=file, contexts=held_out.contexts, targets=held_out.targets
        )
    best = int(np.argmin(losses))
    return losses[best], f"bandwidth {cells[best].bandwidth:g}, {cells[best].leaves} leaves"


def measured(log, cells, rule, threads=None) -> tuple[float, float]:
    """CPU seconds per row and cell, and the share of all processors that was used."""
    started, cpu = time.perf_counter(), time.process_time()
    manul.optimize(log, grid=manul.Grid(cells=cells), rule=rule, threads=threads)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - started
    return cpu / len(log) / len(cells), cpu / wall / (os.cpu_count() or 1)


def vw_seconds(log) -> float:
    """CPU seconds of Vowpal Wabbit per row and cell, over the sample."""
    cells = [vowpal_wabbit.Cell(kind="cats", leaves=leaves, bandwidth=share) for share, leaves in SAMPLE]
    with TemporaryDirectory() as folder:
        file, plain = Path(folder, "log.vw"), Path(folder, "plain.vw")
        vowpal_wabbit.write_regression(path=plain, contexts=log.contexts, targets=log.losses)
        columns = {"actions": log.actions, "densities": log.densities, "losses": log.losses}
        vowpal_wabbit.write_log(path=file, contexts=log.contexts, **columns)
        caches = {
            "cache": vowpal_wabbit.make_cache(file=file, cell=cells[0]),
            "plain": vowpal_wabbit.make_cache(file=plain),
        }
        timings = [vowpal_wabbit.off_policy_seconds(cell=cell, rounds=len(log), **caches) for cell in cells]
    return float(np.mean([timing.per_round for timing in timings]))


def fast(rows: int) -> None:
    _, log = logged(manul.worlds.linear(rounds=rows, width=20))
    theirs, by_rule = float("inf"), dict.fromkeys(NEEDED, float("inf"))
    for _ in range(PASSES):
        theirs = min(theirs, vw_seconds(log))
        by_rule = {rule: min(least, measured(log, SAMPLE, rule, threads=1)[0]) for rule, least in by_rule.items()}
    print(f"Vowpal Wabbit: {theirs * 1e6:.2f} µs per row and cell, {len(SAMPLE)} cells")
    for rule, needed in NEEDED.items():
        ours = by_rule[rule]
        whole, used = measured(log, GRID.cells, rule)
        print(
            f"rule={rule}: {ours * 1e6:.2f} µs, {theirs / ours:.1f} times less (at least {needed}); "
            f"all {len(GRID)} cells: {whole * 1e6:.2f} µs, processors used {used:.0%} (at least 85 %)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["better", "fast"])
    parser.add_argument("--rows", type=int)
    parser.add_argument("--table", type=Path, action="append", default=[])
    parser.add_argument("--target", action="append", default=[])
    asked = parser.parse_args()
    if asked.what == "fast":
        return fast(asked.rows or 200_000)
    for path, target in zip(asked.table, asked.target, strict=True):
        read = datasets.read(path, target=target, percentiles=PERCENTILES)
        better(read.name, read.shuffled(0))
    better("ds", manul.worlds.ds(rounds=asked.rows or 1_000_000))
    return None


if __name__ == "__main__":
    main()
