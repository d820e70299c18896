"""Estimators that weigh each loss: `ips` averages weight times loss (section 2 of the paper), and `snips` divides that by
the mean weight."""

from __future__ import annotations

import numpy as np

from manul.logs.batching import Rows
from manul.offpolicy.evaluation.estimator_registry import register_estimator
from manul.offpolicy.evaluation.intervals import Terms
from manul.types import Floats


@register_estimator("ips")
def inverse_propensity(rows: Rows, weights: Floats, losses: Floats) -> Terms:
    """Weight times loss, over the number of rows."""
    return Terms(weights * losses, np.ones(len(rows.actions)), weights, losses)


@register_estimator("snips")
def self_normalized(rows: Rows, weights: Floats, losses: Floats) -> Terms:  # noqa: ARG001 - as all estimators
    """Weight times loss, over the sum of the weights."""
    return Terms(weights * losses, weights, weights, losses)
