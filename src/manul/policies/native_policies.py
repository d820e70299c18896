"""Policy classes that are learned in the native core: linear functions, and trees as in Cats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

from manul import _core
from manul.actions.decision import Decision, Within
from manul.contexts.conversion import Row
from manul.policies.policy_class import saveable
from manul.utils.model_files import Arrays
from manul.utils.validation import check_leaves, check_number


class NativeLearner:
    """A learner that delegates to a native player."""

    def __init__(self, player: _core.Player) -> None:
        self._player = player

    def action(self, context: Row, within: Within) -> float:
        return self._player.window(context, *within)[0]

    def learn(self, context: Row, decision: Decision, loss: float) -> None:
        action, density, within, *_ = decision
        assert within is not None
        self._player.learn(context, action, density, loss, *within)

    def state(self) -> Arrays:
        return self._player.state()

    def restore(self, arrays: Arrays) -> None:
        self._player.restore(arrays)


class NativePolicies(ABC):
    """A policy class whose agent runs entirely in the core."""

    @abstractmethod
    def native_player(self, **settings: Any) -> _core.Player:
        """A new player of the core with the settings that all players have."""

    def player(self, *, actions: Within, bandwidth: float, **settings: Any) -> _core.Player:
        """A new player; at a bandwidth of half the range of actions, a window covers the whole range."""
        widest = (actions[1] - actions[0]) / 2
        return self.native_player(actions=actions, bandwidth=min(bandwidth, widest), **settings)

    def start(self, width: int, actions: Within, bandwidth: float) -> NativeLearner:
        """Start a learner without data."""
        return NativeLearner(
            self.player(width=width, actions=actions, losses=(0, 1), bandwidth=bandwidth, epsilon=0, seed=0)
        )


@saveable
@dataclass(frozen=True)
class Linear(NativePolicies):
    """A linear function of the standardised features, learned by gradient descent on the smoothed loss.

    The action is clip(weights · context + intercept); `rate` is the step size of AdaGrad in units of the range of actions.

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
