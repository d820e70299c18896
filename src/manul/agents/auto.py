"""Auto: no parameters beyond the range of actions. It learns the loss of every action, and plays near its minimum.

This is ours, not the paper's: a small ensemble of networks models the loss in context and action, trained on replayed
rounds (`src/core/critic`). What is played is smoothed and explored like everything else, so its logs serve off-policy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from manul import _core
from manul.agents.agent_registry import register_agent
from manul.agents.base import BaseAgent
from manul.types import Context, Floats, Within

MEMBERS = ("deep", "shallow", "sharp", "scout")


@dataclass(frozen=True)
class Member:
    """One network of the ensemble: its error of late in units of the loss, and its share in the prediction."""

    name: str
    error: float
    weight: float


@dataclass(frozen=True)
class Report:
    """What an Auto believes, and why it plays as it does.

    `bandwidth` is what is played where the predicted loss is not steep; on steep sides it is narrower. `noise` is the
    standard deviation of the loss around the prediction, `memory` the rounds since the last change of the world that
    was noticed, `last_alarm` the round of that change. `actions` and `losses` are the predicted loss curve for one
    context, where one was given.
    """

    members: tuple[Member, ...]
    bandwidth: float
    noise: float
    rounds: int
    memory: int
    alarms: int
    last_alarm: int | None
    actions: Floats | None = None
    losses: Floats | None = None


@register_agent(
    "auto",
    examples=(
        lambda seed: Auto(seed=seed),
        lambda seed: Auto(actions=(-2.0, 8.0), losses=(-1.0, 3.0), seed=seed),
    ),
)
class Auto(BaseAgent[_core.Player]):
    """Strong without tuning: finds its own bandwidth, and notices when the world changes.

    >>> agent = Auto(actions=(0.0, 32.0), seed=7)
    >>> decision = agent.decide([0.3, 1.2])
    >>> agent.learn([0.3, 1.2], decision, loss=0.25)
    """

    def __init__(
        self,
        *,
        actions: Within = (0.0, 1.0),
        epsilon: float = 0.05,
        losses: Within = (0.0, 1.0),
        seed: int = 0,
    ) -> None:
        super().__init__(actions=actions, losses=losses, epsilon=epsilon, seed=seed)

    @property
    def parameters(self) -> dict[str, Any]:
        """What the constructor needs to make this agent again."""
        return {name: getattr(self, name) for name in ("actions", "epsilon", "losses", "seed")}

    def report(self, context: Context = None, *, points: int = 64) -> Report:
        """What the agent believes now; with a context, also the loss it expects of each action there.

        >>> agent = Auto()
        >>> for _ in range(30):
        ...     decision = agent.decide([0.5])
        ...     agent.learn([0.5], decision, abs(decision.action - 0.3))
        >>> report = agent.report([0.5])
        >>> report.rounds, report.alarms, len(report.losses)
        (30, 0, 64)
        """
        player, seen = (self.player, None) if context is None and self.player else self.player_and_context(context)
        now = cast(_core.AutoPlayer, player).report()
        members = tuple(map(Member, MEMBERS, self._in_loss_units(now["errors"]), now["weights"]))
        return Report(
            members=members,
            bandwidth=now["bandwidth"],
            noise=self._in_loss_units([now["noise"]])[0],
            rounds=int(now["rounds"]),
            memory=int(now["memory"]),
            alarms=int(now["alarms"]),
            last_alarm=int(now["last_alarm"]) or None,
            **({} if context is None else self._curve(cast(_core.AutoPlayer, player), seen, points)),
        )

    def _curve(self, player: _core.AutoPlayer, seen: Any, points: int) -> dict[str, Floats]:
        middles = (np.arange(points) + 0.5) / points
        with self.explained():
            predicted = np.array(player.curve(seen, points), dtype=np.float64)
        low, high = self.losses
        return {"actions": self._range.low + middles * self._range.span, "losses": low + predicted * (high - low)}

    def _in_loss_units(self, shares: list[float]) -> list[float]:
        low, high = self.losses
        return [share * (high - low) for share in shares]

    def make_player(self, width: int) -> _core.Player:
        """A fresh player for contexts of this width."""
        return _core.AutoPlayer(
            actions=self.actions, losses=self.losses, width=width, epsilon=self.epsilon, seed=self.seed
        )
