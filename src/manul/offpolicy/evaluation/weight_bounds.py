"""Upper bounds of importance weights: the largest density of the policy divided by the floor of the logged density."""

from __future__ import annotations

import numpy as np

from manul.errors import ParameterError
from manul.logs.rows import Rows
from manul.offpolicy.evaluation.empirical_likelihood import UNKNOWN_BOUND
from manul.offpolicy.evaluation.piece_masses import Masses
from manul.offpolicy.evaluation.policy_densities import PolicyOnLog

LARGEST_BOUND = 1e12  # larger bounds say no more, and overflow


class WeightBounds:
    """An upper bound of all weights that a policy could have on a log, from the rows so far.

    A row has a bound if the masses of the policy on its pieces are known, if its floor is known and not 0, or if `largest_weight` is
    given. If it takes a search in every row, it is computed only if it is `needed`.
    """

    def __init__(self, policy: PolicyOnLog, largest_weight: float | None = None, *, needed: bool = False) -> None:
        self.policy, self.given, self.needed = policy, largest_weight, needed
        self.known, self.highest = True, min(largest_weight or 0.0, LARGEST_BOUND)
        self.several = False

    def add(self, rows: Rows, masses: Masses | None = None) -> None:
        if self.given is not None:
            return
        if masses is not None and masses.largest < LARGEST_BOUND:
            self.highest = max(self.highest, masses.largest)
            return
        # With several knobs, the bounds that follow from floors are so large that they say nothing.
        self.several = not rows.one_knob
        floors = rows.floors if self.policy.knows_largest(rows) or (rows.one_knob and self.needed) else None
        self.known = self.known and floors is not None and bool((floors > 0).all())
        if not self.known or floors is None:
            return
        largest = self.policy.largest_densities(rows)
        self.highest = max(self.highest, float((largest / np.maximum(floors, largest / LARGEST_BOUND)).max()))

    @property
    def largest(self) -> float:
        """The bound of all rows; 1e6 if one is unknown."""
        return self.highest if self.known else UNKNOWN_BOUND

    def require(self, interval: str) -> None:
        """Raise ParameterError if the bound of a row is unknown."""
        if not self.known:
            missing = "largest_weight, or a log with a column floor that is above 0 in every row"
            if self.several:
                missing = "largest_weight. With several knobs, the column floor gives none; other intervals need none"
            raise ParameterError(
                f"interval {interval} needs an upper bound of the weights: {missing}.", "largest_weight"
            )
