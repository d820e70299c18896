"""Epsilon-greedy with smoothing over any policy class (the paper's appendix on general policy classes)."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence, Sized
from typing import Any, Self

from manul import _core
from manul.actions.decision import Within
from manul.actions.ranges import Actions
from manul.actions.schedules import Epsilon, Fading
from manul.agents.agent_registry import register_agent
from manul.agents.base import BaseAgent
from manul.agents.player_host import COUNTERS
from manul.agents.policy_player import PolicyPlayer
from manul.errors import ParameterError
from manul.outcomes import Outcome
from manul.policies import theory
from manul.policies.constant import Constant
from manul.policies.native_policies import Linear, NativePolicies, Tree
from manul.policies.policy_class import PolicyClass, check_policies, describe, from_description, is_saveable
from manul.utils import model_files
from manul.utils.validation import check_bandwidth

MOST_BANDWIDTHS = 10_000  # each has a learner of its own


class _PolicyClassAgent(BaseAgent[float]):
    """The base class of both algorithms: a policy class, and how it is saved."""

    policies: PolicyClass

    def _saved_settings(self) -> model_files.Parameters:
        return {**self.parameters, "policies": describe(self.policies)}

    @classmethod
    def _from_parameters(cls, parameters: model_files.Parameters) -> Self:
        return super()._from_parameters({**parameters, "policies": from_description(parameters["policies"])})

    def __reduce__(self) -> tuple[Any, ...]:
        return super().__reduce__() if is_saveable(self.policies) else model_files.by_attributes(self)

    @property
    @abstractmethod
    def _learner_bandwidths(self) -> tuple[float, ...]:
        """The bandwidth of each learner."""

    def _fits(self, width: int, arrays: model_files.Arrays) -> bool:
        if isinstance(self.policies, NativePolicies) and not super()._fits(width, arrays):
            return False
        if isinstance(self, SmoothedGreedy) and isinstance(self.policies, NativePolicies):
            return True
        saved = model_files.split_by_prefix({name: array for name, array in arrays.items() if name not in COUNTERS})
        if saved.keys() != {"", *map(str, range(len(self._learner_bandwidths)))}:
            return False
        # One at a time: all together may exceed the memory.
        for index, bandwidth in enumerate(self._learner_bandwidths):
            self.policies.start(width, self.actions, bandwidth).restore(saved[str(index)])
        return True


_RANGES: dict[str, Any] = {"actions": (-2.0, 8.0), "losses": (-1.0, 3.0)}


@model_files.saveable(
    lambda seed: SmoothedGreedy(policies=Linear(), bandwidth=1 / 16, seed=seed),
    lambda seed: SmoothedGreedy(policies=Linear(), bandwidth=0.7, seed=seed, **_RANGES),
    lambda seed: SmoothedGreedy(policies=Tree(leaves=16), bandwidth=1 / 2, seed=seed),
    lambda seed: SmoothedGreedy(policies=Constant(), bandwidth=2.0, actions=(0.0, 32.0), losses=(-1.0, 3.0), seed=seed),
)
class SmoothedGreedy(_PolicyClassAgent):
    """Chooses near the action of the policy with the lowest smoothed loss so far (Algorithm 6).

    >>> import manul
    >>> agent = SmoothedGreedy(policies=manul.policies.Linear(), actions=(0.0, 32.0), bandwidth=2.0, seed=7)
    >>> decision = agent.decide([0.3, 1.2])
    >>> agent.learn([0.3, 1.2], decision, loss=0.25)
    """

    def __init__(
        self,
        *,
        policies: PolicyClass,
        bandwidth: float,
        epsilon: Epsilon = 0.05,
        actions: Within = (0.0, 1.0),
        losses: Within | None = None,
        rewards: Within | None = None,
        outcome: Outcome | None = None,
        seed: int = 0,
    ) -> None:
        outcome = Outcome.of(losses=losses, rewards=rewards, outcome=outcome)
        super().__init__(actions=actions, outcome=outcome, epsilon=epsilon, seed=seed)
        self.policies = check_policies(policies)
        self.bandwidth = check_bandwidth(bandwidth, Actions(*self.actions))

    @property
    def parameters(self) -> dict[str, Any]:
        return self._with_outcome({"policies": self.policies, "bandwidth": self.bandwidth, **self._common})

    @property
    def _narrowest_bandwidth(self) -> float:
        return self.bandwidth

    @property
    def _learner_bandwidths(self) -> tuple[float, ...]:
        return (self.bandwidth,)

    def _make_player(self, width: int) -> _core.Player | PolicyPlayer:
        if isinstance(self.policies, NativePolicies):
            return self.policies.player(width=width, bandwidth=self.bandwidth, **self._player_settings)
        learner = self.policies.start(width, self.actions, self.bandwidth)
        return PolicyPlayer([learner], [self.bandwidth], _no_penalty, **self._common)


@model_files.saveable(
    lambda seed: ParetoGreedy(policies=Constant(choices=65), bandwidths=(1 / 2, 1 / 8), seed=seed),
    lambda seed: ParetoGreedy(policies=Linear(), epsilon=Fading(first=0.5, last=0.05, rounds=20), seed=seed, **_RANGES),
    lambda seed: ParetoGreedy(
        policies=Tree(leaves=32), bandwidths=(1.0, 1 / 8), horizon=300, log_class_size=20.0, seed=seed
    ),
)
class ParetoGreedy(_PolicyClassAgent):
    """SmoothedGreedy with one learner per bandwidth, chosen by structural risk minimisation (Algorithm 7).

    With a `horizon`, the penalty of a bandwidth is the paper's P(t, h), which stays constant after the horizon; without
    one, it is the penalty of the paper's experiments, with their `constant`. `log_class_size` is the natural logarithm of
    the number of policies; it is required with a horizon if the class has no length. Losses are estimated by progressive
    validation, or on all past rounds if the class can do that (Finite and Constant).

    >>> import manul
    >>> agent = ParetoGreedy(policies=manul.policies.Constant(), bandwidths=(1/2, 1/8, 1/32))
    >>> agent.chosen
    0.5
    >>> for _ in range(2000):
    ...     decision = agent.decide(None)
    ...     agent.learn(None, decision, min(1.0, 4 * abs(decision.action - 0.7)))
    >>> agent.chosen
    0.125
    """

    def __init__(
        self,
        *,
        policies: PolicyClass,
        bandwidths: Sequence[float] | theory.BandwidthGrid | None = None,
        epsilon: Epsilon = 0.05,
        actions: Within = (0.0, 1.0),
        losses: Within | None = None,
        rewards: Within | None = None,
        outcome: Outcome | None = None,
        constant: float = 1.0,
        horizon: int | None = None,
        failure: float = 0.05,
        log_class_size: float | None = None,
        seed: int = 0,
    ) -> None:
        outcome = Outcome.of(losses=losses, rewards=rewards, outcome=outcome)
        super().__init__(actions=actions, outcome=outcome, epsilon=epsilon, seed=seed)
        self.policies = check_policies(policies)
        self.bandwidths = _check_bandwidths(bandwidths, Actions(*self.actions))
        self.constant, self.horizon, self.failure = constant, horizon, failure
        self.log_class_size = _log_class_size(policies, log_class_size, horizon)
        if self.epsilon == 0:
            raise ParameterError("epsilon must be in (0, 1], got 0. Try 0.05.", "epsilon")
        self._penalty(0.0, 1, self.bandwidths[0])  # checks constant, horizon, failure and log_class_size

    @property
    def parameters(self) -> dict[str, Any]:
        penalty = {"constant": self.constant, "horizon": self.horizon, "failure": self.failure}
        own = {"policies": self.policies, "bandwidths": self.bandwidths, **penalty}
        return self._with_outcome({**own, "log_class_size": self.log_class_size, **self._common})

    @property
    def chosen(self) -> float:
        """The bandwidth in use, which is the widest before the first context."""
        player = self._host.player
        return player.chosen if isinstance(player, PolicyPlayer) else max(self.bandwidths)

    @property
    def _narrowest_bandwidth(self) -> float:
        return min(min(self.bandwidths), self._range.span / 2)

    @property
    def _learner_bandwidths(self) -> tuple[float, ...]:
        return self.bandwidths

    def _make_player(self, width: int) -> PolicyPlayer:
        learners = [self.policies.start(width, self.actions, bandwidth) for bandwidth in self.bandwidths]
        return PolicyPlayer(learners, self.bandwidths, self._penalty, **self._common)

    def _penalty(self, estimate: float, rounds: int, bandwidth: float) -> float:
        share = bandwidth / self._range.span
        if self.horizon is None:
            return theory.off_policy_penalty(
                mean_loss=estimate,
                horizon=rounds,
                bandwidth=share,
                minimum_density=self._schedule.least,
                constant=self.constant,
            )
        return theory.pareto_penalty(
            rounds=rounds if rounds == 1 else min(rounds, self.horizon),
            horizon=self.horizon,
            bandwidth=share,
            epsilon=self._schedule.least,
            log_class_size=self.log_class_size,
            failure=self.failure,
        )


def _no_penalty(*_: float) -> float:
    return 0.0


def _check_bandwidths(bandwidths: Sequence[float] | theory.BandwidthGrid | None, actions: Actions) -> tuple[float, ...]:
    if bandwidths is None:
        return tuple(actions.span / 2**power for power in range(1, 8))
    if not (isinstance(bandwidths, Sized) and 1 <= len(bandwidths) <= MOST_BANDWIDTHS):
        got = len(bandwidths) if isinstance(bandwidths, Sized) else repr(bandwidths)
        raise ParameterError(f"bandwidths must be 1 to {MOST_BANDWIDTHS} numbers, got {got}.", "bandwidths")
    unit = actions.span if isinstance(bandwidths, theory.BandwidthGrid) else 1.0  # the grid is in shares of the range
    limit = actions.span / unit
    for bandwidth in bandwidths:
        if not (isinstance(bandwidth, int | float) and actions.least_bandwidth <= unit * bandwidth <= actions.span):
            raise ParameterError(
                f"bandwidths must be above 0 and at most the length of the range of actions, {limit:g}, got {bandwidth!r}.",
                "bandwidths",
            )
    return tuple(float(unit * bandwidth) for bandwidth in bandwidths)


def _log_class_size(policies: PolicyClass, given: float | None, horizon: int | None) -> float:
    if given is not None:
        return given
    if isinstance(policies, Sized):
        return math.log(len(policies))
    if horizon is not None:
        raise ParameterError(
            f"log_class_size is required with a horizon because {policies!r} has no length. "
            "It is the natural logarithm of the number of policies.",
            "log_class_size",
        )
    return 0.0


@register_agent("linear", settings=("bandwidth",), service=False)
def linear(**settings: Any) -> SmoothedGreedy:
    """A linear policy, learned by gradient descent on the smoothed loss.

    >>> linear(bandwidth=1/16)
    SmoothedGreedy(policies=Linear(rate=0.01), bandwidth=0.0625, ...)
    """
    return SmoothedGreedy(policies=Linear(), **settings)
