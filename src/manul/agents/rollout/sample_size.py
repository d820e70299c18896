"""How many decisions a rollout takes."""

from __future__ import annotations

import math
from statistics import NormalDist

from manul.agents.rollout.rollout_plan import RolloutPlan

POWER = 0.95  # of the tests


def decisions_needed(plan: RolloutPlan, loss: float, gain: float, deviation: float) -> float:
    """About how many decisions a rollout takes until the learner has the whole traffic; infinite if it never gets it.

    `loss` is the mean loss of the baseline and `deviation` the standard deviation of losses, in widths of their range and counted from
    its better end; `gain` is how much lower the mean loss of the learner is. The number is that of tests which are planned with this
    gain, one per step but the last, and show with a power of 0.95 that the learner is not worse than the `plan` tolerates.
    A rollout needs about as many, although it may be looked at all the time (`python -m benchmarks.rollout`).

    >>> round(decisions_needed(RolloutPlan(), loss=0.2, gain=0.02, deviation=0.1))
    3202
    >>> decisions_needed(RolloutPlan(), loss=0.2, gain=-0.02, deviation=0.1)
    inf
    """
    difference = gain + plan.tolerance * loss
    if difference <= 0:
        return math.inf
    quantile = NormalDist().inv_cdf(plan.confidence) + NormalDist().inv_cdf(POWER)
    shares = plan.shares[:-1] or plan.shares
    variances = (1 / share + (1 + plan.tolerance) ** 2 / (1 - share) for share in shares)
    return sum(max((quantile * deviation / difference) ** 2 * each, plan.least_decisions) for each in variances)
