"""Linear policies x -> clip(w.x + b), learned by the slope of the smoothed loss."""

from __future__ import annotations

from dataclasses import dataclass

from manul import _core
from manul.policies.native_learner import NativePolicies, fitting
from manul.policies.policy_class import saveable
from manul.types import Within
from manul.utils.validation import check_number


@saveable
@dataclass(frozen=True)
class Linear(NativePolicies):
    """A weight per feature, standardised on the way; `rate` is AdaGrad's, in units of the range of actions.

    >>> import manul
    >>> agent = manul.SmoothedGreedy(policies=Linear(), bandwidth=1/16)
    >>> agent.distribution([1.0, 2.0]).edges
    array([0.    , 0.4375, 0.5625, 1.    ])
    """

    rate: float = 0.01

    def __post_init__(self) -> None:
        check_number("rate", self.rate, 0, 1, "Try 0.01.", ends="(]")

    def player(
        self, *, width: int, actions: Within, losses: Within, bandwidth: float, epsilon: float, seed: int
    ) -> _core.Player:
        """A fresh native agent."""
        return _core.LinearPlayer(
            actions=actions,
            losses=losses,
            width=width,
            bandwidth=fitting(bandwidth, actions),
            rate=self.rate,
            epsilon=epsilon,
            seed=seed,
        )
