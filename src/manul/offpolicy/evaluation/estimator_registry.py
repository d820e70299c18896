"""Estimators by name: what `evaluate` and `manul evaluate --estimator` read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from manul.logs.pieces import Logs, Rows
from manul.offpolicy.evaluation.intervals import Terms
from manul.types import Floats, Policy, Within
from manul.utils.registry import Registry

TermsOf = Callable[[Rows, Floats, Floats], Terms]
Prepare = Callable[[Policy, Logs, Within | None, Within], TermsOf]
_Prepare = TypeVar("_Prepare", bound=Prepare)


@dataclass(frozen=True)
class Estimator:
    """What an estimator makes of a log, and the intervals that hold for it; None is all of them."""

    prepare: Prepare
    intervals: tuple[str, ...] | None


ESTIMATORS = Registry[Estimator]("estimator", "manul.offpolicy.evaluation", usual="snips")


def register_estimator(name: str, *, intervals: Sequence[str] | None = None) -> Callable[[_Prepare], _Prepare]:
    """Registers an estimator, so that `evaluate` and `manul evaluate` know it by name.

    It is a function of the policy, the log, the range of actions (None if the log says it) and that of losses. It
    returns another one, which gives the terms of some rows from their weights and their losses scaled to [0, 1]; the
    estimate is the sum of the numerators over that of the denominators. `intervals` are those that hold for it.

    >>> import manul, numpy as np
    >>> @manul.register_estimator("clipped")
    ... def clipped(policy, log, actions, losses):
    ...     def terms(rows, weights, losses):
    ...         return Terms(np.minimum(weights, 5.0) * losses, np.ones(len(losses)), weights, losses)
    ...     return terms
    >>> log = manul.simulate(manul.Cats(leaves=16, bandwidth=1/8), manul.worlds.linear(rounds=500)).log
    >>> manul.evaluate(lambda context: 0.5, log, "clipped", bandwidth=1/4).estimator
    'clipped'
    >>> ESTIMATORS.remove("clipped")
    """

    def register(prepare: _Prepare) -> _Prepare:
        entry = Estimator(prepare, None if intervals is None else tuple(intervals))
        ESTIMATORS.add(name, entry, module=prepare.__module__)
        return prepare

    return register
