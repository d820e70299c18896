"""CATS with an adaptive bandwidth, Algorithm 5 of the paper: one tree per bandwidth, of which the best one decides."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Literal

import numpy as np

from manul import _core
from manul.actions.decision import Within
from manul.actions.ranges import Actions
from manul.actions.schedules import Epsilon
from manul.agents.agent_registry import register_agent
from manul.agents.base import BaseAgent
from manul.agents.player_host import COUNTERS
from manul.errors import ParameterError
from manul.outcomes import Outcome
from manul.policies.theory import BandwidthGrid
from manul.utils import model_files
from manul.utils.validation import Floats, check_bandwidth, check_choice, check_leaves

PenaltyName = Literal["measured", "practical", "paper"]
_PENALTIES = {
    "measured": _core.Penalty.measured,
    "practical": _core.Penalty.practical,
    "paper": _core.Penalty.paper,
}


@register_agent(
    "adaptive",
    settings=("leaves", "half_life"),
    examples=(
        lambda seed: AdaptiveCats(leaves=16, seed=seed),
        lambda seed: AdaptiveCats(
            leaves=16, bandwidths=(0.5, 1.25, 4.0), actions=(-2.0, 8.0), penalty="practical", seed=seed
        ),
        lambda seed: AdaptiveCats(leaves=8, bandwidths=(0.05, 0.2), penalty="paper", seed=seed),
    ),
)
class AdaptiveCats(BaseAgent[float]):
    """One tree per bandwidth; structural risk minimisation chooses the tree that decides.

    Every tree has `leaves`, a power of two; the other parameters are those of `Cats`: `actions`, `epsilon`, `losses`,
    `rewards`, `outcome`, `half_life` and `seed`.

    The default `bandwidths` are 1/2, 1/4, ..., 1/4096 of the range; a `theory.BandwidthGrid` is the paper's grid. The
    risk of a tree is a doubly robust estimate of its loss plus a `penalty` for the uncertainty: the measured standard
    error ("measured"), the bound of the paper's Algorithm 3 with the constant 1 of its experiments ("practical"), or the
    bound of Algorithm 5 ("paper").

    >>> agent = AdaptiveCats(leaves=64, seed=7)
    >>> decision = agent.decide([0.3, 1.2])
    >>> agent.learn([0.3, 1.2], decision, loss=0.25)
    """

    def __init__(
        self,
        *,
        actions: Within = (0.0, 1.0),
        leaves: int,
        bandwidths: Iterable[float] | None = None,
        penalty: PenaltyName = "measured",
        epsilon: Epsilon = 0.05,
        losses: Within | None = None,
        rewards: Within | None = None,
        outcome: Outcome | None = None,
        seed: int = 0,
        half_life: float | None = None,
    ) -> None:
        outcome = Outcome.of(losses=losses, rewards=rewards, outcome=outcome)
        super().__init__(actions=actions, outcome=outcome, epsilon=epsilon, seed=seed, half_life=half_life)
        self.half_life, self.leaves = self._host.half_life, check_leaves(leaves)
        self.bandwidths = _check_bandwidths(bandwidths, Actions(*self.actions))
        check_choice("penalty", penalty, _PENALTIES, "Try 'measured'.")
        if penalty != "measured" and self.epsilon == 0:
            raise ParameterError(f"epsilon must be above 0 with penalty={penalty!r}, got 0. Try 0.05.", "epsilon")
        self.penalty = penalty

    @property
    def bandwidth(self) -> float:
        """The bandwidth in use, in action units."""
        player = self._host.player
        return self.bandwidths[-1 if player is None else player.best_member]

    @property
    def estimates(self) -> Floats:
        """The estimated recent loss of each bandwidth's tree, as a share of the range of losses."""
        player = self._host.player
        return np.full(len(self.bandwidths), np.nan) if player is None else player.state()["estimates"]

    @property
    def risks(self) -> Floats:
        """The estimated losses plus their penalties; the bandwidth with the smallest sum is in use."""
        player, members = self._host.player, range(len(self.bandwidths))
        return self.estimates if player is None else np.array([player.risk(member) for member in members])

    @property
    def _narrowest_bandwidth(self) -> float:
        return min(self.bandwidths)

    # All members have the same size, so one member is enough to compute the total.
    def _fits(self, width: int, arrays: model_files.Arrays) -> bool:
        if not super()._fits(width, arrays):
            return False
        member = self._members(width, self.bandwidths[:1])
        nbytes = sum(array.nbytes for name, array in arrays.items() if name not in COUNTERS)
        return nbytes == member.nbytes * len(self.bandwidths)

    def _make_player(self, width: int) -> _core.Player:
        return self._members(width, self.bandwidths)

    def _members(self, width: int, bandwidths: tuple[float, ...]) -> _core.Player:
        return _core.AdaptiveCatsPlayer(
            width=width,
            depth=self.leaves.bit_length() - 1,
            bandwidths=list(bandwidths),
            penalty=_PENALTIES[self.penalty],
            complexity=_complexity(self.penalty, self.leaves, width),
            **self._player_settings,
        )


def _check_bandwidths(bandwidths: Iterable[float] | None, actions: Actions) -> tuple[float, ...]:
    if bandwidths is None:
        return tuple(actions.span / 2**i for i in range(1, 13))
    if isinstance(bandwidths, BandwidthGrid):
        bandwidths = [share * actions.span for share in bandwidths if share <= 0.5]
    if not isinstance(bandwidths, Iterable):
        raise ParameterError(f"bandwidths must be a sequence of numbers, got {bandwidths!r}.", "bandwidths")
    descending = tuple(sorted({check_bandwidth(each, actions) for each in bandwidths}, reverse=True))
    if not descending:
        raise ParameterError(
            "bandwidths must have at least one element, got none. Omit it for the default.", "bandwidths"
        )
    return descending


def _complexity(penalty: PenaltyName, leaves: int, width: int) -> float:
    """K ln|F| + ln(8 T^4 / delta) of Algorithm 5, for linear classifiers of 32 bits per weight, T = 10^6, delta = 0.05."""
    if penalty != "paper":
        return 1.0
    return leaves * 32 * (width + 1) * math.log(2) + math.log(8 * 1e6**4 / 0.05)
