"""The doubly robust estimator `dr` (Dudik, Langford and Li 2011): what a loss model expects of the policy, and weights
only on what the model does not explain."""

from __future__ import annotations

import numpy as np

from manul.logs.batching import Logs, Rows, pieces, repeatable
from manul.offpolicy.evaluation import policy_densities
from manul.offpolicy.evaluation.estimator_registry import TermsOf, register_estimator
from manul.offpolicy.evaluation.intervals import Terms
from manul.offpolicy.evaluation.outcome_model import LossModel
from manul.offpolicy.evaluation.row_losses import checked_rows, scaled_losses
from manul.types import Floats, Policy, Within
from manul.utils.validation import check_has_rows


@register_estimator("dr", fitted=True, intervals=("bootstrap", "normal"))
def doubly_robust(policy: Policy, log: Logs, actions: Within | None, losses: Within) -> TermsOf:
    """What a model of the loss, fitted on the log, expects of the policy, and its weighted errors."""
    own: Within = getattr(policy, "actions", (0.0, 1.0))
    model = LossModel(actions or own)
    for rows in pieces(repeatable(log, "dr")):
        model.add(rows, scaled_losses(checked_rows(rows, losses), losses))
    check_has_rows(model.grams is not None)
    model.fit()

    def terms(rows: Rows, weights: Floats, losses: Floats) -> Terms:
        expected = model.expected(rows, policy_densities.moments(policy, rows))
        return Terms(expected + weights * (losses - model.predict(rows)), np.ones(len(losses)), weights, losses)

    return terms
