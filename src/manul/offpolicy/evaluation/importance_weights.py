"""Estimators that weigh each loss: `ips` averages weight times loss (section 2 of the paper), and `snips` divides that by
the mean weight."""

from __future__ import annotations

import numpy as np

from manul.logs.pieces import Logs
from manul.offpolicy.evaluation.estimator_registry import TermsOf, register_estimator
from manul.offpolicy.evaluation.intervals import Terms
from manul.types import Policy, Within


@register_estimator("ips")
def inverse_propensity(policy: Policy, log: Logs, actions: Within | None, losses: Within) -> TermsOf:  # noqa: ARG001 - as all estimators
    """Weight times loss, over the number of rows."""
    return lambda rows, weights, losses: Terms(weights * losses, np.ones(len(rows.actions)), weights, losses)


@register_estimator("snips")
def self_normalized(policy: Policy, log: Logs, actions: Within | None, losses: Within) -> TermsOf:  # noqa: ARG001 - as all estimators
    """Weight times loss, over the sum of the weights."""
    return lambda _, weights, losses: Terms(weights * losses, weights, weights, losses)
