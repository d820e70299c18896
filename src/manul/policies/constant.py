"""Policies that choose the same action in every context."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manul.actions.decision import Within
from manul.policies.finite import Sums
from manul.policies.policy_class import saveable
from manul.utils.validation import check_whole_number


@saveable
@dataclass(frozen=True)
class Constant:
    """The best constant action, by exact minimisation over `choices` evenly spaced actions.

    >>> import manul
    >>> agent = manul.agents.SmoothedGreedy(policies=Constant(), bandwidth=1/16)
    >>> for _ in range(1000):
    ...     decision = agent.decide(None)
    ...     agent.learn(None, decision, abs(decision.action - 0.7))
    >>> round(agent.distribution(None).mean(), 1)
    0.7
    """

    choices: int = 1025

    def __post_init__(self) -> None:
        check_whole_number("choices", self.choices, 2, 2**20, "Try 1025.")

    def __len__(self) -> int:
        return self.choices

    def start(self, width: int, actions: Within, bandwidth: float) -> Sums:  # noqa: ARG002 - contexts do not matter
        """Start a learner with a running sum for each action."""
        choices = np.linspace(*actions, self.choices)
        return Sums(self.choices, bandwidth, lambda _: choices, lambda _, index: float(choices[index]))
