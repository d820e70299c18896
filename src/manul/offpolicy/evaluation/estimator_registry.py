"""Estimators by name: what `evaluate` and `manul evaluate --estimator` read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from manul.logs.batching import Logs, Rows
from manul.offpolicy.evaluation.intervals import Terms
from manul.types import Floats, Policy, Within
from manul.utils.registry import Registry

TermsOf = Callable[[Rows, Floats, Floats], Terms]
Fit = Callable[[Policy, Logs, Within | None, Within], TermsOf]
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Estimator:
    """What gives the terms of a log's rows once it has seen the log, and the intervals that hold; None is all of them."""

    fit: Fit
    intervals: tuple[str, ...] | None


ESTIMATORS = Registry[Estimator]("estimator", "manul.offpolicy.evaluation", usual="snips")


def register_estimator(
    name: str, *, fitted: bool = False, intervals: Sequence[str] | None = None
) -> Callable[[_Function], _Function]:
    """Registers an estimator, so that `evaluate` and `manul evaluate` know it by name.

    It is a function of some rows, their weights and their losses scaled to [0, 1] that gives the terms of the rows: the
    estimate is the sum of the numerators over that of the denominators. With `fitted=True` it is one of the policy, the
    log, the range of actions (None: as the log says) and that of losses, which returns such a function. `intervals` are
    those that hold for it.

    >>> import manul, numpy as np
    >>> @manul.register_estimator("clipped")
    ... def clipped(rows, weights, losses):
    ...     return Terms(np.minimum(weights, 5.0) * losses, np.ones(len(losses)), weights, losses)
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=500)).log
    >>> manul.evaluate(lambda context: 0.5, log, "clipped", bandwidth=1/4).estimator
    'clipped'
    >>> ESTIMATORS.remove("clipped")
    """

    def register(function: _Function) -> _Function:
        fit: Fit = function if fitted else lambda *_: function
        ESTIMATORS.add(
            name, Estimator(fit, None if intervals is None else tuple(intervals)), module=function.__module__
        )
        return function

    return register
