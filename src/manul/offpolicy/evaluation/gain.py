"""The paired difference between the loss of a policy and that of the logged policy, or of another one, from one log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manul.actions.decision import Within
from manul.offpolicy.evaluation.empirical_likelihood import SMALLEST_BOUND, Cells, Moments, interval, profile
from manul.utils.validation import Floats


class Gain:
    """The loss of a policy minus that of the logged policy, or of another policy, with an interval; negative is better.

    Both losses are estimated from the same rows, so what the two policies have in common cancels. With d the difference of
    the weights of a row, or its weight minus 1, d averages 0, and d times the loss averages the gain. Losses are scaled to
    [0, 1].
    """

    def __init__(self) -> None:
        self.cells, self.above, self.below = Cells(), 0.0, 0.0

    def add(
        self,
        weights: Floats,
        losses: Floats,
        bound: float,
        others: Floats | None = None,
        other_bound: float = 1.0,
        clusters: Sequence[object] = (),
    ) -> None:
        """Add rows; `bound` is an upper bound of all weights, and `others` are the weights of the other policy, if any."""
        self.above = max(self.above, bound - (others is None))
        self.below = max(self.below, other_bound)
        self._add(weights - (1.0 if others is None else others), losses, clusters)

    def _add(self, differences: Floats, losses: Floats, clusters: Sequence[object]) -> None:  # noqa: ARG002 - for subclasses
        self.cells.add(differences, losses)

    @property
    def value(self) -> float:
        """The estimate: the most likely gain, given that d averages 0."""
        return profile(self._moments()).value

    def interval(self, level: float = 0.95) -> Within:
        return interval(self._moments(), level)

    def _moments(self) -> Moments:
        cells = self.cells.sums()
        moments = Moments(cells.counts, np.ones(len(cells.counts)), cells.weights, cells.losses, (-1.0, 1.0))
        return moments.with_extremes(*_extremes(self.above, self.below))


class ClusteredGain(Gain):
    """The same for a log with several rows per cluster, such as a user, whose losses depend on each other.

    A cluster is one observation: its differences and its losses are summed.
    """

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[object, int] = {}
        self.sums = np.zeros((1024, 3))

    def _add(self, differences: Floats, losses: Floats, clusters: Sequence[object]) -> None:
        places = np.array([self.places.setdefault(cluster, len(self.places)) for cluster in clusters], np.int64)
        while len(self.sums) < len(self.places):
            self.sums = np.concatenate([self.sums, np.zeros_like(self.sums)])
        np.add.at(self.sums, places, np.column_stack([np.ones(len(losses)), differences, differences * losses]))

    def _moments(self) -> Moments:
        sizes, firsts, seconds = self.sums[: len(self.places)].T
        mean, largest = sizes.mean(), sizes.max()
        moments = Moments(np.ones(len(sizes)), sizes / mean, firsts / mean, seconds / mean, (-1.0, 1.0))
        factor = float(largest / mean)  # a cluster of the largest size could have all of the largest weights
        return moments.with_extremes(*_extremes(factor * self.above, factor * self.below), factor=factor)


def _extremes(above: float, below: float) -> tuple[Within, ...]:
    above = max(above, SMALLEST_BOUND - 1)
    return (-below, 0.0), (-below, -below), (above, 0.0), (above, above)
