"""The first 200 rounds: Auto compared with GP-UCB and with the best constant action in hindsight."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

import manul
from benchmarks import gp_ucb
from benchmarks.limits import Check, mean_check, standard_error
from manul import worlds

ROUNDS, SEEDS = 200, range(10)

World = worlds.Regression | worlds.Curves
Draw = Callable[[int], World]
"""Draws a world from a seed."""

WORLDS: dict[str, Draw] = {
    "linear": lambda seed: worlds.linear(rounds=ROUNDS, seed=seed),
    "valleys": lambda seed: worlds.valleys(rounds=ROUNDS, seed=seed),
    "cliff": lambda seed: worlds.cliff(rounds=ROUNDS, seed=seed),
    "smooth": lambda seed: worlds.smooth(rounds=ROUNDS, seed=seed),
    "noise": lambda seed: worlds.noise(rounds=ROUNDS, seed=seed),
}


def first(tables: Mapping[str, Draw]) -> Iterator[Check]:
    """Auto may lose as much as GP-UCB, plus the standard error of their difference."""
    for name, draw in {**WORLDS, **tables}.items():
        drawn = [draw(seed) for seed in SEEDS]
        ours = [
            manul.simulate(manul.Auto(seed=seed), world).mean_loss for seed, world in zip(SEEDS, drawn, strict=True)
        ]
        theirs = [
            float(gp_ucb.play(world, rounds=ROUNDS, seed=seed).mean()) for seed, world in zip(SEEDS, drawn, strict=True)
        ]
        error = standard_error(np.subtract(ours, theirs).tolist())
        note = f"GP-UCB {np.mean(theirs):.4f}, best constant {np.mean(list(map(best_constant, drawn))):.4f}"
        yield mean_check(f"{name}, loss of the first {ROUNDS} rounds", ours, float(np.mean(theirs)) + error, note)


def best_constant(world: World) -> float:
    """The lowest mean loss of 64 actions.

    >>> best_constant(worlds.Regression([[1.0], [2.0]], [31.5 / 64, 31.5 / 64]))
    0.0
    """
    actions = (np.arange(64) + 0.5) / 64
    return min(float(world.losses(np.full(len(world), action), (0.0, 1.0)).mean()) for action in actions)
