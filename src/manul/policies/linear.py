"""Linear policies, learned by gradient descent on the smoothed loss: the action is clip(weights · context + intercept)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manul import _core
from manul.policies.native_learner import NativePolicies
from manul.policies.policy_class import saveable
from manul.utils.validation import check_number


@saveable
@dataclass(frozen=True)
class Linear(NativePolicies):
    """A linear function of the standardised features; `rate` is the step size of AdaGrad in units of the range of actions.

    >>> import manul
    >>> agent = manul.agents.SmoothedGreedy(policies=Linear(), bandwidth=1/16)
    >>> agent.distribution([1.0, 2.0]).edges
    array([0.    , 0.4375, 0.5625, 1.    ])
    """

    rate: float = 0.01

    def __post_init__(self) -> None:
        check_number("rate", self.rate, 0, 1, "Try 0.01.", ends="(]")

    def native_player(self, **settings: Any) -> _core.Player:
        return _core.LinearPlayer(rate=self.rate, **settings)
