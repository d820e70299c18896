"""Learners that run in the native core."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from manul import _core
from manul.actions.decision import Decision, Within
from manul.contexts.conversion import Row
from manul.utils.model_files import Arrays


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
