"""Decisions that are left out because their losses did not come in time, by arm.

Which arm makes a decision is random. If lateness does not depend on the arm, a decision that is left out was the learner's
with its share p of the traffic. If the odds of the learner are t times as high instead, the ratio of the probabilities is
t / (t p + 1 - p) for a decision of the learner, and 1 / (t p + 1 - p) for one of the baseline. The mean of the products of
these ratios for several t is a nonnegative martingale as long as lateness does not depend on the arm, so it ever exceeds 1 / a
with probability at most a (Ville's inequality), however often one looks.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

# From slightly to vastly different odds: a test for one of them needs little more evidence for those between two.
ODDS = tuple(2.0**power for power in (-6, -4, -2, -1, -0.5, 0.5, 1, 2, 4, 6))


@dataclass
class LeftOut:
    """How many decisions with traffic for both arms were judged and left out, of the learner and of the baseline.

    >>> late = LeftOut()
    >>> for _ in range(10):
    ...     late.add(learner=True, share=0.05)
    >>> late.left_out, late.differ(0.05)
    ([10, 0], True)
    """

    judged: list[int] = field(default_factory=lambda: [0, 0])
    left_out: list[int] = field(default_factory=lambda: [0, 0])
    logs: list[float] = field(default_factory=lambda: [0.0] * len(ODDS))

    def count(self, *, learner: bool, share: float) -> None:
        if 0 < share < 1:
            self.judged[not learner] += 1

    def add(self, *, learner: bool, share: float) -> None:
        if not 0 < share < 1:
            return
        self.left_out[not learner] += 1
        for place, odds in enumerate(ODDS):
            self.logs[place] += math.log(odds) * learner - math.log(odds * share + 1 - share)

    def differ(self, chance: float) -> bool:
        """Whether the arms are proven to be left out at different rates, except with a small chance."""
        largest = max(self.logs)
        mean = math.fsum(math.exp(each - largest) for each in self.logs) / len(ODDS)
        return largest + math.log(mean) >= -math.log(chance)

    @property
    def rates(self) -> tuple[float, float]:
        """The share of the learner's decisions that was left out, and of the baseline's."""
        both = zip(self.left_out, self.judged, strict=True)
        learner, baseline = (left / (left + judged) if left else 0.0 for left, judged in both)
        return learner, baseline
