"""A smooth regression for the tests of a log: ridge regression on columns and on random Fourier features of them."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from manul.utils.validation import Floats

WAVES = 100  # random Fourier features: enough for a few columns that matter, and 4,096 rows take some 20 ms
PENALTIES = (1.0, 10.0, 100.0, 1e3, 1e4, 1e6)  # of the squared weights; the last one predicts about the mean
_SCALES = (0.4, 0.8, 1.6)  # of the frequencies, so that both flat and steep functions are found
_FOLDS, _BLOCKS = (
    2,
    16,
)  # rows near each other are in one fold, so that runs of equal contexts are not predicted from themselves
Numbers = npt.NDArray[np.intp]
Flags = npt.NDArray[np.bool_]


class SmoothRegression:
    """Predicts numbers from the rows of a table, whose columns are standardised.

    >>> table = np.random.default_rng(0).random((2000, 2))
    >>> model = SmoothRegression(table)
    >>> model.fit(np.arange(1000), np.sin(5 * table[:1000, 0]))
    >>> float(np.abs(model.predict(np.arange(1000, 2000)) - np.sin(5 * table[1000:, 0])).mean()) < 0.05
    True
    """

    def __init__(self, table: Floats) -> None:
        rng, width = np.random.default_rng(0), table.shape[1]
        spread = table.std(axis=0)
        z = np.clip((table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0), -4, 4)
        frequencies = rng.standard_normal((width, WAVES)) * rng.choice(_SCALES, WAVES) / math.sqrt(max(width, 1))
        self.features = np.hstack([z, np.cos(z @ frequencies + rng.uniform(0, 2 * np.pi, WAVES))])
        self.mean, self.weights = 0.0, np.zeros(self.features.shape[1])

    def fit(self, rows: Numbers, targets: Floats, weights: Floats | None = None) -> None:
        """Fit to some rows; generalised cross-validation chooses the penalty."""
        x, scale = self.features[rows], np.ones(len(rows)) if weights is None else weights
        self.mean = float((scale * targets).sum() / scale.sum())
        y = targets - self.mean
        values, vectors = np.linalg.eigh((x * scale[:, np.newaxis]).T @ x)
        values, projected = np.maximum(values, 0.0), vectors.T @ (x.T @ (scale * y))
        total, best = float((scale * y * y).sum()), math.inf
        for penalty in PENALTIES:
            shrunk = projected / (values + penalty)
            left = total - float((2 * shrunk * projected - shrunk * shrunk * values).sum())
            free = max(1 - float((values / (values + penalty)).sum()) / len(rows), 1e-3)
            if left / free**2 < best:
                best, self.weights = left / free**2, vectors @ shrunk

    def predict(self, rows: Numbers) -> Floats:
        prediction: Floats = self.mean + self.features[rows] @ self.weights
        return prediction

    def held_out_predictions(
        self, rows: Numbers, targets: Floats, usable: Flags | None = None, blocks: int = _BLOCKS
    ) -> Floats:
        """Predictions of each target from some row, by a model of rows in other blocks, of those that are `usable`."""
        fold = np.arange(len(rows)) * blocks // len(rows) % _FOLDS
        predictions = np.empty(len(rows))
        for part in range(_FOLDS):
            train = (fold != part) if usable is None else (fold != part) & usable
            self.fit(rows[train], targets[train])
            predictions[fold == part] = self.predict(rows[fold == part])
        return predictions


def z_score(differences: Floats) -> float:
    """The mean divided by its standard error, from blocks of neighbouring rows, which may depend on each other."""
    blocks = max(len(differences) // 25, 2)  # 25 rows are about as many as one user has in a row
    sums = np.array([part.sum() for part in np.array_split(differences, blocks)])
    total, error = float(differences.sum()), math.sqrt(float(((sums - sums.mean()) ** 2).sum()))
    return total / error if error > 0 else math.copysign(math.inf, total) if total else 0.0
