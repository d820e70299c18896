"""The distributions of many rows: what a policy draws from in each of its contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Generic, NamedTuple, Protocol, runtime_checkable

import numpy as np

from manul import _core
from manul.actions.decision import A
from manul.actions.distribution import Atoms, Distribution
from manul.actions.pieces import KnobPieces, window_pieces
from manul.actions.smoothing import explore
from manul.actions.space import ActionSpace, numbers_only, several_knobs
from manul.errors import InputError
from manul.utils.validation import Floats, check_numbers

POINTS = 16  # equally likely actions that represent a part of a distribution
_STEPS = (np.arange(POINTS) + 0.5) / POINTS


class Distributions(Generic[A]):
    """The distributions of many `rows`, which `policy.distributions(contexts, within)` returns: a list, or what computes them faster.

    What is asked of all rows at once is the same as that of each one, `distributions[row]`. `space` is that of the actions; None
    if they are numbers in a range.

    >>> import manul
    >>> played = manul.Cats(leaves=8, bandwidth=1/4, epsilon=0).distributions([[0.5], [0.25]])
    >>> played.density([0.5, 0.9]), played.largest(), len(played)
    (array([2., 0.]), array([2., 2.]), 2)
    """

    space: ActionSpace[A] | None = None

    def __init__(self, rows: Sequence[Any], space: ActionSpace[A] | None = None) -> None:
        self._rows, self.space = rows, space

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, row: int) -> Any:
        """The distribution of one row."""
        return self._rows[row]

    def __iter__(self) -> Iterator[Any]:
        return (self[row] for row in range(len(self)))

    def density(self, actions: Any) -> Floats:
        """The density of each row's action; any policy may have drawn the `actions`.

        They are a list or an array with one per row, or columns by knob.
        """
        values = self._points(actions) if self.space is None else self.space.each(actions, len(self))
        return np.array([each.density(action) for each, action in zip(self, values, strict=True)], np.float64)

    def largest(self) -> Floats:
        """The largest density of any action of each row."""
        return np.array([each.largest_density() for each in self], np.float64)

    def moments(self) -> tuple[Floats, Floats]:
        """The expected action and the expected squared action of each row."""
        if self.space is not None:
            raise numbers_only(self.space, "This method")
        each = np.array([(one.mean(), one.square()) for one in self], np.float64).reshape(-1, 2)
        return each[:, 0], each[:, 1]

    def points(self) -> tuple[Floats, Floats]:
        """Actions that represent the distribution of each row, and their probabilities."""
        pairs = [_quantiles(each) for each in self]
        most = max((len(points) for points, _ in pairs), default=0)
        points, shares = np.zeros((2, len(pairs), most))
        for row, (values, masses) in enumerate(pairs):
            points[row], shares[row] = values[0], 0.0
            points[row, : len(values)], shares[row, : len(values)] = values, masses
        return points, shares

    def _points(self, actions: Any) -> Floats:
        return check_numbers("actions", actions, len(self))


def _quantiles(distribution: Distribution | Atoms) -> tuple[Floats, Floats]:
    if isinstance(distribution, Atoms):
        return distribution.positions, distribution.masses
    edges, densities = distribution.edges, distribution.densities
    points = edges[:-1, np.newaxis] + np.diff(edges)[:, np.newaxis] * _STEPS
    return points.reshape(-1), np.repeat(np.diff(edges) * densities / POINTS, POINTS)


@runtime_checkable
class _HasDistributions(Protocol):
    def distributions(self, contexts: Any, within: Any = None) -> Distributions[Any]: ...


def distributions_of(policy: Any, contexts: Any, within: Any = None) -> Distributions[Any]:
    """The distributions of any policy; of one that only has `distribution`, row by row."""
    if isinstance(policy, _HasDistributions):
        return policy.distributions(contexts, within)
    if within is None:
        return Distributions([policy.distribution(context) for context in contexts], several_knobs(policy))
    ranges = map(tuple, within.tolist()) if isinstance(within, np.ndarray) and within.ndim == 2 else within
    rows = [policy.distribution(context, each) for context, each in zip(contexts, ranges, strict=True)]
    return Distributions(rows, several_knobs(policy))


class Mixture(Distributions[A]):
    """Two policies, of which the first is played with the probability `share`."""

    def __init__(self, first: Distributions[A], second: Distributions[A], share: float) -> None:
        self.space, self._parts, self._share = first.space, (first, second), share

    def __len__(self) -> int:
        return len(self._parts[0])

    def __getitem__(self, row: int) -> Any:
        first, second = (part[row] for part in self._parts)
        return first.mix(second, 1 - self._share)

    def density(self, actions: Any) -> Floats:
        first, second = (part.density(actions) for part in self._parts)
        return self._share * first + (1 - self._share) * second


class Windows(Distributions[float]):
    """Uniform from `lows` to `highs`, and with the probability `epsilon` in the whole range: `ends` has one (low, high) per row.

    >>> windows = Windows.around(np.array([0.5, 0.9]), 0.25, np.array([[0.0, 1.0]] * 2), epsilon=0.1)
    >>> windows.density([0.5, 0.1])
    array([1.9, 0.1])
    """

    def __init__(self, lows: Floats, highs: Floats, ends: Floats, epsilon: float = 0.0) -> None:
        self._lows, self._highs, self._ends, self._epsilon = lows, highs, ends, epsilon

    @classmethod
    def around(cls, centres: Floats, bandwidth: float, ends: Floats, epsilon: float = 0.0) -> Windows:
        """Windows within a `bandwidth` of their `centres`, clipped to the range."""
        lows, highs = np.maximum(centres - bandwidth, ends[:, 0]), np.minimum(centres + bandwidth, ends[:, 1])
        return cls(lows, highs, ends, epsilon)

    def pieces(self) -> KnobPieces:
        """The pieces of constant density of all rows at once.

        >>> Windows(np.array([0.25]), np.array([0.75]), np.array([[0.0, 1.0]])).pieces().row(0)
        [(0.25, 0.75, 2.0)]
        """
        greedy = (1 - self._epsilon) / (self._highs - self._lows)
        if self._epsilon == 0:
            return KnobPieces(np.arange(len(self) + 1), self._lows, self._highs, greedy)
        low, high = self._ends.T
        return window_pieces((self._lows, self._highs), (low, high), greedy, self._epsilon / (high - low))

    def __len__(self) -> int:
        return len(self._lows)

    def __getitem__(self, row: int) -> Distribution:
        window, (low, high) = Distribution.uniform(self._lows[row], self._highs[row]), self._ends[row]
        return explore(window, self._epsilon, (low, high)) if self._epsilon else window

    def density(self, actions: Any) -> Floats:
        points, (low, high) = self._points(actions), self._ends.T
        inside = (self._lows <= points) & (points <= self._highs)
        greedy = np.where(inside, (1 - self._epsilon) / (self._highs - self._lows), 0.0)
        return np.where((low <= points) & (points <= high), greedy + self._epsilon / (high - low), 0.0)

    def largest(self) -> Floats:
        return self.density(self._lows)

    def moments(self) -> tuple[Floats, Floats]:
        parts = (_moments(self._lows, self._highs), _moments(*self._ends.T))
        mean, square = (
            (1 - self._epsilon) * greedy + self._epsilon * anywhere for greedy, anywhere in zip(*parts, strict=True)
        )
        return mean, square

    def points(self) -> tuple[Floats, Floats]:
        if self._epsilon:
            return super().points()
        points = self._lows[:, np.newaxis] + (self._highs - self._lows)[:, np.newaxis] * _STEPS
        return points, np.full(points.shape, 1 / POINTS)


def _moments(lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
    return (lows + highs) / 2, (lows**2 + lows * highs + highs**2) / 3


class PlayedRows(NamedTuple):
    """What a view needs of its agent: how many rows it has, the distribution of one, and how to reach the player.

    `play` gives the player and the contexts as it takes them, and `learned` is how often it had learned.
    """

    size: int
    distribution: Callable[[int], Any]
    play: Callable[[], AbstractContextManager[tuple[Any, Any]]]
    learned: int


class PlayerView(Distributions[A]):
    """The distributions of an agent, which its player in the core computes when they are asked for; raises if it has learned since.

    `actions` is the range of rows if `lows` is empty. `windows` says that each is a window, and uniform with the probability epsilon.
    """

    def __init__(self, rows: PlayedRows, lows: Floats, highs: Floats, actions: Any, *, windows: bool = False) -> None:
        self._played, self._lows, self._highs, self._actions, self._windows = rows, lows, highs, actions, windows

    def __len__(self) -> int:
        return self._played.size

    def __reduce__(self) -> tuple[type[Distributions[A]], tuple[Any, ...]]:
        """A copy has the distribution of each row, so that it stays valid when the agent learns."""
        return Distributions, ([*self], self.space)

    def __getitem__(self, row: int) -> Any:
        with self.playing():
            return self._played.distribution(row)

    @contextmanager
    def playing(self) -> Iterator[tuple[Any, Any]]:
        """The player and the contexts; raises InputError if the agent has learned since the view was made."""
        with self._played.play() as (player, contexts):
            if player.learned != self._played.learned:
                raise InputError("The agent has learned since this distribution was made. Ask for it again.", "agent")
            yield player, contexts

    def density(self, actions: Any) -> Floats:
        points, densities = self._points(actions), np.empty(len(self))
        with self.playing() as (player, contexts):
            player.densities_many(contexts, self._lows, self._highs, points, densities)
        return densities

    def largest(self) -> Floats:
        densities = np.empty(len(self))
        with self.playing() as (player, contexts):
            player.largest_densities_many(contexts, self._lows, self._highs, densities)
        return densities

    def moments(self) -> tuple[Floats, Floats]:
        means, squares = np.empty(len(self)), np.empty(len(self))
        with self.playing() as (player, contexts):
            player.moments_many(contexts, self._lows, self._highs, means, squares)
        return means, squares

    def points(self) -> tuple[Floats, Floats]:
        """The mean and the mean square of the action determine the window."""
        if not self._windows:
            return super().points()
        means, squares = self.moments()
        with self.playing() as (player, _):
            epsilon = player.epsilon
        lows, highs = (self._lows, self._highs) if len(self._lows) else np.tile(self._actions, (len(self), 1)).T
        uniform, square = _moments(lows, highs)
        rest = max(1.0 - epsilon, 1e-12)
        centres = (means - epsilon * uniform) / rest
        halves = np.sqrt(np.maximum(3.0 * ((squares - epsilon * square) / rest - centres**2), 0.0))
        points = centres[:, np.newaxis] + halves[:, np.newaxis] * (2.0 * _STEPS - 1.0)
        if epsilon == 0:
            return points, np.full(points.shape, 1 / POINTS)
        everywhere = lows[:, np.newaxis] + (highs - lows)[:, np.newaxis] * _STEPS
        shares = np.repeat([(1.0 - epsilon) / POINTS, epsilon / POINTS], POINTS)
        return np.hstack([points, everywhere]), np.broadcast_to(shares, (len(lows), 2 * POINTS))


class KnobsView(PlayerView[A]):
    """The same of an agent with other actions than numbers, and with limits between them: those of the core, and numbers of contexts."""

    space: ActionSpace[A]

    def __init__(
        self,
        rows: PlayedRows,
        lows: Floats,
        highs: Floats,
        space: ActionSpace[A],
        limited: tuple[_core.KnobLimits | None, Floats | None],
    ) -> None:
        super().__init__(rows, lows, highs, space.actions)
        self.space, self._limited = space, limited

    def density(self, actions: Any) -> Floats:
        positions, densities = self.space.rows(actions, len(self)), np.zeros(self._lows.shape)
        with self.playing() as (player, contexts):
            player.densities_many(contexts, self._lows, self._highs, positions, densities, *self._limited)
        joint: Floats = (densities / self.space.units(positions)).prod(axis=1)
        return joint

    def largest(self) -> Floats:
        return Distributions.largest(self)

    def moments(self) -> tuple[Floats, Floats]:
        return Distributions.moments(self)
