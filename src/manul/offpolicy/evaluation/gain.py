"""The paired difference between the loss of a policy and that of the logged policy, or of another one, from one log."""

from __future__ import annotations

from manul.offpolicy.evaluation.empirical_likelihood import SMALLEST_BOUND, Moments, interval, profile
from manul.offpolicy.evaluation.likelihood_cells import Cells
from manul.types import Floats, Within


class Gain:
    """The loss of a policy minus that of the logged policy, or of another policy, with an interval; negative is better.

    Both losses are estimated from the same rows, so what the two policies have in common cancels. With d the difference of
    the weights of a row, or its weight minus 1, d averages 0, and d times the loss averages the gain. Losses are scaled to
    [0, 1].

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> actions = rng.random(2000)
    >>> gain = Gain()
    >>> gain.add(weights=2.0 * (actions < 0.5), losses=actions, bound=2.0)    # the lower half of a uniform log
    >>> low, high = gain.interval(0.95)
    >>> round(gain.value, 2), low < -0.25 < high < 0
    (-0.25, True)
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
    ) -> None:
        """Add rows; `bound` is an upper bound of all weights, and `others` are the weights of the other policy, if any."""
        self.above = max(self.above, bound - (others is None))
        self.below = max(self.below, other_bound)
        self.cells.add(weights - (1.0 if others is None else others), losses)

    @property
    def value(self) -> float:
        """The estimate: the most likely gain, given that d averages 0."""
        return profile(self._moments()).value

    def interval(self, level: float = 0.95) -> Within:
        """The confidence interval, by empirical likelihood."""
        return interval(self._moments(), level)

    def _moments(self) -> Moments:
        cells, above = self.cells.sums(), max(self.above, SMALLEST_BOUND - 1)
        moments = Moments(cells.counts, cells.factors, cells.weights, cells.losses, (-1.0, 1.0))
        extremes = (-self.below, 0.0), (-self.below, -self.below), (above, 0.0), (above, above)
        return moments.with_extremes(*extremes)
