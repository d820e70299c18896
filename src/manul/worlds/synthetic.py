"""Regression worlds that are drawn, not measured."""

from __future__ import annotations

import numpy as np

from manul.worlds.regression import Regression


def linear(*, rounds: int, width: int = 20, seed: int = 0) -> Regression:
    """A linear target with a little noise, clipped to [0, 1]; contexts are standard normal.

    >>> linear(rounds=3, width=2).contexts.shape
    (3, 2)
    """
    rng = np.random.default_rng(seed)
    direction = rng.standard_normal(width)
    direction /= np.linalg.norm(direction)
    contexts = rng.standard_normal((rounds, width))
    outcome = contexts @ direction + 0.1 * rng.standard_normal(rounds)
    return Regression(contexts, np.clip(0.5 + outcome / (6 * np.sqrt(1.01)), 0, 1))


def ds(*, rounds: int, width: int = 5, seed: int = 0) -> Regression:
    """The synthetic set of the paper's experiments: contexts N(5, 1), weights N(0, 1/width), noise 0.2, scaled to [0, 1].

    >>> targets = ds(rounds=100).targets
    >>> float(targets.min()), float(targets.max())
    (0.0, 1.0)
    """
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal(width) / np.sqrt(width)
    contexts = rng.normal(5.0, 1.0, (rounds, width))
    outcome = contexts @ weights + 0.2 * rng.standard_normal(rounds)
    low, high = outcome.min(), outcome.max()
    return Regression(contexts, (outcome - low) / (high - low))
