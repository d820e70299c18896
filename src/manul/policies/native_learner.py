"""Native agents as the learners of policy classes."""

from __future__ import annotations

from abc import ABC, abstractmethod

from manul import _core
from manul.contexts.conversion import Row
from manul.types import Decision, Within
from manul.utils.model_files import Arrays


class NativeLearner:
    """Asks the core for the centre of its window, and lets it learn."""

    def __init__(self, player: _core.Player) -> None:
        self._player = player

    def action(self, context: Row, within: Within) -> float:
        """The centre of the window."""
        return self._player.window(context, *within)[0]

    def learn(self, context: Row, decision: Decision, loss: float) -> None:
        """Pass an example on."""
        action, density, within = decision
        assert within is not None
        self._player.learn(context, action, density, loss, *within)

    def state(self) -> Arrays:
        """The core's arrays."""
        return self._player.state()

    def restore(self, arrays: Arrays) -> None:
        """Go back to a state."""
        self._player.restore(arrays)


class NativePolicies(ABC):
    """A policy class whose whole agent lives in the core."""

    @abstractmethod
    def player(
        self, *, width: int, actions: Within, losses: Within, bandwidth: float, epsilon: float, seed: int
    ) -> _core.Player:
        """A fresh native agent."""

    def start(self, width: int, actions: Within, bandwidth: float) -> NativeLearner:
        """A learner that has seen nothing."""
        return NativeLearner(
            self.player(width=width, actions=actions, losses=(0, 1), bandwidth=bandwidth, epsilon=0, seed=0)
        )


def fitting(bandwidth: float, actions: Within) -> float:
    """The bandwidth of the core's window: at half the range it is the whole range already.

    >>> fitting(0.75, (0.0, 1.0))
    0.5
    """
    return min(bandwidth, (actions[1] - actions[0]) / 2)
