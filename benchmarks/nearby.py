"""What exploring nearby costs Auto with one knob, and what its logs then say about another policy.

    python -m benchmarks.nearby [--table diamonds.csv.gz --target price] [--seeds 3] [--share 0.05]

For each problem, and for agents without and with `nearby`: the mean loss of 20,000 rounds; then, for another Auto that has
learned from 5,000 other rows, the mean weight, the median effective sample size and the median width of the interval of
`evaluate`. A mean weight far from 1 means that the log does not cover the policy, and then the effective size means nothing.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import manul
from benchmarks.loss import PERCENTILES
from manul import worlds
from manul.paper import datasets

ROUNDS, OTHER_ROUNDS = 20_000, 5000
World = worlds.Regression | worlds.Curves
Draw = Callable[[int, int], World]
"""Draws a world of some rounds with a seed."""

WORLDS: dict[str, Draw] = {
    "linear": lambda rounds, seed: worlds.linear(rounds=rounds, seed=seed),
    "cliff": lambda rounds, seed: worlds.cliff(rounds=rounds, seed=seed),
    "two valleys": lambda rounds, seed: worlds.valleys(rounds=rounds, seed=seed),
}


def table(path: Path, target: str) -> Draw:
    """The rows of a file in random order."""
    data = datasets.read(path, target=target, rows=50_000, levels=32, percentiles=PERCENTILES, standardised=True)
    return lambda rounds, seed: data.shuffle(seed, rounds=rounds)


def part(world: World, rows: slice) -> World:
    """Some rounds of a world.

    >>> len(part(worlds.linear(rounds=10), slice(3)))
    3
    """
    if isinstance(world, worlds.Regression):
        return worlds.Regression(world.contexts[rows], world.targets[rows])
    return worlds.Curves(world.contexts[rows], positions=world.positions[rows], values=world.values[rows])


def measure(draw: Draw, nearby: float | None, seed: int, rounds: int = ROUNDS) -> tuple[float, float, float, float]:
    """The loss of an agent; the mean weight, effective size and width of the interval of another policy in its log.

    >>> len(measure(WORLDS["linear"], 0.1, 0, rounds=200))
    4
    """
    world = draw(rounds + OTHER_ROUNDS, seed)
    other = manul.Auto(seed=seed + 100)
    manul.simulate(other, part(world, slice(rounds, None)))
    run = manul.simulate(manul.Auto(nearby=nearby, seed=seed), part(world, slice(rounds)))
    estimate = manul.evaluate(other, run.log)
    return run.mean_loss, estimate.mean_weight, estimate.effective_size, estimate.high - estimate.low


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", type=Path, action="append", default=[])
    parser.add_argument("--target", action="append", default=[])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, action="append")
    options = parser.parse_args()
    tables = {path.name: table(path, target) for path, target in zip(options.table, options.target, strict=True)}
    for name, draw in (WORLDS | tables).items():
        for nearby in (None, *(options.share or [0.05, 0.1])):
            losses, weights, sizes, widths = np.transpose(
                [measure(draw, nearby, seed) for seed in range(options.seeds)]
            )
            print(
                f"{name}, nearby {nearby or 0:g}: loss {losses.mean():.4f}; mean weights {weights.min():.2f} to {weights.max():.2f}, "
                f"effective size {np.median(sizes):,.0f}, interval {np.median(widths):.3f} wide",
                flush=True,
            )


if __name__ == "__main__":
    main()
