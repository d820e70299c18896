"""A critic of thirty lines that a careful user would write: LightGBM predicts the loss, and the best of 64 actions is played.

300 trees, with LightGBM's default settings, predict the loss of a context and an action. They are fitted anew whenever the
number of rounds has grown by half, for the first time after 50 rounds. Between two fits the model does not change, so
all rounds up to the next fit are predicted at once. Actions are drawn from a window around the predicted best action
or, with probability epsilon, from the whole range. All actions are in [0, 1].
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from manul.worlds import ScaledWorld, World

Array = NDArray[np.float64]
Epsilon = float | Callable[[Array], Array]
"""The share of uniform actions: a number, or a function of the numbers of the rounds."""

ACTIONS, BANDWIDTH, FIRST_FIT, GROWTH, TREES = 64, 1 / 64, 50, 1.5, 300


def fading(rounds: Array) -> Array:
    """Exploration that fades from 0.05 to 0.002.

    >>> fading(np.array([0, 1000, 1e6]))
    array([0.05 , 0.025, 0.002])
    """
    return np.maximum(0.002, 0.05 / (1 + rounds / 1000))


def play(world: World | ScaledWorld, *, epsilon: Epsilon, seed: int) -> Array:
    """The loss of each round of a world.

    >>> from manul import worlds
    >>> len(play(worlds.linear(rounds=40), epsilon=0.05, seed=0))
    40
    """
    rng, unit = np.random.default_rng(seed), world.table((0.0, 1.0)) if isinstance(world, ScaledWorld) else world
    rounds = len(world)
    actions, losses = rng.random(rounds), np.empty(rounds)
    share = epsilon(np.arange(rounds)) if callable(epsilon) else np.full(rounds, epsilon)
    exploring = rng.random(rounds) < share
    for first, last in pairwise(fit_rounds(rounds)):
        if first > 0:
            known = np.column_stack([world.contexts[:first], actions[:first]])
            centres = best_actions(fit(known, losses[:first], seed), world.contexts[first:last])
            around = np.clip(centres, BANDWIDTH, 1 - BANDWIDTH) + BANDWIDTH * rng.uniform(-1, 1, last - first)
            actions[first:last] = np.where(exploring[first:last], actions[first:last], around)
        losses[first:last] = [unit.loss(number, actions[number]) for number in range(first, last)]
    return losses


def fit_rounds(rounds: int) -> list[int]:
    """The rounds before which the trees are fitted, between 0 and the number of rounds.

    >>> fit_rounds(200)
    [0, 50, 75, 113, 170, 200]
    """
    ends = [0, FIRST_FIT]
    while ends[-1] < rounds:
        ends.append(int(np.ceil(GROWTH * ends[-1])))
    return [end for end in ends if end < rounds] + [rounds]


def fit(known: Array, losses: Array, seed: int) -> Callable[[Array], Array]:
    """Fit the trees to the contexts with their actions; returns their prediction."""
    try:
        import lightgbm
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError("lightgbm is not installed. Install it: pip install lightgbm") from error
    settings = {"objective": "regression", "num_threads": 1, "verbosity": -1, "seed": seed, "deterministic": True}
    booster = lightgbm.train(settings, lightgbm.Dataset(known, losses), num_boost_round=TREES)
    return lambda rows: np.asarray(booster.predict(rows))


def best_actions(predict: Callable[[Array], Array], contexts: NDArray[np.float32]) -> Array:
    """For each context, of 64 actions, the one whose window has the lowest predicted loss.

    >>> best_actions(lambda rows: abs(rows[:, 0] - rows[:, 1]), np.array([[0.1], [0.75]], np.float32))
    array([0.1015625, 0.7421875])
    """
    candidates, block = (np.arange(ACTIONS) + 0.5) / ACTIONS, 4096
    best = np.empty(len(contexts))
    for first in range(0, len(contexts), block):
        rows = contexts[first : first + block]
        pairs = np.column_stack([np.repeat(rows, ACTIONS, axis=0), np.tile(candidates, len(rows))])
        best[first : first + block] = candidates[_windows(predict(pairs).reshape(-1, ACTIONS)).argmin(axis=1)]
    return best


def _windows(losses: Array) -> Array:
    """The mean loss of the window around each action: its cell and half of each neighbouring one."""
    padded = np.pad(losses, ((0, 0), (1, 1)), mode="edge")
    mean: Array = (padded[:, :-2] + 2 * losses + padded[:, 2:]) / 4
    return mean
