"""Learners that run in the native core."""

from __future__ import annotations

from abc import ABC, abstractmethod

from manul import _core
from manul.actions.decision import Decision, Within
from manul.contexts.conversion import Row
from manul.utils.model_files import Arrays

NativeEpsilon = float | tuple[float, float, float]  # a constant, or the fields of a schedule


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
    def player(
        self, *, width: int, actions: Within, losses: Within, bandwidth: float, epsilon: NativeEpsilon, seed: int
    ) -> _core.Player:
        """Return a new native player."""

    def start(self, width: int, actions: Within, bandwidth: float) -> NativeLearner:
        """Start a learner without data."""
        return NativeLearner(
            self.player(width=width, actions=actions, losses=(0, 1), bandwidth=bandwidth, epsilon=0, seed=0)
        )


def cap_bandwidth(bandwidth: float, actions: Within) -> float:
    """Limit a bandwidth to half the range of actions, at which a window covers the whole range."""
    return min(bandwidth, (actions[1] - actions[0]) / 2)
