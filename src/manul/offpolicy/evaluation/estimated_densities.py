"""What an estimate from estimated densities must satisfy: weights that average 1, and no estimator that trusts them."""

from __future__ import annotations

from manul.errors import InputError, ParameterError

LOWEST, HIGHEST = 0.8, 1.25  # mean weights outside show that the model does not know the actions of the policy


def check_estimated(estimator: str, mean_weight: float) -> None:
    """Refuse an estimate from estimated densities if it cannot be trusted.

    >>> check_estimated("snips", 0.97)
    >>> check_estimated("snips", 0.3)
    Traceback (most recent call last):
    manul.errors.InputError: The log hardly ever played what this policy plays (mean weight 0.3); no estimate.
    >>> check_estimated("ips", 0.97)
    Traceback (most recent call last):
    manul.errors.ParameterError: estimator ips needs logged densities, but those of this log were estimated. Try snips.
    """
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
