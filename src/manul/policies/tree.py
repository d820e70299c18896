"""Trees of binary learners, as in Cats."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from manul import _core
from manul.policies.native_learner import NativePolicies
from manul.policies.policy_class import saveable
from manul.utils.validation import check_leaves


@saveable
@dataclass(frozen=True)
class Tree(NativePolicies):
    """A tree that routes each context to one of its leaves; a leaf is an action.

    >>> import manul
    >>> agent = manul.agents.SmoothedGreedy(policies=Tree(leaves=64), bandwidth=1/8)
    >>> agent.learn([0.3], agent.decide([0.3]), loss=0.25)
    """

    leaves: int

    def __post_init__(self) -> None:
        check_leaves(self.leaves)

    def native_player(self, **settings: Any) -> _core.Player:
        return _core.CatsPlayer(depth=self.leaves.bit_length() - 1, **settings)
