"""Synthetic regression worlds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from manul.actions.ranges import Actions
from manul.utils.validation import Floats, check_bandwidth, check_epsilon, check_seed, check_whole_number
from manul.worlds.optimum import minimise, mix
from manul.worlds.regression import Regression


def random_generator(*, rounds: int, width: int, seed: int) -> np.random.Generator:
    """Check the size of a world and return its random generator."""
    check_whole_number("rounds", rounds, 1, None, "Try 10000.")
    check_whole_number("width", width, 1, None, "Try 5.")
    return np.random.default_rng(check_seed(seed))


def scalar_products(rows: npt.NDArray[Any], weights: Floats) -> Floats:
    """`rows @ weights`, rounded alike on every processor: BLAS rounds in ways that depend on its instructions.

    >>> scalar_products(np.array([[1.0, 2.0], [0.0, 1.0]]), np.array([3.0, 4.0])).tolist()
    [11.0, 4.0]
    """
    sums = np.zeros((4, len(rows), *weights.shape[1:]))  # four sums, as vector units of four numbers add
    for index, (column, weight) in enumerate(zip(rows.T, weights, strict=True)):
        sums[index % 4] += np.multiply.outer(column.astype(np.float64), weight)
    products: Floats = (sums[0] + sums[2]) + (sums[1] + sums[3])
    return products


def unit(direction: Floats) -> Floats:
    """The direction as a vector of length 1.

    >>> unit(np.array([3.0, 4.0])).tolist()
    [0.6, 0.8]
    """
    scaled: Floats = direction / math.sqrt(math.fsum(direction**2))
    return scaled


class Linear(Regression):
    """A regression whose targets have known locations and normal noise, clipped to [0, 1], so the optimum is known.

    >>> world = Linear([[0.0]], targets=[0.52], locations=[0.5], deviation=0.1)
    >>> round(world.optimum(bandwidth=1/16, epsilon=0.0), 4)
    0.0849
    """

    def __init__(
        self, contexts: npt.ArrayLike, targets: npt.ArrayLike, *, locations: npt.ArrayLike, deviation: float
    ) -> None:
        super().__init__(contexts, targets)
        self.locations: Floats = np.ascontiguousarray(locations, dtype=np.float64)
        self.deviation = deviation

    def optimum(self, *, bandwidth: float, epsilon: float) -> float:
        """The mean loss of the best policy with this bandwidth and epsilon, for actions (0, 1).

        >>> 0 < linear(rounds=10).optimum(bandwidth=1/16, epsilon=0.05) < 0.1
        True
        """
        # The expected error is convex and symmetric around the location, so the best window is the nearest one.
        centres = np.clip(self.locations, bandwidth, 1 - bandwidth)
        return self._loss(centres, bandwidth, epsilon)

    def best_constant(self, *, bandwidth: float, epsilon: float) -> float:
        """The mean loss of the best policy with the same centre in every round, for actions (0, 1).

        >>> 0 < linear(rounds=10).best_constant(bandwidth=1/16, epsilon=0.05) < 0.5
        True
        """
        return minimise(lambda centre: self._loss(np.array(centre), bandwidth, epsilon), bandwidth)

    def _loss(self, centres: Floats, bandwidth: float, epsilon: float) -> float:
        check_bandwidth(bandwidth, Actions(0.0, 1.0))
        check_epsilon(epsilon)
        whole = self._windows(np.array(0.5), 0.5)
        return float(mix(self._windows(centres, bandwidth), whole, epsilon).mean())

    def _windows(self, centres: Floats, bandwidth: float) -> Floats:
        """The expected error over a window: that of the unclipped target, minus the part that clipping removes."""
        left, right = ((centres + side * bandwidth - self.locations) / self.deviation for side in (-1, 1))
        area = self.deviation**2 * (_antiderivative(right) - _antiderivative(left))
        beyond = _excess(-self.locations / self.deviation) + _excess((self.locations - 1) / self.deviation)
        return area / (2 * bandwidth) - self.deviation * beyond


def linear(*, rounds: int, width: int = 20, seed: int = 0) -> Linear:
    """Standard normal contexts, and a linear target with a little noise, clipped to [0, 1].

    >>> linear(rounds=3, width=2).contexts.shape
    (3, 2)
    """
    rng = random_generator(rounds=rounds, width=width, seed=seed)
    direction = unit(rng.standard_normal(width))
    contexts = rng.standard_normal((rounds, width))
    signal = scalar_products(contexts, direction)
    outcome = signal + 0.1 * rng.standard_normal(rounds)
    scale = 6 * np.sqrt(1.01)
    targets = np.clip(0.5 + outcome / scale, 0, 1)
    return Linear(contexts, targets, locations=0.5 + signal / scale, deviation=0.1 / scale)


def ds(*, rounds: int, width: int = 5, seed: int = 0) -> Regression:
    """The synthetic data set of the paper: contexts N(5, 1), weights N(0, 1/width), noise 0.2, scaled to [0, 1].

    >>> targets = ds(rounds=100).targets
    >>> float(targets.min()), float(targets.max())
    (0.0, 1.0)
    """
    rng = random_generator(rounds=rounds, width=width, seed=seed)
    weights = rng.standard_normal(width) / np.sqrt(width)
    contexts = rng.normal(5.0, 1.0, (rounds, width))
    outcome = scalar_products(contexts, weights) + 0.2 * rng.standard_normal(rounds)
    low, high = outcome.min(), outcome.max()
    return Regression(contexts, (outcome - low) / (high - low))


def normal_share(values: npt.ArrayLike) -> Floats:
    """The cumulative distribution function of the standard normal."""
    share: Any = np.frompyfunc(lambda value: 0.5 * math.erfc(-value / math.sqrt(2)), 1, 1)
    return np.asarray(share(np.asarray(values, dtype=np.float64)), dtype=np.float64)


def _density(values: Floats) -> Floats:
    return np.exp(-(values**2) / 2) / math.sqrt(2 * math.pi)


def _antiderivative(values: Floats) -> Floats:
    share = normal_share(values)
    return share + values * _density(values) + values**2 / 2 * (2 * share - 1)


def _excess(values: Floats) -> Floats:
    """E max(N(0, 1) - (-value), 0): the mean excess of a normal over a limit."""
    return values * normal_share(values) + _density(values)
