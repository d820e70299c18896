"""The loss that the learner's own model predicts for a decision of a rollout.

It is made before the arm is drawn, and is the same for both arms, so that it may be the centre of the decision's terms: what contexts
contribute to the variance of the losses then disappears, as far as the model knows it.
"""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from manul.contexts import conversion
from manul.contexts.schema import Context
from manul.utils.validation import Floats


@runtime_checkable
class PredictsLosses(Protocol):
    """An agent with a model of the losses of actions."""

    space: Any

    def best(self, context: Context, within: Any = None) -> Any:
        """The action without exploration."""

    def predict_losses(self, contexts: Any, actions: Any) -> Floats:
        """The predicted loss of an action for each of the contexts."""


def predicted_loss(agent: object, context: Context, within: Any, baseline: Any, share: float) -> float | None:
    """The predicted loss of a decision that the learner makes with probability `share`; None without a model or traffic.

    The learner counts the more, the smaller its share is, because its losses then have the larger terms. `baseline` is the action of
    the baseline, or None if it is drawn.

    >>> import manul
    >>> decision = [0.5], None, 0.25, 0.05
    >>> predicted_loss(manul.Auto(), *decision) is None, predicted_loss(manul.Cats(leaves=8, bandwidth=1 / 8), *decision)
    (False, None)
    """
    if share <= 0 or not isinstance(agent, PredictsLosses):
        return None
    space, actions = agent.space, [agent.best(context, within)]
    actions += [] if baseline is None else [baseline]
    rows: Any = [context] if conversion.is_named(context) else conversion.row(context)[np.newaxis]
    contexts = rows * len(actions) if isinstance(rows, list) else np.repeat(rows, len(actions), axis=0)
    losses = agent.predict_losses(contexts, space.unwrap(space.columns_of(actions))).tolist()
    return float(losses[0] if len(losses) == 1 else (1 - share) * losses[0] + share * losses[1])
