"""What the loss table is measured on: regression data, drawn or read, and worlds with losses of other shapes.

A problem has a world for every seed, knows what the policies of hindsight lose in it, and lets Vowpal Wabbit play it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.search import Measure, Memory
from manul import worlds
from manul.paper.datasets import Dataset
from manul.paper.experiments import hindsight, vowpal_wabbit
from manul.paper.experiments.hindsight import BANDWIDTHS, EPSILON, Optimum

ROUNDS, SHAPED_ROUNDS = 100_000, 50_000


@dataclass(frozen=True)
class Hindsight:
    """What the best constant and the best policy lose at their best bandwidths, and the latter at each.

    `gap` bounds what a better linear policy could still win, before smoothing.
    """

    constant: float
    optimum: Optimum
    by_bandwidth: dict[float, float]
    gap: float = 0.0


@dataclass(frozen=True)
class Problem:
    """A world per seed, what is known of it in hindsight, and Vowpal Wabbit's loss by (cell, seed, rounds)."""

    name: str
    rounds: int
    width: int
    world: Callable[[int], worlds.Regression | worlds.Curves]
    hindsight: Callable[[int], Hindsight]
    vw_loss: Measure
    kinds: tuple[vowpal_wabbit.Kind, ...]


def drawn(name: str, memory: Memory, folder: Path) -> Problem:
    """One of the worlds of manul, drawn anew for every seed."""
    return WORLDS[name](name, memory, folder)


def table(read: Dataset, memory: Memory, folder: Path) -> Problem:
    """A table, its rows in another order for every seed."""
    known = regression_hindsight(read.shuffled(0))
    return _regression(read.name, read.shuffled, lambda _: known, memory, folder)


def regression_hindsight(world: worlds.Regression) -> Hindsight:
    centres, gap = hindsight.linear_centres(world.contexts, world.targets)
    by_bandwidth = {h: hindsight.expected_loss(world.targets, centres, h) for h in BANDWIDTHS}
    return Hindsight(hindsight.best_constant(world.targets).loss, _least(by_bandwidth), by_bandwidth, gap)


def curves_hindsight(world: worlds.Curves) -> Hindsight:
    """The optimum is that of all policies, not only of the linear ones."""
    by_bandwidth = {h: world.optimum(bandwidth=h, epsilon=EPSILON) for h in BANDWIDTHS}
    constant = min(world.best_constant(bandwidth=h, epsilon=EPSILON) for h in BANDWIDTHS)
    return Hindsight(constant, _least(by_bandwidth), by_bandwidth)


def _regression(
    name: str,
    draw: Callable[[int], worlds.Regression],
    known: Callable[[int], Hindsight],
    memory: Memory,
    folder: Path,
) -> Problem:
    world = cache(draw)

    @cache
    def data(seed: int) -> str:
        return _hash(world(seed).contexts, world(seed).targets)

    @cache
    def file(seed: int) -> Path:
        path = folder / f"{name}-{seed}.vw"
        vowpal_wabbit.write_regression(path=path, contexts=world(seed).contexts, targets=world(seed).targets)
        vowpal_wabbit.make_cache(file=path)
        return path

    def vw_loss(cell: vowpal_wabbit.Cell, seed: int, rounds: int) -> float:
        def measure() -> float:
            return vowpal_wabbit.loss(cell=cell, file=file(seed), seed=seed, rounds=rounds)

        return memory.recall(data(seed), cell, rounds=rounds, seed=seed, measure=measure)

    rounds, width = world(0).contexts.shape
    return Problem(name, rounds, width, world, known, vw_loss, ("cats", "dtree", "dlinear"))


def _curves(name: str, draw: Callable[[int], worlds.Curves], memory: Memory) -> Problem:
    world = cache(draw)

    @cache
    def data(seed: int) -> str:
        return _hash(world(seed).contexts, world(seed).positions, world(seed).values)

    def vw_loss(cell: vowpal_wabbit.Cell, seed: int, rounds: int) -> float:
        def measure() -> float:
            loss = world(seed).table((0.0, 1.0)).loss
            return vowpal_wabbit.interactive_loss(
                cell=cell, contexts=world(seed).contexts[:rounds], loss=loss, seed=seed
            )

        return memory.recall(data(seed), cell, rounds=rounds, seed=seed, measure=measure)

    rounds, width = world(0).contexts.shape
    return Problem(name, rounds, width, world, cache(lambda seed: curves_hindsight(world(seed))), vw_loss, ("cats",))


def _drawn_regression(draw: Callable[..., worlds.Regression]) -> Callable[[str, Memory, Path], Problem]:
    def problem(name: str, memory: Memory, folder: Path) -> Problem:
        def world(seed: int) -> worlds.Regression:
            return draw(rounds=ROUNDS, seed=seed)

        return _regression(name, world, cache(lambda seed: regression_hindsight(world(seed))), memory, folder)

    return problem


def _drawn_curves(draw: Callable[..., worlds.Curves], **settings: object) -> Callable[[str, Memory, Path], Problem]:
    def problem(name: str, memory: Memory, _: Path) -> Problem:
        return _curves(name, lambda seed: draw(rounds=SHAPED_ROUNDS, seed=seed, **settings), memory)

    return problem


WORLDS: dict[str, Callable[[str, Memory, Path], Problem]] = {
    "linear": _drawn_regression(worlds.linear),
    "ds": _drawn_regression(worlds.ds),
    "two-valleys": _drawn_curves(worlds.valleys, valleys=2),
    "four-valleys": _drawn_curves(worlds.valleys, valleys=4),
    "crossed-valleys": _drawn_curves(worlds.valleys, valleys=2, dependency="crossed"),
    "cliff": _drawn_curves(worlds.cliff),
    "drift": _drawn_curves(worlds.drift),
    "noise": _drawn_curves(worlds.noise),
}


def _least(by_bandwidth: dict[float, float]) -> Optimum:
    best = min(by_bandwidth, key=lambda bandwidth: by_bandwidth[bandwidth])
    return Optimum(by_bandwidth[best], best)


def _hash(*arrays: np.ndarray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
