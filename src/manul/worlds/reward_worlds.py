"""Worlds of prices, doses and bids: rewards in their own units, without a stated range, and a known best policy.

The reward of a price or a bid has a cliff, which noise blurs; that of a dose is smooth; that of a bid has heavy tails.
The loss of an action is its negative reward.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.contexts import conversion
from manul.utils.validation import Floats, check_shape
from manul.worlds.synthetic import random_generator, scalar_products, unit
from manul.worlds.world import Contexts

GRID = 1025  # actions among which the best policy and the best constant choose


@dataclass(frozen=True, eq=False, kw_only=True)
class RewardWorld:
    """A reward for an action in each round, and the mean rewards of one action per round given the contexts.

    >>> world = RewardWorld(
    ...     contexts=np.ones((2, 1), np.float32),
    ...     actions=(0.0, 8.0),
    ...     reward=lambda number, action: -((action - 3.0) ** 2),
    ...     mean_rewards=lambda actions: -((actions - np.array([3.0, 5.0])) ** 2),
    ... )
    >>> world.optimum(), world.best_constant(), world.regret([4.0, 4.0])
    (0.0, -1.0, 1.0)
    """

    contexts: Contexts
    actions: Within
    reward: Callable[[int, float], float]
    mean_rewards: Callable[[Floats], Floats]

    def __len__(self) -> int:
        return len(self.contexts)

    def loss(self, number: int, action: float) -> float:
        """The negative reward of an action in a round.

        >>> pricing(rounds=3).loss(0, 2.0)
        -2.0
        """
        return -self.reward(number, action)

    def optimum(self) -> float:
        """The mean reward of the best policy, without exploration, of 1025 actions."""
        best = np.full(len(self), -np.inf)
        for action in self._grid():
            best = np.maximum(best, self._rewards_of_constant(action))
        return float(best.mean())

    def best_constant(self) -> float:
        """The mean reward of the best action for all contexts, of 1025 actions."""
        return max(float(self._rewards_of_constant(action).mean()) for action in self._grid())

    def regret(self, chosen: npt.ArrayLike) -> float:
        """The mean reward that the chosen actions, one per round, are expected to miss.

        >>> pricing(rounds=2).regret([60.0, 60.0]) > 10
        True
        """
        actions: Floats = np.asarray(chosen, dtype=np.float64)
        check_shape("chosen", actions, len(self))
        return self.optimum() - float(self.mean_rewards(actions).mean())

    def _rewards_of_constant(self, action: float) -> Floats:
        return self.mean_rewards(np.full(len(self), action))

    def _grid(self) -> list[float]:
        actions: list[float] = np.linspace(*self.actions, GRID).tolist()
        return actions


def pricing(*, rounds: int, width: int = 5, seed: int = 0) -> RewardWorld:
    """Prices up to 60: a customer pays any price up to a limit, which depends on the context and on logistic noise.

    The limit is around 20, a fifth more or less by context. The noise blurs this cliff by a tenth of the limit.

    >>> world = pricing(rounds=1000)
    >>> sorted({world.reward(0, price) for price in (1.0, 2.0, 59.0)})
    [0.0, 1.0, 2.0]
    """
    rng = random_generator(rounds=rounds, width=width, seed=seed)
    contexts = conversion.matrix(rng.standard_normal((rounds, width)))
    willingness = 20 * np.exp(0.2 * _score(rng, contexts))
    spread = 0.1 * willingness
    limits = willingness + spread * rng.logistic(size=rounds)

    def reward(number: int, price: float) -> float:
        return price if price <= limits[number] else 0.0

    def mean_rewards(prices: Floats) -> Floats:
        return prices * _logistic((willingness - prices) / spread)

    return RewardWorld(contexts=contexts, actions=(0.0, 60.0), reward=reward, mean_rewards=mean_rewards)


def dosing(*, rounds: int, width: int = 5, seed: int = 0) -> RewardWorld:
    """Doses up to 100: the benefit saturates (the Emax model), side effects grow with the square; both depend on the context.

    >>> world = dosing(rounds=1000)
    >>> [float(world.mean_rewards(np.full(1000, dose)).mean().round(1)) for dose in (0.0, 50.0, 100.0)]
    [0.0, 4.8, 2.2]
    """
    rng = random_generator(rounds=rounds, width=width, seed=seed)
    contexts = conversion.matrix(rng.standard_normal((rounds, width)))
    half_effect = 30 * np.exp(_score(rng, contexts))  # the dose of half of the largest benefit
    harm = 3 * np.exp(_score(rng, contexts))
    noise = 0.5 * rng.standard_normal(rounds)

    def mean_rewards(doses: Floats) -> Floats:
        rewards: Floats = 10 * doses / (doses + half_effect) - harm * (doses / 100) ** 2
        return rewards

    def reward(number: int, dose: float) -> float:
        benefit = 10 * dose / (dose + half_effect[number])
        return float(benefit - harm[number] * (dose / 100) ** 2 + noise[number])

    return RewardWorld(contexts=contexts, actions=(0.0, 100.0), reward=reward, mean_rewards=mean_rewards)


def bidding(*, rounds: int, width: int = 5, seed: int = 0) -> RewardWorld:
    """First-price auctions with bids up to 40: whoever bids at least the highest other bid gets the value minus the bid.

    The mean value depends on the context; values around it have a Pareto tail with exponent 2, so their variance
    is infinite. The highest other bid has a log-logistic distribution, whose median also depends on the context.

    >>> world = bidding(rounds=1000)
    >>> world.reward(0, 0.0), world.best_constant() > 1
    (0.0, True)
    """
    rng = random_generator(rounds=rounds, width=width, seed=seed)
    contexts = conversion.matrix(rng.standard_normal((rounds, width)))
    mean_value = 10 * np.exp(0.2 * _score(rng, contexts))
    median_bid = 0.6 * mean_value * np.exp(0.1 * _score(rng, contexts))
    values = mean_value * (1 + rng.pareto(2, rounds)) / 2
    other_bids = median_bid * np.exp(rng.logistic(size=rounds) / 5)

    def reward(number: int, bid: float) -> float:
        return float(values[number] - bid) if bid >= other_bids[number] else 0.0

    def mean_rewards(bids: Floats) -> Floats:
        chance = 1 / (1 + (median_bid / np.maximum(bids, 1e-9)) ** 5)
        return (mean_value - bids) * chance

    return RewardWorld(contexts=contexts, actions=(0.0, 40.0), reward=reward, mean_rewards=mean_rewards)


def _score(rng: np.random.Generator, contexts: Contexts) -> Floats:
    """Project the contexts on a random direction; the result is standard normal."""
    direction = rng.standard_normal((contexts.shape[1],))
    return scalar_products(contexts, unit(direction))


def _logistic(values: Floats) -> Floats:
    return 0.5 * (1 + np.tanh(values / 2))
