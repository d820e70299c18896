"""Off-policy optimisation: the test loss of the selected policy, and the speed of the grid, against Vowpal Wabbit.

    python -m benchmarks.offline better [--rows 1000000] [--table diamonds.csv.gz --target price]
    python -m benchmarks.offline fast [--rows 200000]

`better` follows the paper: CATS with (4, 1/4) and epsilon 0.05 logs 80 % of ds or of a table, the grid is trained on
that log, and both policies are tested on the rest, with Vowpal Wabbit's best cell in hindsight for comparison. `fast`
compares CPU time on one log over a sample of the grid's cells: for Vowpal Wabbit that of its learner alone, from a binary
cache; for manul everything that `optimize` does. Both are timed on one processor, in turn, and the lowest of several
runs counts; then the whole grid runs on all processors. The paper's training is timed with one regressor per node, as in
Vowpal Wabbit.
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
from benchmarks.vowpal_wabbit import deployed_losses, off_policy, off_policy_seconds, write_log
from manul.paper import datasets
from manul.paper.experiments import vowpal_wabbit

GRID = manul.offpolicy.Grid.paper(half=False)
SAMPLE = GRID.cells[::6]
LEAST_SPEEDUP = {"margin": 10, "path": 3}
PASSES = 4


def log_of(world) -> tuple[manul.Cats, manul.Log]:
    """The logging agent of the paper's experiment, and its log."""
    agent = manul.Cats.paper(leaves=4, bandwidth=1 / 4, epsilon=0.05)
    return agent, manul.simulate(agent, world).log


def test_loss(policy, world) -> float:
    """The mean loss of a policy that does not learn."""
    return float(np.abs(policy.decide_many(world.contexts).actions - world.targets).mean())


def better(name: str, world) -> None:
    cut = round(0.8 * len(world))
    train = manul.worlds.Regression(world.contexts[:cut], world.targets[:cut])
    held_out = manul.worlds.Regression(world.contexts[cut:], world.targets[cut:])
    agent, log = log_of(train)
    before = test_loss(agent, held_out)
    print(f"{name}: logging agent {before:.4f}")
    theirs, cell = vw_best(log, held_out)
    print(
        f"{name}: Vowpal Wabbit's best of {len(GRID)} cells in hindsight {theirs:.4f}, {theirs / before:.3f} of it, {cell}"
    )
    for rule in LEAST_SPEEDUP:
        best = manul.optimize(log, grid=GRID, rule=rule, epsilon=0.05)
        after = test_loss(best.policy, held_out)
        cell = f"bandwidth {best.bandwidth:g}, {best.leaves} leaves"
        print(
            f"{name}: rule={rule} {after:.4f}, {after / before:.3f} of it, {after / theirs:.2f} of theirs; {cell}",
            flush=True,
        )


def vw_best(log, held_out) -> tuple[float, str]:
    """The lowest test loss of Vowpal Wabbit over the grid, trained on the same log."""
    cells = [vowpal_wabbit.Cell(kind="cats", leaves=leaves, bandwidth=share) for share, leaves in GRID.cells]
    with TemporaryDirectory() as folder:
        file = Path(folder, "log.vw")
        write_log(path=file, contexts=log.contexts, actions=log.actions, densities=log.densities, losses=log.losses)
        vowpal_wabbit.make_cache(file=file, reader=off_policy(cells[0]))
        losses = deployed_losses(cells=cells, log=file, contexts=held_out.contexts, targets=held_out.targets)
    best = int(np.argmin(losses))
    return losses[best], f"bandwidth {cells[best].bandwidth:g}, {cells[best].leaves} leaves"


def measure(log, cells, rule, threads=None) -> tuple[float, float]:
    """The CPU seconds per row and cell, and the utilisation of all processors."""
    started, cpu = time.perf_counter(), time.process_time()
    manul.optimize(log, grid=manul.offpolicy.Grid(cells=cells), rule=rule, threads=threads)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - started
    return cpu / len(log) / len(cells), cpu / wall / (os.cpu_count() or 1)


def vw_seconds(log) -> float:
    """The CPU seconds of Vowpal Wabbit per row and cell, over the sample."""
    cells = [vowpal_wabbit.Cell(kind="cats", leaves=leaves, bandwidth=share) for share, leaves in SAMPLE]
    with TemporaryDirectory() as folder:
        file, plain = Path(folder, "log.vw"), Path(folder, "plain.vw")
        vowpal_wabbit.write_regression(path=plain, contexts=log.contexts, targets=log.losses)
        columns = {"actions": log.actions, "densities": log.densities, "losses": log.losses}
        write_log(path=file, contexts=log.contexts, **columns)
        caches = {
            "cache": vowpal_wabbit.make_cache(file=file, reader=off_policy(cells[0])),
            "plain": vowpal_wabbit.make_cache(file=plain),
        }
        timings = [off_policy_seconds(cell=cell, rounds=len(log), **caches) for cell in cells]
    return float(np.mean([timing.per_round for timing in timings]))


def fast(rows: int) -> None:
    _, log = log_of(manul.worlds.linear(rounds=rows, width=20))
    theirs, by_rule = float("inf"), dict.fromkeys(LEAST_SPEEDUP, float("inf"))
    for _ in range(PASSES):
        theirs = min(theirs, vw_seconds(log))
        by_rule = {rule: min(lowest, measure(log, SAMPLE, rule, threads=1)[0]) for rule, lowest in by_rule.items()}
    print(f"Vowpal Wabbit: {theirs * 1e6:.2f} µs per row and cell, {len(SAMPLE)} cells")
    for rule, needed in LEAST_SPEEDUP.items():
        ours = by_rule[rule]
        whole, used = measure(log, GRID.cells, rule)
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
    options = parser.parse_args()
    if options.what == "fast":
        return fast(options.rows or 200_000)
    for path, target in zip(options.table, options.target, strict=True):
        table = datasets.read(path, target=target, percentiles=PERCENTILES)
        better(table.name, table.shuffle(0))
    better("ds", manul.worlds.ds(rounds=options.rows or 1_000_000))
    return None


if __name__ == "__main__":
    main()
