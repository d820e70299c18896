"""What others would use for a price or a bid: bayesianbandits, botorch, and a notebook with Thompson sampling.

They choose among 32 actions. The notebook counts purchases at ten prices and ignores the context; bayesianbandits has a Bayesian
logistic regression of "bought" or "won" on the context, the action and their products. Both know the formula; a bidder
takes the mean value of the auctions won so far. botorch has a Gaussian process of the reward, without the formula.
"""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np

from benchmarks.markets import Market, Parts
from benchmarks.simulated_worlds import Array

ARMS = 10  # of the notebook, which learns each alone
ACTIONS, GP_ROUNDS, FIRST, GROWTH = 32, 300, 10, 1.33  # a process is too slow for more rounds


def grid(market: Market, count: int = ACTIONS) -> Array:
    """Actions at equal distances; the lowest one, which may be a price of 0, is left out."""
    return np.linspace(*market.actions, count + 1)[1:]


class Margin:
    """What a purchase or a won auction is worth at each action; of values, the mean so far."""

    def __init__(self, market: Market, actions: Array) -> None:
        self.market, self.actions, self.values = market, actions, [float(np.mean(market.actions))]

    def add(self, parts: Parts) -> None:
        if parts.get("won"):
            self.values.append(parts["value"])

    def __call__(self) -> Array:
        if self.market.kind == "won":
            return np.mean(self.values) - self.actions
        return self.actions - self.market.cost


def play_thompson(market: Market, seed: int) -> Array:
    """Thompson sampling of the share of buyers at each price, with Beta(1, 1) priors."""
    rng, actions = np.random.default_rng(seed), grid(market, ARMS)
    margin, yes, no, chosen = Margin(market, actions), np.ones(ARMS), np.ones(ARMS), np.empty(len(market), int)
    for number in range(len(market)):
        arm = chosen[number] = np.argmax(margin() * rng.beta(yes, no))
        parts = market.parts(float(actions[arm]), number)
        margin.add(parts)
        (yes if parts[market.kind] else no)[arm] += 1
    return actions[chosen]


def play_bayesianbandits(market: Market, seed: int) -> Array:
    """Thompson sampling of a Bayesian logistic regression."""
    library = _library("bayesianbandits")
    actions, middle = grid(market), float(np.mean(market.actions))
    margin = Margin(market, actions)

    def features(rows: Any, arms: Any) -> Array:
        scaled = 4 * (actions[list(arms)] / middle - 1)
        own = np.column_stack([np.ones(len(rows)), rows])  # contexts by features
        return np.concatenate([np.repeat(own[:, :, None], len(scaled), 2), own[:, :, None] * scaled], axis=1)

    agent = library.LipschitzContextualAgent(
        [library.Arm(arm) for arm in range(ACTIONS)],
        library.ThompsonSampling(),
        library.FunctionArmFeaturizer(features),
        library.BayesianGLM(alpha=0.3, link="logit"),
        batch_reward_function=lambda samples, arms: margin()[list(arms)][:, None, None] * samples,
        random_seed=seed,
    )
    chosen = np.empty(len(market), int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the posterior of single rounds need not converge
        for number, row in enumerate(market.rows):
            (chosen[number],) = agent.pull(row[None])
            parts = market.parts(float(actions[chosen[number]]), number)
            margin.add(parts)
            agent.update(row[None], np.array([float(parts[market.kind])]))
    return actions[chosen]


def play_botorch(market: Market, seed: int) -> Array:
    """botorch's Gaussian process of the reward with its own priors, and the highest upper confidence bound."""
    torch, models, fitting, likelihoods = map(_library, ("torch", "botorch.models", "botorch.fit", "gpytorch.mlls"))
    rng, actions, rounds = np.random.default_rng(seed), grid(market), min(len(market), GP_ROUNDS)
    shares = (actions - market.actions[0]) / (market.actions[1] - market.actions[0])
    contexts = np.clip(market.rows / (market.rows.std(0) + 1e-9) / 6 + 0.5, 0, 1)
    inputs, rewards, chosen = np.empty((rounds, contexts.shape[1] + 1)), np.empty((rounds, 1)), np.empty(rounds, int)
    fitted, due = None, FIRST
    for number in range(rounds):
        pairs = np.column_stack([np.tile(contexts[number], (ACTIONS, 1)), shares])
        arm = rng.integers(ACTIONS)
        if number >= FIRST and np.ptp(rewards[:number]) > 0:
            values = (rewards[:number] - rewards[:number].mean()) / rewards[:number].std()
            model = models.SingleTaskGP(torch.tensor(inputs[:number]), torch.tensor(values), outcome_transform=None)
            if fitted is None or number >= due:
                fitting.fit_gpytorch_mll(likelihoods.ExactMarginalLogLikelihood(model.likelihood, model))
                fitted, due = model.state_dict(), int(GROWTH * number) + 2
            model.load_state_dict(fitted)
            with torch.no_grad():
                posterior = model.eval().posterior(torch.tensor(pairs))
                arm = int((posterior.mean[:, 0] + posterior.variance[:, 0].sqrt()).argmax())
        chosen[number], inputs[number] = arm, pairs[arm]
        rewards[number] = -market.loss(float(actions[arm]), number)
    return actions[chosen]


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(f"{name} is not installed. Install it: pip install 'manul[rivals]'") from error


RIVALS = {"Thompson notebook": play_thompson, "bayesianbandits": play_bayesianbandits, "botorch": play_botorch}
