"""CATS, Algorithm 1 of the paper: a tree of small learners, smoothing, and epsilon-greedy exploration."""

from __future__ import annotations

from typing import Any, Self

from manul import _core
from manul.actions.decision import Within
from manul.actions.ranges import Actions
from manul.actions.schedules import Epsilon, Fading
from manul.agents import learners
from manul.agents.agent_registry import register_agent
from manul.agents.base import BaseAgent
from manul.outcomes import Outcome
from manul.utils import model_files
from manul.utils.validation import check_bandwidth, check_leaves, check_whole_number


@register_agent(
    "cats",
    settings=("leaves", "bandwidth", "half_life"),
    examples=(
        lambda seed: Cats(leaves=16, bandwidth=1 / 8, seed=seed),
        lambda seed: Cats(leaves=64, bandwidth=0.7, actions=(-2.0, 8.0), losses=(-1.0, 3.0), seed=seed),
        lambda seed: Cats(leaves=8, bandwidth=0.5, seed=seed),
        lambda seed: Cats(leaves=16, bandwidth=1 / 8, epsilon=Fading(first=0.5, last=0.05, rounds=20), seed=seed),
        lambda seed: Cats.paper(leaves=32, bandwidth=1 / 8, seed=seed),
        lambda seed: Cats.paper(
            leaves=32, bandwidth=2.0, actions=(0.0, 32.0), learner=learners.CoinBetting(target="margin"), seed=seed
        ),
        lambda seed: Cats.paper(leaves=32, bandwidth=1 / 8, learner=learners.AdaGrad(loss="squared"), seed=seed),
        lambda seed: Cats.paper(leaves=32, bandwidth=1 / 8, learner=learners.AdaGrad(loss="logistic"), seed=seed),
    ),
)
class Cats(BaseAgent[float]):
    """A tree that routes a context to one of its leaves and chooses an action within a bandwidth of the leaf's action.

    `actions` are (low, high). The number of `leaves` is a power of two. The `bandwidth` is the half-width of the window
    around an action, in its units. `epsilon`, a number or a schedule such as `manul.schedules.Fading()`, is the share
    of decisions that explore the whole range. `losses` or `rewards` is the range of what is learned, (low, high), or an
    `outcome` says it. The same `seed` and input give the same decisions. The weights of named contexts are in hash
    tables of 2^`table_bits` entries, for any number of names and leaves. After `half_life` rounds, old evidence counts
    half.

    >>> agent = Cats(actions=(0.0, 32.0), leaves=1024, bandwidth=2.0, seed=7)
    >>> decision = agent.decide([0.3, 1.2])
    >>> agent.learn([0.3, 1.2], decision, loss=0.25)
    """

    def __init__(
        self,
        *,
        actions: Within = (0.0, 1.0),
        leaves: int,
        bandwidth: float,
        epsilon: Epsilon = 0.05,
        losses: Within | None = None,
        rewards: Within | None = None,
        outcome: Outcome | None = None,
        seed: int = 0,
        half_life: float | None = None,
        table_bits: int = 20,
    ) -> None:
        outcome = Outcome.of(losses=losses, rewards=rewards, outcome=outcome)
        super().__init__(actions=actions, outcome=outcome, epsilon=epsilon, seed=seed, half_life=half_life)
        check_whole_number("table_bits", table_bits, 10, 28, "Try 20.")
        self.table_bits = table_bits
        self.half_life, self.leaves = self._host.half_life, check_leaves(leaves)
        self.bandwidth = check_bandwidth(bandwidth, Actions(*self.actions))
        self._paper: learners.NodeLearner | None = None

    @classmethod
    def paper(cls, *, learner: learners.NodeLearner = learners.CoinBetting(target="costs"), **settings: Any) -> Self:  # noqa: B008 - frozen
        """The paper to the letter: leaf i at i/K, raw contexts, costs without a baseline.

        The `learner` is one of `manul.learners`; `settings` are those of `Cats`.

        >>> Cats.paper(leaves=8, bandwidth=1/8)
        Cats.paper(actions=(0.0, 1.0), leaves=8, ..., learner=CoinBetting(target='costs'))
        """
        agent = cls(**settings)
        learners.native(learner)
        agent._paper = learner
        return agent

    def _saved_settings(self) -> model_files.Parameters:
        return {**self.parameters, "paper": None if self._paper is None else learners.describe(self._paper)}

    @classmethod
    def _from_parameters(cls, parameters: model_files.Parameters) -> Self:
        learner = parameters.pop("paper")
        if learner is None:
            return super()._from_parameters(parameters)
        return cls.paper(learner=learners.from_description(learner), **parameters)

    @property
    def _narrowest_bandwidth(self) -> float:
        return self.bandwidth

    def _make_named_player(self) -> _core.Player:
        if self._paper is not None:
            named: _core.Player = super()._make_named_player()
            return named
        return _core.CatsPlayer(**self._settings(0), bits=self.table_bits)

    def _make_player(self, width: int) -> _core.Player:
        if self._paper is None:
            return _core.CatsPlayer(**self._settings(width))
        learner = learners.native(self._paper)
        return _core.PaperCatsPlayer(**self._settings(width), offset=0.0, learner=learner)

    def _settings(self, width: int) -> dict[str, Any]:
        tree = {"depth": self.leaves.bit_length() - 1, "bandwidth": self.bandwidth}
        return {"width": width, **tree, **self._player_settings}

    def __repr__(self) -> str:
        if self._paper is None:
            return super().__repr__()
        return super().__repr__().replace("Cats(", "Cats.paper(", 1)[:-1] + f", learner={self._paper!r})"


register_agent("paper", settings=("leaves", "bandwidth"), service=False)(Cats.paper)
