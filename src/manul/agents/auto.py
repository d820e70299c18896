"""Auto, an agent without tuning: it models the loss of every action and chooses near the minimum.

It is not from the paper: a small ensemble of networks and a forest of boosted trees model the loss of contexts and
actions, trained on remembered rounds (`src/core/critic`). Its actions are smoothed and explored as in Cats, so its logs
can be used off-policy.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
import numpy.typing as npt

from manul import _core
from manul.actions.decision import Within
from manul.actions.distribution import Atoms, Distribution
from manul.actions.ladders import mix_levels
from manul.actions.schedules import Epsilon, Fading
from manul.agents.agent_registry import register_agent
from manul.agents.auto_knobs import FEATURES, AutoKnobs
from manul.agents.base import BaseAgent
from manul.agents.critic_report import Report, critic_report, loss_unit
from manul.contexts.schema import Context
from manul.errors import InputError, ParameterError
from manul.utils import model_files
from manul.utils.rewards import AnyRange
from manul.utils.validation import Floats, are_within, check_bandwidth, check_number, check_shape


@register_agent(
    "auto",
    settings=("nearby", "limits"),
    examples=(
        lambda seed: Auto(seed=seed),
        lambda seed: Auto(actions=(-2.0, 8.0), losses=(-1.0, 3.0), seed=seed),
    ),
)
class Auto(BaseAgent[_core.Player]):
    """An agent without tuning: it chooses its own bandwidth and detects changes of the world.

    With `epsilon="auto"`, exploration fades as in `manul.schedules.Fading()`, from 5 % of the decisions to 0.2 %, and starts
    again after a change of the world. With a number, it is constant. With `losses="auto"` or `rewards="auto"`, the agent
    learns from any finite numbers. With `bandwidth`, in action units, it always plays this bandwidth, such as the one that
    `optimize` has chosen. With `nearby`, such as 0.05, this share of the decisions explores near the best action, and less as
    epsilon fades: its logs say more about other policies, for a little more loss.

    >>> agent = Auto(actions=(0.0, 32.0), seed=7)
    >>> decision = agent.decide([0.3, 1.2])
    >>> agent.learn([0.3, 1.2], decision, loss=0.25)
    """

    needs_range = False
    narrowest_share = 1 / 1024  # its narrowest bandwidth, as a share of the range, if it chooses it

    def __new__(cls, *, actions: Within | Mapping[str, Any] = (0.0, 1.0), **settings: Any) -> Any:
        """An agent for several knobs, `AutoKnobs`, if actions are a mapping."""
        if not isinstance(actions, Mapping):
            return super().__new__(cls)
        if settings.pop("bandwidth", None) is not None:
            raise ParameterError("bandwidth applies to one knob; with several, Auto chooses it.", "bandwidth")
        if settings.get("nearby", 0) is None:
            del settings["nearby"]
        return AutoKnobs(actions=actions, **settings)

    @classmethod
    def from_saved(cls, parameters: model_files.Parameters, arrays: model_files.Arrays) -> Any:
        """The agent that was saved with these parameters and arrays."""
        actions: Any = parameters["actions"]
        several = not all(isinstance(end, int | float) for end in actions)
        return AutoKnobs.from_saved(parameters, arrays) if several else super().from_saved(parameters, arrays)

    def __init__(
        self,
        *,
        actions: Within = (0.0, 1.0),
        epsilon: Epsilon | Literal["auto"] = "auto",
        losses: AnyRange | None = None,
        rewards: AnyRange | None = None,
        bandwidth: float | None = None,
        nearby: float | None = None,
        limits: Sequence[str] | None = None,
        seed: int = 0,
    ) -> None:
        fades = isinstance(epsilon, str) and epsilon == "auto"
        schedule = Fading() if fades else cast(Epsilon, epsilon)
        super().__init__(actions=actions, losses=losses, rewards=rewards, epsilon=schedule, seed=seed)
        if fades:
            self.epsilon = "auto"
        self.bandwidth = None if bandwidth is None else check_bandwidth(bandwidth, self._range)
        if limits:
            raise ParameterError("limits are between named knobs, as in actions={'price': (10, 50), ...}.", "limits")
        self.limits = None
        self.nearby = None if nearby is None else check_number("nearby", nearby, 0, 1, "Try 0.1.", ends="[)")

    # Otherwise it would be that of `__new__`, which takes the settings of `AutoKnobs` too.
    __signature__ = inspect.Signature(list(inspect.signature(__init__, eval_str=True).parameters.values())[1:])

    def report(self, context: Context = None, *, points: int = 64) -> Report:
        """The current state; with a context, also the predicted loss of `points` actions.

        >>> agent = Auto()
        >>> for _ in range(30):
        ...     decision = agent.decide([0.5])
        ...     agent.learn([0.5], decision, abs(decision.action - 0.3))
        >>> report = agent.report([0.5])
        >>> report.rounds, report.alarms, len(report.losses)
        (30, 0, 64)
        """
        player, features = (self.player, None) if context is None and self.player else self.player_and_context(context)
        report = cast(_core.AutoPlayer, player).report()
        curve = {} if context is None else self._curve(features, points)
        return critic_report(report, loss_unit(self.losses), self.current_epsilon, **curve)

    def predict_losses(self, contexts: npt.ArrayLike, actions: npt.ArrayLike) -> Floats:
        """The predicted losses of actions: one action per context, or a row of actions per context.

        >>> agent = Auto()
        >>> for _ in range(30):
        ...     decision = agent.decide([0.5])
        ...     agent.learn([0.5], decision, abs(decision.action - 0.3))
        >>> agent.predict_losses([[0.5], [0.5]], [[0.1, 0.3, 0.9], [0.2, 0.3, 0.9]]).shape
        (2, 3)
        """
        batch, points = self.batch(contexts), np.asarray(actions, dtype=np.float64)
        check_shape("actions", points[:, 0] if points.ndim == 2 else points, len(batch))
        outside = points[~are_within(points, *self.actions)]
        if len(outside):
            raise InputError(
                f"actions must be in [{self._range.low:g}, {self._range.high:g}], got {outside[0]:g}.", "actions"
            )
        shares = np.empty(points.size)
        with self.player_and_contexts(batch) as (player, rows):
            table = np.ascontiguousarray(points.reshape(len(batch), -1))
            cast(_core.AutoPlayer, player).predict_many(rows, table, shares)
        low, high = loss_unit(self.losses)
        return low + shares.reshape(points.shape) * (high - low)

    def centres_many(self, contexts: npt.ArrayLike, bandwidth: float, within: npt.ArrayLike | None = None) -> Floats:
        """The centre of the window of this bandwidth with the lowest predicted loss, for each context.

        >>> Auto(actions=(0.0, 32.0)).centres_many([[0.5]], 16.0)
        array([16.])
        """
        batch, width = self.batch(contexts), check_bandwidth(bandwidth, self._range)
        lows, highs = self._ends(within, len(batch))
        centres = np.empty(len(batch))
        with self.player_and_contexts(batch) as (player, rows):
            cast(_core.AutoPlayer, player).centres_many(rows, lows, highs, width, centres)
        return centres

    def _saved_settings(self) -> model_files.Parameters:
        settings = self.parameters
        for name in ("bandwidth", "nearby", "limits"):  # files of earlier versions do not have them
            if settings[name] is None:
                del settings[name]
        return settings

    def _explore(self, centre: float, bandwidth: float, within: Within) -> Distribution | Atoms:
        if not self.nearby:
            return super()._explore(centre, bandwidth, within)
        return mix_levels(cast(_core.AutoPlayer, self.player).levels(centre, bandwidth, *within))

    def _curve(self, context: Any, points: int) -> dict[str, Floats]:
        actions = self._range.low + (np.arange(points) + 0.5) / points * self._range.span
        contexts: Any = [context] if isinstance(context, dict) else np.asarray(context)[np.newaxis]
        return {"actions": actions, "losses": self.predict_losses(contexts, actions[np.newaxis])[0]}

    def make_player(self, width: int) -> _core.Player:
        """A new player for contexts of this width."""
        return _core.AutoPlayer(width=width, **self._player_settings)

    def _make_named_player(self) -> _core.Player:
        return _core.AutoPlayer(width=0, features=FEATURES, **self._player_settings)

    @property
    def _player_settings(self) -> dict[str, Any]:
        return {**super()._player_settings, "bandwidth": self.bandwidth or 0.0, "nearby": self.nearby or 0.0}
