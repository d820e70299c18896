"""What `optimize` makes of a log: the true loss of its policy on other rows, and the errors of the estimators dr and snips.

    python -m benchmarks.improvement policies --table diamonds.csv.gz --target price [--seeds 2]
    python -m benchmarks.improvement estimators --table diamonds.csv.gz --target price [--seeds 6]

`policies`: Cats and Auto log 2,000 and 20,000 rows of a table, and the policy of `optimize` plays 20,000 others; then once
more with the density of one row changed to 0.001, which should change nothing. `estimators`: the root mean squared error of
dr and snips over logs of 15,000 rows by Cats, for a policy that was trained on other rows.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np

import manul
from benchmarks.loss import PERCENTILES
from manul.paper import datasets
from manul.worlds import Regression

TESTED = 20_000  # rows that a policy plays
LOGGERS: dict[str, Callable[[int], manul.policies.Agent]] = {
    "cats": lambda seed: manul.Cats(leaves=16, bandwidth=1 / 16, epsilon=0.05, seed=seed),
    "auto": lambda seed: manul.Auto(seed=seed),
}


def parts(world: Regression, seed: int, *sizes: int) -> list[Regression]:
    """Parts of a table with these numbers of rows, which are drawn without replacement."""
    order = np.random.default_rng(seed).permutation(len(world))
    ends = np.cumsum([0, *sizes])
    chosen = [order[first:last] for first, last in pairwise(ends)]
    return [Regression(world.contexts[rows], world.targets[rows]) for rows in chosen]


def true_loss(policy: manul.policies.Policy, world: Regression) -> float:
    """The mean loss of a policy that does not learn."""
    return float(np.abs(policy.decide_many(world.contexts).actions - world.targets).mean())


def with_small_density(log: manul.Log) -> manul.Log:
    """The log, but one of its usual actions has the density 0.001."""
    densities = log.densities.copy()
    densities[np.random.default_rng(5).choice(np.flatnonzero(densities > 1))] = 0.001
    return manul.Log(log.contexts, log.actions, densities, log.losses)


def policies(name: str, world: Regression, seeds: int) -> None:
    for rows in (20_000, 2_000):
        for kind, make in LOGGERS.items():
            for seed in range(seeds):
                train, test = parts(world, seed, rows, TESTED)
                agent = make(seed)
                log = manul.simulate(agent, train).log
                start, used = time.perf_counter(), time.process_time()
                best = manul.optimize(log)
                wall, used = time.perf_counter() - start, time.process_time() - used
                changed = manul.optimize(with_small_density(log)).policy
                print(
                    f"{name} {rows} rows by {kind}, seed {seed}: logger {true_loss(agent, test):.4f}, "
                    f"optimised {true_loss(best.policy, test):.4f}, with one density of 0.001 {true_loss(changed, test):.4f}; "
                    f"{wall:.1f} s, CPU {used:.1f} s; {best.verdict}",
                    flush=True,
                )


def estimators(name: str, world: Regression, seeds: int) -> None:
    errors: dict[str, list[float]] = {"dr": [], "snips": []}
    for seed in range(seeds):
        earlier, train, test = parts(world, seed, 3000, 15_000, TESTED)
        policy = manul.Cats(leaves=32, bandwidth=1 / 32, epsilon=0.1, seed=1)
        manul.simulate(policy, earlier)
        log = manul.simulate(LOGGERS["cats"](seed), train).log
        truth = true_loss(policy, test)
        for estimator, found in errors.items():
            found.append(manul.evaluate(policy, log, estimator, "normal").value - truth)
    root = {estimator: np.sqrt(np.mean(np.square(found))) for estimator, found in errors.items()}
    print(
        f"{name}: root mean squared error of dr {root['dr']:.5f}, of snips {root['snips']:.5f}, {seeds} logs",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["policies", "estimators"])
    parser.add_argument("--table", type=Path, action="append", required=True)
    parser.add_argument("--target", action="append", required=True)
    parser.add_argument("--seeds", type=int, default=2)
    options = parser.parse_args()
    for path, target in zip(options.table, options.target, strict=True):
        table = datasets.read(
            path, target=target, rows=50_000, levels=32, percentiles=PERCENTILES, standardised=True
        ).shuffle(0)
        {"policies": policies, "estimators": estimators}[options.what](table_name(path), table, options.seeds)


def table_name(path: Path) -> str:
    """The name of a file without its suffixes.

    >>> table_name(Path("diamonds.csv.gz"))
    'diamonds'
    """
    return path.name.partition(".")[0]


if __name__ == "__main__":
    main()
