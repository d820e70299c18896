"""The registry of estimators, for `evaluate` and `manul evaluate --estimator`, and the importance-weighted ones.

`ips` is the mean weighted loss (section 2 of the paper), `snips` divides it by the mean weight.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

import numpy as np

from manul.logs.rows import Rows
from manul.offpolicy.evaluation.intervals import Terms, approximate_names
from manul.utils.registry import Registry
from manul.utils.validation import Floats

TermsOf = Callable[[Rows, Floats, Floats], Terms]
Fit = Callable[..., TermsOf]
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Estimator:
    """A registered estimator: `fit` returns the function that computes terms; `intervals` are those it allows, None all.

    With `outcome_models`, `fit` has the keyword argument `outcome_model`.
    """

    fit: Fit
    declared: Sequence[str] | Literal["approximate"] | None
    outcome_models: bool = False

    @property
    def intervals(self) -> tuple[str, ...] | None:
        if self.declared is None:
            return None
        return approximate_names() if self.declared == "approximate" else tuple(self.declared)


ESTIMATORS = Registry[Estimator]("estimator", "manul.offpolicy.evaluation", suggestion="snips")


def register_estimator(
    name: str,
    *,
    fitted: bool = False,
    intervals: Sequence[str] | Literal["approximate"] | None = None,
    outcome_models: bool = False,
) -> Callable[[_Function], _Function]:
    """Register an estimator under a `name`, for `evaluate` and `manul evaluate --estimator NAME`.

    Decorate a function of a batch of rows, their importance weights and their losses, scaled to [0, 1], that returns the
    `Terms` of the rows. The estimate is the sum of the numerators divided by the sum of the denominators. With
    `fitted=True`, decorate a function of the policy, a `PolicyOnLog`, and of the log, a `Sample`, that returns such a
    function. `intervals` are the confidence intervals that are valid for it, by name, or "approximate" for all that are;
    the default is all. With `outcome_models`, that function has the keyword argument `outcome_model`, which is the one of
    `evaluate` or None.

    >>> import manul, numpy as np
    >>> @manul.register.estimator("clipped")
    ... def clipped(rows, weights, losses):
    ...     return Terms(np.minimum(weights, 5.0) * losses, np.ones(len(losses)), weights, losses)
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=500)).log
    >>> manul.evaluate(lambda context: 0.5, log, "clipped", bandwidth=1/4).estimator
    'clipped'
    >>> ESTIMATORS.remove("clipped")
    """
    return ESTIMATORS.decorator(
        name, lambda function: Estimator(function if fitted else lambda *_: function, intervals, outcome_models)
    )


@register_estimator("ips")
def inverse_propensity(rows: Rows, weights: Floats, losses: Floats) -> Terms:
    """The weighted losses divided by the number of rows."""
    return Terms(weights * losses, np.ones(len(rows)), weights, losses)


@register_estimator("snips")
def self_normalized(rows: Rows, weights: Floats, losses: Floats) -> Terms:  # noqa: ARG001 - the signature of estimators
    """The weighted losses divided by the sum of the weights."""
    return Terms(weights * losses, weights, weights, losses)
