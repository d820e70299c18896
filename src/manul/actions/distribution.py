"""Distributions over actions: piecewise-constant densities, and atoms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manul.utils.html_cards import card, curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, eq=False)
class Distribution:
    """Piecewise-constant `densities` between ascending `edges`; both ends of a piece belong to it.

    >>> uniform = Distribution.uniform(0.0, 2.0)
    >>> uniform.density(0.5), uniform.density(3.0)
    (0.5, 0.0)
    """

    edges: npt.NDArray[np.float64]
    densities: npt.NDArray[np.float64]

    @classmethod
    def uniform(cls, low: float, high: float) -> Distribution:
        """The uniform distribution from `low` to `high`."""
        return cls(np.array([low, high]), np.array([1.0 / (high - low)]))

    def density(self, action: float) -> float:
        """The density at an `action`; at an edge, the larger of the two neighbours.

        >>> Distribution.uniform(0.0, 4.0).density(4.0)
        0.25
        """
        return float(self.density_many(np.array([action]))[0])

    def density_many(self, actions: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The density at each of the `actions`.

        >>> Distribution.uniform(0.0, 4.0).density_many([1.0, 5.0])
        array([0.25, 0.  ])
        """
        padded = np.concatenate([[0.0], self.densities, [0.0]])
        below = np.searchsorted(self.edges, actions, side="left")
        above = np.searchsorted(self.edges, actions, side="right")
        densities: npt.NDArray[np.float64] = np.maximum(padded[below], padded[above])
        return densities

    def mean_densities(self, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The mean density between neighbours of ascending `edges`.

        >>> Distribution.uniform(0.0, 4.0).mean_densities(np.array([0.0, 2.0, 6.0]))
        array([0.25 , 0.125])
        """
        below = np.interp(edges, self.edges, np.concatenate([[0.0], np.cumsum(self._masses)]))
        means: npt.NDArray[np.float64] = np.diff(below) / np.diff(edges)
        return means

    def mix(self, other: Distribution, weight: float) -> Distribution:
        """The mixture with `weight` on the `other` distribution.

        >>> Distribution.uniform(0.0, 1.0).mix(Distribution.uniform(0.0, 2.0), 0.5).densities
        array([0.75, 0.25])
        """
        edges = np.union1d(self.edges, other.edges)
        middles = (edges[:-1] + edges[1:]) / 2
        return Distribution(edges, (1 - weight) * self.density_many(middles) + weight * other.density_many(middles))

    def integral(self) -> float:
        """The total mass: 1 up to rounding.

        >>> Distribution.uniform(0.0, 32.0).integral()
        1.0
        """
        return float(np.sum(self._masses))

    def mean(self) -> float:
        """The expected action.

        >>> Distribution.uniform(0.0, 32.0).mean()
        16.0
        """
        return float(np.sum(self._masses * (self.edges[:-1] + self.edges[1:]) / 2))

    def square(self) -> float:
        """The expected square of the action.

        >>> Distribution.uniform(0.0, 3.0).square()
        3.0
        """
        return self.expectation(lambda action: action**3 / 3)

    def largest_density(self) -> float:
        """The largest density of any action.

        >>> Distribution(np.array([0.0, 1.0, 2.0]), np.array([0.25, 0.75])).largest_density()
        0.75
        """
        return float(self.densities.max())

    def densest(self) -> tuple[float, float]:
        """The ends of the interval with the largest density.

        >>> Distribution(np.array([0.0, 1.0, 2.0]), np.array([0.25, 0.75])).densest()
        (1.0, 2.0)
        """
        most = np.flatnonzero(np.isclose(self.densities, self.densities.max(), atol=0))
        return float(self.edges[most[0]]), float(self.edges[most[-1] + 1])

    def expectation(self, antiderivative: Any) -> float:
        """The expected value of a function of the action, given its `antiderivative`.

        >>> Distribution.uniform(0.0, 3.0).expectation(lambda a: a**2 / 2)
        1.5
        """
        return float(np.sum(self.densities * np.diff(antiderivative(self.edges))))

    def sample(self, rng: np.random.Generator) -> float:
        """One action drawn with a NumPy generator, `rng`.

        >>> 0.0 <= Distribution.uniform(0.0, 1.0).sample(np.random.default_rng(0)) <= 1.0
        True
        """
        return float(self.sample_many(rng, 1)[0])

    def sample_many(self, rng: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
        """As many actions as `count`, drawn with a NumPy generator, `rng`.

        >>> Distribution.uniform(0.0, 1.0).sample_many(np.random.default_rng(0), 3).shape
        (3,)
        """
        ends = np.cumsum(self._masses)
        quantiles = rng.random(count) * ends[-1]
        piece = np.minimum(np.searchsorted(ends, quantiles, side="right"), len(self.densities) - 1)
        starts = ends - self._masses
        actions = self.edges[piece] + (quantiles - starts[piece]) / self.densities[piece]
        clipped: npt.NDArray[np.float64] = np.clip(actions, self.edges[piece], self.edges[piece + 1])
        return clipped

    def _repr_html_(self) -> str:
        low, high = self.densest()
        rows = [
            ("mean", self.mean()),
            ("densest", f"{low:.6g} to {high:.6g}"),
            ("density there", self.largest_density()),
        ]
        picture = curve(np.repeat(self.edges, 2)[1:-1], np.repeat(self.densities, 2), filled=True)
        return card("Distribution", rows, picture)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the density over the actions. `axes` are those of matplotlib to draw on."""
        from manul.plotting import density_plot

        return density_plot(self.edges, self.densities, axes)

    @property
    def _masses(self) -> npt.NDArray[np.float64]:
        return self.densities * np.diff(self.edges)


@dataclass(frozen=True, eq=False)
class Atoms:
    """A discrete distribution; an atom represents `spacing` of the range, so its density is mass / spacing.

    >>> two = Atoms(np.array([0.0, 8.0]), np.array([0.75, 0.25]), spacing=8.0)
    >>> two.density(0.0), two.density(4.0)
    (0.09375, 0.0)
    """

    positions: npt.NDArray[np.float64]
    masses: npt.NDArray[np.float64]
    spacing: float

    @classmethod
    def greedy(cls, positions: npt.NDArray[np.float64], chosen: float, epsilon: float, spacing: float) -> Atoms:
        """Epsilon-greedy: uniform over the positions with probability epsilon, otherwise the chosen one.

        >>> Atoms.greedy(np.array([0.0, 0.5]), chosen=0.5, epsilon=0.1, spacing=0.5).masses
        array([0.05, 0.95])
        """
        return cls(positions, epsilon / len(positions) + np.where(positions == chosen, 1 - epsilon, 0.0), spacing)

    def density(self, action: float) -> float:
        """The density at an action; 0 between atoms.

        >>> Atoms(np.array([0.0, 0.5]), np.array([0.25, 0.75]), spacing=0.5).density(0.5)
        1.5
        """
        return float(self.density_many(np.array([action]))[0])

    def density_many(self, actions: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """The density at each action.

        >>> Atoms(np.array([0.0, 0.5]), np.array([0.25, 0.75]), spacing=0.5).density_many([0.0, 0.3])
        array([0.5, 0. ])
        """
        points = np.asarray(actions, dtype=np.float64)
        index = np.minimum(np.searchsorted(self.positions, points), len(self.positions) - 1)
        matches = self.positions[index] == points
        densities: npt.NDArray[np.float64] = np.where(matches, self.masses[index] / self.spacing, 0.0)
        return densities

    def mean_densities(self, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """The mass between neighbours of ascending edges, divided by their distance.

        >>> Atoms(np.array([0.0, 0.5]), np.array([0.25, 0.75]), spacing=0.5).mean_densities(np.array([0.0, 0.25, 1.0]))
        array([1., 1.])
        """
        means: npt.NDArray[np.float64] = np.histogram(self.positions, edges, weights=self.masses)[0] / np.diff(edges)
        return means

    def mix(self, other: Atoms, weight: float) -> Atoms:
        """The mixture with `weight` on the other distribution, which has the same spacing.

        >>> Atoms(np.array([0.0]), np.ones(1), 1.0).mix(Atoms(np.array([1.0]), np.ones(1), 1.0), 0.25).masses
        array([0.75, 0.25])
        """
        positions = np.union1d(self.positions, other.positions)
        masses = np.zeros(len(positions))
        for part, share in ((self, 1 - weight), (other, weight)):
            masses[np.searchsorted(positions, part.positions)] += share * part.masses
        return Atoms(positions, masses, self.spacing)

    def integral(self) -> float:
        """The total mass: 1 up to rounding.

        >>> Atoms(np.array([0.0, 0.5]), np.array([0.25, 0.75]), spacing=0.5).integral()
        1.0
        """
        return float(np.sum(self.masses))

    def mean(self) -> float:
        """The expected action.

        >>> Atoms(np.array([0.0, 0.5]), np.array([0.25, 0.75]), spacing=0.5).mean()
        0.375
        """
        return float(np.sum(self.masses * self.positions))

    def square(self) -> float:
        """The expected square of the action.

        >>> Atoms(np.array([0.0, 0.5]), np.array([0.25, 0.75]), spacing=0.5).square()
        0.1875
        """
        return float(np.sum(self.masses * self.positions**2))

    def largest_density(self) -> float:
        """The largest density of any action.

        >>> Atoms(np.array([0.0, 0.5]), np.array([0.25, 0.75]), spacing=0.5).largest_density()
        1.5
        """
        return float(self.masses.max()) / self.spacing

    def densest(self) -> tuple[float, float]:
        """The first and the last atom with the largest density.

        >>> Atoms(np.array([0.0, 0.5]), np.array([0.25, 0.75]), spacing=0.5).densest()
        (0.5, 0.5)
        """
        most = np.flatnonzero(np.isclose(self.masses, self.masses.max(), atol=0))
        return float(self.positions[most[0]]), float(self.positions[most[-1]])

    def sample(self, rng: np.random.Generator) -> float:
        """One action drawn with a NumPy generator.

        >>> Atoms(np.array([0.0, 0.5]), np.array([0.0, 1.0]), spacing=0.5).sample(np.random.default_rng(0))
        0.5
        """
        return float(self.sample_many(rng, 1)[0])

    def sample_many(self, rng: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
        """Many actions drawn with a NumPy generator.

        >>> Atoms(np.array([0.0, 0.5]), np.array([0.0, 1.0]), spacing=0.5).sample_many(np.random.default_rng(0), 2)
        array([0.5, 0.5])
        """
        ends = np.cumsum(self.masses)
        index = np.searchsorted(ends, rng.random(count) * ends[-1], side="right")
        actions: npt.NDArray[np.float64] = self.positions[np.minimum(index, len(ends) - 1)]
        return actions

    def _repr_html_(self) -> str:
        rows = [("mean", self.mean()), ("most likely", self.densest()[0]), ("probability", float(self.masses.max()))]
        spikes = np.column_stack([np.zeros_like(self.masses), self.masses, np.zeros_like(self.masses)])
        return card("Atoms", rows, curve(np.repeat(self.positions, 3), spikes.ravel()))

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the density at the atoms."""
        from manul.plotting import atoms_plot

        return atoms_plot(self.positions, self.masses / self.spacing, axes)


_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class Scaled:
    """A distribution over values on a bent scale, such as a logarithmic one: piecewise constant over their positions.

    `share` and `number` turn values into positions and back, and `units` is the derivative of `number` by value.
    """

    inner: Distribution
    share: Callable[[Any], Any]
    number: Callable[[Any], Any]
    units: Callable[[Any], Any]

    @property
    def edges(self) -> npt.NDArray[np.float64]:
        """The values between which the density of positions is constant."""
        return np.asarray(self.number(self.inner.edges), dtype=np.float64)

    def density(self, action: float) -> float:
        return float(self.density_many(np.array([action]))[0])

    def density_many(self, actions: npt.ArrayLike) -> npt.NDArray[np.float64]:
        values = np.asarray(actions, dtype=np.float64)
        ends = self.inner.edges[[0, -1]]
        clipped = np.clip(values, *self.number(ends))
        places = np.clip(self.share(clipped), *ends)
        inside = np.abs(values - clipped) <= _ROUNDING * np.abs(clipped)  # the end of a range may be rounded
        return np.where(inside, self.inner.density_many(places) / self.units(values), 0.0)

    def mean_densities(self, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        places = np.asarray(self.share(edges))
        means: npt.NDArray[np.float64] = self.inner.mean_densities(places) * np.diff(places) / np.diff(edges)
        return means

    def mix(self, other: Scaled, weight: float) -> Scaled:
        return Scaled(self.inner.mix(other.inner, weight), self.share, self.number, self.units)

    def integral(self) -> float:
        return self.inner.integral()

    def mean(self) -> float:
        return self._expectation(lambda values: values)

    def square(self) -> float:
        return self._expectation(np.square)

    def _expectation(self, function: Callable[[Any], Any]) -> float:
        """By Gauss's quadrature in each piece, which is exact to rounding for smooth scales."""
        points, weights = np.polynomial.legendre.leggauss(16)
        lows, widths = self.inner.edges[:-1, np.newaxis], np.diff(self.inner.edges)[:, np.newaxis]
        means = function(self.number(lows + widths * (points + 1) / 2)) @ (weights / 2)
        return float(np.sum(self.inner.densities * widths[:, 0] * means))

    def largest_density(self) -> float:
        ends = self.edges
        return float(np.max(self.inner.densities / np.minimum(self.units(ends[:-1]), self.units(ends[1:]))))

    def densest(self) -> tuple[float, float]:
        low, high = self.inner.densest()
        return float(self.number(low)), float(self.number(high))

    def sample(self, rng: np.random.Generator) -> float:
        return float(self.sample_many(rng, 1)[0])

    def sample_many(self, rng: np.random.Generator, count: int) -> npt.NDArray[np.float64]:
        return np.asarray(self.number(self.inner.sample_many(rng, count)), dtype=np.float64)

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the density over the actions."""
        from manul.plotting import density_plot

        inner = self.inner.edges
        cells = self.number(np.unique(np.concatenate([inner, np.linspace(inner[0], inner[-1], 257)])))
        return density_plot(cells, self.mean_densities(cells), axes)


@dataclass(frozen=True)
class Options:
    """The probabilities of the options of a choice.

    >>> Options({"plain": 0.9, "bold": 0.1}).density("bold")
    0.1
    """

    probabilities: Mapping[Any, float]

    def density(self, option: Any) -> float:
        """The probability of an option; 0 if it is not allowed."""
        return self.probabilities.get(option, 0.0)

    def densest(self) -> Any:
        """The most likely option.

        >>> Options({"plain": 0.9, "bold": 0.1}).densest()
        'plain'
        """
        return max(self.probabilities, key=lambda option: self.probabilities[option])

    def integral(self) -> float:
        """The total probability: 1 up to rounding."""
        return math.fsum(self.probabilities.values())

    def plot(self, axes: Axes | None = None) -> Axes:
        """Draw the probabilities."""
        from manul.plotting.knob_plots import options_plot

        return options_plot(self.probabilities, axes)
