"""What somebody with scikit-learn writes who knows the formula: a regression of the part, times what it is worth.

A logistic regression of "bought" or "won", or a Poisson regression of the units sold, on the context, the action and their
products; for bids also a linear regression of the value of won auctions. The best action of a grid is played, and random
ones at first and as often as Auto explores.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from scipy.special import expit

from benchmarks.markets import Market, Parts
from benchmarks.simulated_worlds import Array

FIRST, GROWTH = 15, 1.15  # rounds with random actions; fit again when the rounds have grown so much
ACTIONS = 97


def play(market: Market, seed: int) -> Array:
    """The actions in all rounds."""
    rng = np.random.default_rng(seed)
    grid = np.linspace(*market.actions, ACTIONS + 1)[1:]  # a price of 0 has no logarithm
    actions, parts, due, rewards = np.empty(len(market)), list[Parts](), FIRST, None
    for number, row in enumerate(market.rows):
        if number >= due:
            rewards, due = fit(market, actions[:number], parts), int(GROWTH * number) + 1
        explores = rewards is None or rng.random() < max(0.05 / (1 + number / 200), 0.002)
        actions[number] = rng.choice(grid) if explores else grid[np.argmax(rewards(row, grid))]
        parts.append(market.parts(float(actions[number]), number))
    return actions


def fit(market: Market, actions: Array, parts: list[Parts]) -> Any:
    """The expected rewards of actions by context, or None while all parts are equal."""
    from sklearn.linear_model import LogisticRegression, PoissonRegressor, Ridge

    counts, rows = np.array([float(part[market.kind]) for part in parts]), market.rows[: len(actions)]
    if len(set(counts)) < 2:
        return None
    middle, logarithmic = np.mean(market.actions), market.kind != "bought"

    def features(rows: Array, actions: Array) -> Array:
        scaled = (np.log(actions / middle) if logarithmic else 4 * (actions / middle - 1))[:, None]
        return np.hstack([rows, scaled, rows * scaled])

    poisson, logistic = PoissonRegressor(alpha=0.01, solver="newton-cholesky"), LogisticRegression(max_iter=300)
    model = poisson if market.kind == "units" else logistic
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few rounds may not converge
        model.fit(features(rows, actions), counts)
    won = counts > 0
    values = Ridge(10.0).fit(rows[won], [part["value"] for part in parts if part["won"]]) if "won" in parts[0] else None

    weights, level = np.ravel(model.coef_), float(np.ravel(model.intercept_)[0])

    def rewards(row: Array, grid: Array) -> Array:
        score = features(np.tile(row, (len(grid), 1)), grid) @ weights + level
        margin: Array = grid - market.cost if values is None else values.predict(row[None])[0] - grid
        return margin * (np.exp(score) if market.kind == "units" else expit(score))

    return rewards
