"""The loss of a regression that knows the target of each training row: a bound for agents, which only see losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manul.utils.validation import Floats
from manul.worlds.regression import LossName

Matrix = npt.NDArray[np.float32]
LEAST_ROWS, FOLDS = 20, 5
MOST_FOLDED, MOST_ROWS = 5_000, 100_000  # rows of which all folds are held out in turn, and rows used at all


class Predictions(NamedTuple):
    """Predictions for rows that were held out, the numbers of these rows, and the model."""

    values: Floats
    rows: npt.NDArray[np.intp]
    model: str


def held_out_predictions(contexts: Matrix, targets: Floats, loss: LossName, seed: int = 0) -> Predictions | None:
    """Predict targets of held-out rows by a regression trained on the others; None if there are too few rows.

    The model is scikit-learn's gradient boosting if it is installed, and otherwise linear.
    """
    if len(targets) < LEAST_ROWS:
        return None
    order = np.random.default_rng(seed).permutation(len(targets))[:MOST_ROWS]
    folds = np.array_split(order, FOLDS)
    held_out = folds if len(order) <= MOST_FOLDED else folds[:1]
    model, fit = _model(loss)
    values = [fit(contexts[(train := np.setdiff1d(order, fold))], targets[train], contexts[fold]) for fold in held_out]
    return Predictions(np.concatenate(values), np.concatenate(held_out), model)


Fit = Callable[[Matrix, Floats, Matrix], Floats]


def _model(loss: LossName) -> tuple[str, Fit]:
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
        from threadpoolctl import threadpool_limits
    except ImportError:
        return "linear", _fit_linear

    def fit(contexts: Matrix, targets: Floats, held_out: Matrix) -> Floats:
        if not contexts.shape[1]:  # scikit-learn needs a column
            return _fit_linear(contexts, targets, held_out)
        with threadpool_limits(1):  # its threads wait for each other, for minutes on a busy machine
            model = HistGradientBoostingRegressor(loss=f"{loss}_error", random_state=0).fit(contexts, targets)
            predicted: Floats = model.predict(held_out)
        return predicted

    return "gradient boosting", fit


def _fit_linear(contexts: Matrix, targets: Floats, held_out: Matrix) -> Floats:
    rows, others = (np.column_stack([np.ones(len(each)), each]).astype(np.float64) for each in (contexts, held_out))
    scale = np.maximum(np.abs(rows).max(axis=0), 1e-12)
    weights = np.linalg.lstsq(rows / scale, targets, rcond=None)[0]
    predicted: Floats = (others / scale) @ weights
    return predicted
