"""What an estimate from estimated densities must satisfy: weights that average 1, and no estimator that trusts them."""

from __future__ import annotations

import numpy as np

from manul.actions.decision import Within
from manul.errors import InputError, ParameterError
from manul.logs.density_models import resolution
from manul.utils.validation import Floats

LOWEST, HIGHEST = 0.8, 1.25  # mean weights outside show that the model does not know the actions of the policy
# Steps of a quarter of the standard deviation add half a percent to the variance, and estimates are as good as without steps.
COARSE = 0.25
LARGE_PROBABILITY = 0.1  # of a single action, given the context: fewer than about ten actions share the probability


def check_estimated(estimator: str, mean_weight: float) -> None:
    """Refuse an estimate from estimated densities if it cannot be trusted."""
    if estimator == "ips":
        raise ParameterError(
            "estimator ips needs logged densities, but those of this log were estimated. Try snips.", "estimator"
        )
    if mean_weight < LOWEST:
        raise InputError(
            f"The log hardly ever played what this policy plays (mean weight {mean_weight:.2g}); no estimate.", "log"
        )
    if mean_weight > HIGHEST:
        raise InputError(
            f"The estimated densities are too small where this policy plays (mean weight {mean_weight:.3g}); no estimate.",
            "log",
        )


def check_not_rounded(actions: Floats, densities: Floats) -> None:
    """Refuse an estimate if actions are too far apart: the log then says nothing about the actions between them."""
    if are_rounded(actions, densities):
        size = f"{len(np.unique(actions)):,} distinct actions in {len(actions):,} rows"
        raise InputError(f"The log has only {size}, and says nothing about those between; no estimate.", "log")


def are_rounded(actions: Floats, densities: Floats) -> bool:
    """Whether actions are far apart compared with their spread, in all rows or given the context, however many rows repeat them."""
    step = resolution(actions)
    return step > COARSE * float(np.std(actions)) or float(np.median(densities)) * step > LARGE_PROBABILITY


def widen(ends: Within, mean_weight: float) -> Within:
    """The interval of a loss in [0, 1] if any loss is possible for the share of the weight that is missing or in excess."""
    missing = min(abs(1 - mean_weight), 1.0)
    low, high = ends
    return (1 - missing) * low, (1 - missing) * high + missing
