"""The problems of the benchmark of losses: regression data, synthetic or from tables, and worlds with other losses.

A problem has a world for every seed, the losses of the best policies in hindsight, and those of Vowpal Wabbit.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.search import LossFile, Measure
from benchmarks.vowpal_wabbit import interactive_loss
from manul import worlds
from manul.paper.datasets import Dataset
from manul.paper.experiments import hindsight, vowpal_wabbit
from manul.paper.experiments.hindsight import BANDWIDTHS, Optimum
from manul.paper.experiments.methods import EPSILON

ROUNDS, SHAPED_ROUNDS = 100_000, 50_000  # of regression data, and of the other worlds


@dataclass(frozen=True)
class Hindsight:
    """The losses of the best constant and the best policy at their best bandwidths, without exploration.

    `by_bandwidth` are those of the best policy at each bandwidth with epsilon 0.05, to compare with agents that use both.
    `gap` bounds the excess loss of the linear policy over the best one, before smoothing.
    """

    constant: float
    optimum: Optimum
    by_bandwidth: dict[float, float]
    gap: float = 0.0


@dataclass(frozen=True)
class Problem:
    """A world per seed, the best losses in hindsight, and Vowpal Wabbit's loss by (cell, seed, rounds)."""

    name: str
    rounds: int
    width: int
    world: Callable[[int], worlds.Regression | worlds.Curves]
    hindsight: Callable[[int], Hindsight]
    vw_loss: Measure
    kinds: tuple[vowpal_wabbit.Kind, ...]


def synthetic(name: str, saved: LossFile, folder: Path, rounds: int = ROUNDS) -> Problem:
    """One of the worlds of manul with at most this number of rounds, generated for every seed."""
    return WORLDS[name](name, saved, folder, rounds)


def table(data: Dataset, saved: LossFile, folder: Path) -> Problem:
    """A table, with its rows shuffled for every seed."""
    known = regression_hindsight(data.shuffle(0))
    return _regression(data.name, data.shuffle, lambda _: known, saved, folder)


def encoded_table(path: Path, *, rows: int) -> Dataset:
    """A file of NumPy arrays `X`, contexts in rows of numbers, and `y`, targets in [0, 1]; at most `rows` rows of it."""
    with np.load(path) as arrays:
        contexts, targets = arrays["X"].astype(np.float32), arrays["y"].astype(np.float64)
    chosen = np.sort(np.random.default_rng(0).permutation(len(targets))[:rows])
    names = tuple(str(number) for number in range(contexts.shape[1]))
    return Dataset(path.stem, names, contexts[chosen], targets[chosen], (0.0, 1.0))


def regression_hindsight(world: worlds.Regression) -> Hindsight:
    centres, gap = hindsight.linear_centres(world.contexts, world.targets)
    best = {h: hindsight.expected_loss(world.targets, centres, h, epsilon=0.0) for h in BANDWIDTHS}
    by_bandwidth = {h: hindsight.expected_loss(world.targets, centres, h) for h in BANDWIDTHS}
    return Hindsight(best_constant(world.targets), _lowest(best), by_bandwidth, gap)


def best_constant(targets: NDArray[np.float64]) -> float:
    """The loss of the median at its best bandwidth, without exploration.

    >>> best_constant(np.array([0.25, 0.5, 0.75])) < 0.17
    True
    """
    median = float(np.median(targets))
    return min(hindsight.expected_loss(targets, median, h, epsilon=0.0) for h in BANDWIDTHS)


def curves_hindsight(world: worlds.Curves) -> Hindsight:
    """Losses in hindsight; the optimum is that of all policies, not only of linear ones."""
    best = {h: world.optimum(bandwidth=h, epsilon=0.0) for h in BANDWIDTHS}
    by_bandwidth = {h: world.optimum(bandwidth=h, epsilon=EPSILON) for h in BANDWIDTHS}
    constant = min(world.best_constant(bandwidth=h, epsilon=0.0) for h in BANDWIDTHS)
    return Hindsight(constant, _lowest(best), by_bandwidth)


def _regression(
    name: str,
    draw: Callable[[int], worlds.Regression],
    known: Callable[[int], Hindsight],
    saved: LossFile,
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

        return saved.get(data(seed), cell, rounds=rounds, seed=seed, measure=measure)

    rounds, width = world(0).contexts.shape
    return Problem(name, rounds, width, world, known, vw_loss, ("cats", "dtree", "dlinear"))


def _curves(name: str, draw: Callable[[int], worlds.Curves], saved: LossFile) -> Problem:
    world = cache(draw)

    @cache
    def data(seed: int) -> str:
        return _hash(world(seed).contexts, world(seed).positions, world(seed).values)

    def vw_loss(cell: vowpal_wabbit.Cell, seed: int, rounds: int) -> float:
        def measure() -> float:
            loss = world(seed).table((0.0, 1.0)).loss
            return interactive_loss(cell=cell, contexts=world(seed).contexts[:rounds], loss=loss, seed=seed)

        return saved.get(data(seed), cell, rounds=rounds, seed=seed, measure=measure)

    rounds, width = world(0).contexts.shape
    return Problem(name, rounds, width, world, cache(lambda seed: curves_hindsight(world(seed))), vw_loss, ("cats",))


Maker = Callable[[str, LossFile, Path, int], Problem]
"""Makes a problem from its name, the saved losses, a folder and the largest number of rounds."""


def _regression_maker(draw: Callable[..., worlds.Regression]) -> Maker:
    def problem(name: str, saved: LossFile, folder: Path, rounds: int) -> Problem:
        def world(seed: int) -> worlds.Regression:
            return draw(rounds=min(rounds, ROUNDS), seed=seed)

        return _regression(name, world, cache(lambda seed: regression_hindsight(world(seed))), saved, folder)

    return problem


def _curves_maker(draw: Callable[..., worlds.Curves], **settings: object) -> Maker:
    def problem(name: str, saved: LossFile, _: Path, rounds: int) -> Problem:
        return _curves(name, lambda seed: draw(rounds=min(rounds, SHAPED_ROUNDS), seed=seed, **settings), saved)

    return problem


WORLDS: dict[str, Maker] = {
    "linear": _regression_maker(worlds.linear),
    "ds": _regression_maker(worlds.ds),
    "two-valleys": _curves_maker(worlds.valleys, valleys=2),
    "four-valleys": _curves_maker(worlds.valleys, valleys=4),
    "crossed-valleys": _curves_maker(worlds.valleys, valleys=2, dependency="crossed"),
    "cliff": _curves_maker(worlds.cliff),
    "steep-cliff": _curves_maker(worlds.cliff, steep=True),
    "smooth": _curves_maker(worlds.smooth),
    "drift": _curves_maker(worlds.drift),
    "opposite-drift": _curves_maker(worlds.drift, jump="opposite"),
    "turning": _curves_maker(worlds.turning),
    "season": _curves_maker(worlds.season),
    "far-valley": _curves_maker(worlds.far_valley),
    "noise": _curves_maker(worlds.noise),
}


def _lowest(by_bandwidth: dict[float, float]) -> Optimum:
    best = min(by_bandwidth, key=lambda bandwidth: by_bandwidth[bandwidth])
    return Optimum(by_bandwidth[best], best)


def _hash(*arrays: np.ndarray) -> str:
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()[:16]
