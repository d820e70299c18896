"""The built-in density model of logs that have no densities: a model of the logged actions given the context.

The model is a classifier of logged against uniform actions: if half of the actions are uniform, the odds that an action was
logged are its density relative to a uniform policy. The critic of `Auto` learns it, so named contexts, text and missing
values work. Its predictions for examples that it has not learned yet are calibrated by isotonic regression.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manul.actions.decision import Decisions
from manul.agents.auto import Auto, as_critic
from manul.logs.density_models import DEFAULT, register_density_model, select
from manul.utils.validation import Floats

MOST_ROWS = 50_000  # to train on; more rows of a log change the model little
LEAST, MOST = 0.005, 0.98  # the probabilities that an action was logged are clipped to these
FLOOR = 0.02  # the share of the uniform density, which bounds the weights
# The examples are learned in chunks; the later ones calibrate before they are learned.
_CHUNKS, _FIRST_CALIBRATED = 16, 6
_UNIFORM = 4  # uniform actions per logged action, to calibrate
_BINS = 64  # of the calibration


class CriticDensity:
    """A density model: a critic that tells logged actions, as "loss" 1, from uniform ones, as 0, and its calibration.

    `knots` are predictions and, in the second row, the probabilities that stand for them.

    >>> rows = np.zeros((2000, 1), np.float32)
    >>> model = fit_critic(rows, np.random.default_rng(0).uniform(0.0, 0.5, 2000), np.tile([0.0, 1.0], (2000, 1)), 0)
    >>> low, high = model.densities(rows[:1], np.array([[0.15, 0.75]]), np.array([[0.0, 1.0]]))[0].tolist()
    >>> 1.5 < low < 2.5, high < 0.2
    (True, True)
    """

    def __init__(self, critic: Auto, knots: Floats) -> None:
        self.critic, self.knots = critic, knots

    def densities(self, contexts: Any, actions: Floats, ranges: Floats) -> Floats:
        """The density of one action per context, or of a row of actions per context."""
        spans = ranges[:, 1] - ranges[:, 0]
        return self.relative(contexts, actions) / (spans if actions.ndim == 1 else spans[:, np.newaxis])

    def relative(self, contexts: Any, actions: Floats) -> Floats:
        likely = np.interp(self.critic.predict_losses(contexts, actions), *self.knots)
        likely = np.clip(likely, LEAST, MOST)
        return (1 - FLOOR) * likely / (1 - likely) + FLOOR


@register_density_model(DEFAULT)
def fit_critic(contexts: Any, actions: Floats, ranges: Floats, seed: int) -> CriticDensity:
    """Train a critic on logged and on as many uniform actions, in random order, and calibrate it."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(actions))[:MOST_ROWS]
    examples = rng.permutation(2 * len(chosen))
    rows, logged = chosen[examples % len(chosen)], examples < len(chosen)
    lows, spans = ranges[:, 0], ranges[:, 1] - ranges[:, 0]
    points = np.where(logged, actions[rows], lows[rows] + rng.random(len(rows)) * spans[rows])
    span = float(lows.min()), float(ranges[:, 1].max())
    critic = as_critic(Auto(actions=span, losses=(0.0, 1.0), seed=seed))
    predictions, labels = [], []
    for number, chunk in enumerate(np.array_split(np.arange(len(rows)), _CHUNKS)):
        found = rows[chunk[logged[chunk]]]
        if number >= _FIRST_CALIBRATED and len(found):
            uniform = lows[found, np.newaxis] + rng.random((len(found), _UNIFORM)) * spans[found, np.newaxis]
            both = np.column_stack([actions[found], uniform])
            predictions.append(critic.predict_losses(select(contexts, found), both).ravel())
            labels.append(np.tile([1.0, *[0.0] * _UNIFORM], len(found)))
        if len(chunk):
            decisions = Decisions(points[chunk], np.ones(len(chunk)))
            critic.learn_many(select(contexts, rows[chunk]), decisions, logged[chunk].astype(np.float64))
    if not predictions:
        return CriticDensity(critic, np.array([[0.0, 1.0], [0.0, 1.0]]))
    return CriticDensity(critic, calibrate(np.concatenate(predictions), np.concatenate(labels)))


def calibrate(predictions: Floats, labels: Floats) -> Floats:
    """Ascending predictions, and for each the probability of label 1 if it had half of the weight: isotonic regression.

    >>> calibrate(np.array([0.1, 0.2, 0.6, 0.9]), np.array([0.0, 1.0, 0.0, 1.0])).tolist()
    [[0.1, 0.4, 0.9], [0.0, 0.5, 1.0]]
    """
    order = np.argsort(predictions, kind="stable")
    weights = np.where(labels == 1, 1.0, labels.sum() / max((1 - labels).sum(), 1.0))
    blocks: list[Floats] = []  # sums of weights, weighted predictions and weighted labels
    for part in np.array_split(order, min(_BINS, len(order))):
        terms = np.array([np.ones(len(part)), predictions[part], labels[part]]) * weights[part]
        blocks.append(terms.sum(axis=1))
        while len(blocks) > 1 and blocks[-2][2] * blocks[-1][0] >= blocks[-1][2] * blocks[-2][0]:
            last = blocks.pop()
            blocks[-1] = blocks[-1] + last
    sums = np.array(blocks).T
    knots: Floats = sums[1:] / sums[0]
    return knots
