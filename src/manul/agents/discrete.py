"""The paper's two comparators (section 5): epsilon-greedy over K fixed actions, the i-th at low + i/K of the range.

The density of a decision is the probability of its action divided by the spacing of the actions, so logs and estimates
are comparable with those of continuous agents. A narrowed range keeps the actions inside it.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from manul import _core
from manul.actions.decision import Within
from manul.actions.distribution import Atoms
from manul.actions.schedules import Fading
from manul.agents import learners
from manul.agents.agent_registry import register_agent
from manul.agents.base import BaseAgent
from manul.errors import InputError
from manul.utils import model_files
from manul.utils.validation import check_leaves


class _Discrete(BaseAgent[float]):
    """The base class of both agents, with the set of actions; `settings` are those of `Cats`, without a bandwidth."""

    _plays_windows = False
    tells_levels = False  # they draw single actions, which have no levels

    def __init__(self, *, leaves: int, **settings: Any) -> None:
        super().__init__(**settings)
        self.half_life, self.leaves = self._host.half_life, check_leaves(leaves)
        self._depth = self.leaves.bit_length() - 1

    @property
    def parameters(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        own = {"actions": self.actions, "leaves": self.leaves, "epsilon": self.epsilon, "losses": self.losses}
        return self._with_outcome({**own, "seed": self.seed, "half_life": self.half_life})

    def _narrow(self, within: Within | None) -> Within:
        low, high = self._range.narrow(within, bandwidth=0.0)
        first, last = _core.atoms_inside(self.actions, self.leaves, low, high)
        if first > last:
            rule = f"one of the {self.leaves} actions, which are {self._range.span / self.leaves:g} apart"
            raise InputError(f"within must contain at least {rule}, got ({low:g}, {high:g}).", "within")
        return low, high

    def _explore(self, centre: float, bandwidth: float, within: Within) -> Atoms:
        assert bandwidth == 0
        first, last = _core.atoms_inside(self.actions, self.leaves, *within)
        positions = self._range.low + np.arange(first, last + 1) / self.leaves * self._range.span
        return Atoms.greedy(positions, centre, self.current_epsilon, self._range.span / self.leaves)


_RANGES: dict[str, Any] = {"actions": (-2.0, 8.1), "losses": (-1.0, 3.0)}


@register_agent(
    "discrete-tree",
    settings=("leaves",),
    examples=(
        lambda seed: DiscreteTree(leaves=16, seed=seed),
        lambda seed: DiscreteTree(leaves=8, learner=learners.CoinBetting(target="costs"), seed=seed, **_RANGES),
    ),
    service=False,
)
class DiscreteTree(_Discrete):
    """The paper's dTree: CATS with zero bandwidth.

    >>> agent = DiscreteTree(actions=(0.0, 32.0), leaves=8, seed=7)
    >>> decision = agent.decide([0.3, 1.2])
    >>> decision.action, round(decision.density * 4, 5)
    (0.0, 0.95625)
    """

    def __init__(
        self,
        *,
        learner: learners.NodeLearner = learners.CoinBetting(target="margin"),  # noqa: B008 - frozen
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        learners.native(learner)
        self.learner = learner

    @property
    def parameters(self) -> dict[str, Any]:
        return {**super().parameters, "learner": self.learner}

    def _saved_settings(self) -> model_files.Parameters:
        return {**self.parameters, "learner": learners.describe(self.learner)}

    @classmethod
    def _from_parameters(cls, parameters: model_files.Parameters) -> Self:
        return cls(learner=learners.from_description(parameters.pop("learner")), **parameters)

    def _make_player(self, width: int) -> _core.Player:
        learner = learners.native(self.learner)
        return _core.DiscreteTreePlayer(width=width, depth=self._depth, learner=learner, **self._player_settings)


@register_agent(
    "discrete-linear",
    settings=("leaves",),
    examples=(
        lambda seed: DiscreteLinear(leaves=16, epsilon=Fading(first=0.5, last=0.05, rounds=20), seed=seed),
        lambda seed: DiscreteLinear(leaves=8, seed=seed, **_RANGES),
    ),
    service=False,
)
class DiscreteLinear(_Discrete):
    """The paper's dLinear: one linear cost model per action, learned from doubly robust costs.

    >>> agent = DiscreteLinear(actions=(0.0, 32.0), leaves=8, seed=7)
    >>> decision = agent.decide([0.3, 1.2])
    >>> decision.action, round(decision.density * 4, 5)
    (0.0, 0.95625)
    """

    def _make_player(self, width: int) -> _core.Player:
        return _core.DiscreteLinearPlayer(width=width, depth=self._depth, **self._player_settings)
