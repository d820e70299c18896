"""The price of what must be kept: it rises while the mean of a second outcome is worse than its bound, and falls while it is better."""

from __future__ import annotations

import math
import warnings

import numpy as np

from manul.agents.pacing import MEMORY, Expectation, Unit
from manul.errors import LimitWarning
from manul.outcomes.budgets import Kept

HIGHEST = 10.0  # price, in units of what is earned by what is kept
STEP = 0.05  # of the price, for an outcome that misses the whole bound
FADING = 500.0  # outcomes after which steps are shorter by a third
ENOUGH = 200.0  # outcomes, and decisions, before a bound is said to be out of reach
TRIED = 5.0  # a price at which a bound that is missed all the same is out of reach
SURE = 3.0  # standard errors by which it is missed then


class KeptBound:
    """The price of what is `kept`, and its mean over about the latest 1,000 outcomes.

    >>> from manul import Sale
    >>> bound = KeptBound(Kept.of(Sale(), ("bought", ">=", 0.5)))
    >>> for _ in range(100):
    ...     bound.decide(Expectation(value=5.0, kept=0.2, most_kept=0.9))
    ...     bound.learn(0.2)
    >>> round(bound.mean, 3), bound.price > 0, bound.is_out_of_reach
    (0.2, True, False)
    """

    def __init__(self, kept: Kept, *, has_budget: bool = False) -> None:
        self.kept, self.unit, self.has_budget = kept, Unit(), has_budget
        # The price in units; outcomes; means of what they kept, of its square, and of the most that any action keeps; whether it has
        # warned.
        self.numbers = np.zeros(6)

    @property
    def price(self) -> float:
        """What one that is kept is worth, beyond what it earns."""
        return float(self.numbers[0]) * self.unit.value

    @property
    def outcomes(self) -> int:
        return int(self.numbers[1])

    @property
    def mean(self) -> float:
        """The mean of what was kept; NaN before the first outcome."""
        return float(self.numbers[2]) if self.numbers[1] else math.nan

    @property
    def reachable(self) -> float:
        """The mean of what decisions would keep that try nothing else, as far as the agent knows; NaN if it does not know."""
        return self._signed(float(self.numbers[4])) if self.unit.decisions else math.nan

    @property
    def is_out_of_reach(self) -> bool:
        """Whether it is missed by more than chance, and no decisions would keep it, or its price is high."""
        price, outcomes, mean, square, _, _ = self.numbers.tolist()
        if min(outcomes, self.unit.decisions) < ENOUGH:
            return False
        error = math.sqrt(max(square - mean**2, 0.0) / min(outcomes, MEMORY))
        hopeless = self.kept.surplus(self.reachable) < 0 or price >= TRIED
        return hopeless and self.kept.surplus(mean) < -SURE * error

    def decide(self, expected: Expectation) -> None:
        """Take account of what is expected of a decision; `kept` and `most_kept` are high if they are good."""
        if math.isnan(expected.kept):
            return
        self.unit.learn(expected.value, expected.kept)
        self.numbers[4] += (expected.most_kept - self.numbers[4]) / min(self.unit.decisions, MEMORY)

    def learn(self, kept: float, *, stacklevel: int = 1, warns: bool = True) -> None:
        """Move the price after an outcome, and if it `warns`, warn once that the bound is out of reach."""
        surplus = self.kept.surplus(kept)
        scale = max(abs(self.kept.value), 1e-300) if self.kept.value else max(self.unit.amount, 1e-300)
        step = STEP / math.sqrt(1 + self.numbers[1] / FADING)
        self.numbers[0] = min(max(self.numbers[0] - step * surplus / scale, 0.0), HIGHEST)
        self.numbers[1] += 1
        rate = 1 / min(self.numbers[1], MEMORY)
        self.numbers[2:4] += rate * (np.array([kept, kept**2]) - self.numbers[2:4])
        if warns and self.is_out_of_reach and not self.numbers[5]:
            self.numbers[5] = 1.0
            warnings.warn(self.doubt, LimitWarning, stacklevel=stacklevel + 1)

    @property
    def doubt(self) -> str:
        """That the bound is out of reach, in words."""
        formula, sign, value = self.kept.argument
        said = f"{formula} {sign} {value:g} cannot be kept: the mean is {self.mean:.4g}"
        if self.has_budget:
            return f"{said} with this budget. Choose another value, another range of actions, or a larger budget."
        return f"{said}, although decisions aim at little else. Choose another value, or another range of actions."

    def _signed(self, gain: float) -> float:
        return gain if self.kept.sign == ">=" else 0.0 - gain
