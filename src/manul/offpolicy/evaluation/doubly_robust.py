"""The doubly robust estimator `dr` (Dudik, Langford and Li 2011): the policy's expected loss under a loss model, plus the
weighted residuals of the model."""

from __future__ import annotations

import numpy as np

from manul.logs.batching import Logs, Rows, pieces, repeatable
from manul.offpolicy.evaluation import policy_densities
from manul.offpolicy.evaluation.estimator_registry import TermsOf, register_estimator
from manul.offpolicy.evaluation.intervals import Terms
from manul.offpolicy.evaluation.loss_scaling import scale_losses
from manul.offpolicy.evaluation.outcome_model import LossModel
from manul.types import Floats, Policy, Within
from manul.utils.validation import check_has_rows


@register_estimator("dr", fitted=True, intervals=("bootstrap", "normal"))
def doubly_robust(policy: Policy, log: Logs, actions: Within | None, losses: Within) -> TermsOf:
    """Fit a loss model to the log; terms are the policy's expected loss plus the weighted residual."""
    policy_range: Within = getattr(policy, "actions", (0.0, 1.0))
    model = LossModel(actions or policy_range)
    for rows in pieces(repeatable(log, "dr")):
        model.add(rows, scale_losses(rows, losses))
    check_has_rows(model.grams is not None)
    model.fit()

    def terms(rows: Rows, weights: Floats, losses: Floats) -> Terms:
        expected = model.expected(rows, policy_densities.moments(policy, rows))
        return Terms(expected + weights * (losses - model.predict(rows)), np.ones(len(losses)), weights, losses)

    return terms
