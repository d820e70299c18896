"""Importance-weighted estimators: `ips` is the mean weighted loss (section 2 of the paper), `snips` divides it by the mean
weight."""

from __future__ import annotations

import numpy as np

from manul.logs.batching import Rows
from manul.offpolicy.evaluation.estimator_registry import register_estimator
from manul.offpolicy.evaluation.intervals import Terms
from manul.utils.validation import Floats


@register_estimator("ips")
def inverse_propensity(rows: Rows, weights: Floats, losses: Floats) -> Terms:
    """The weighted losses divided by the number of rows."""
    return Terms(weights * losses, np.ones(len(rows)), weights, losses)


@register_estimator("snips")
def self_normalized(rows: Rows, weights: Floats, losses: Floats) -> Terms:  # noqa: ARG001 - the signature of estimators
    """The weighted losses divided by the sum of the weights."""
    return Terms(weights * losses, weights, weights, losses)
