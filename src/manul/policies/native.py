"""A native agent as the learner of a policy class."""

from __future__ import annotations

from manul import _core
from manul.features import Row
from manul.files import Arrays
from manul.types import Decision, Within


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


def fitting(bandwidth: float, actions: Within) -> float:
    """The bandwidth of the core's window: at half the range it is the whole range already.

    >>> fitting(0.75, (0.0, 1.0))
    0.5
    """
    return min(bandwidth, (actions[1] - actions[0]) / 2)
