"""The loss model of the doubly robust estimator: ridge regression on the context and the action, cross-fitted.

The model is quadratic in the action, with a slope that depends on the context, so its expectation under a policy needs only
the first two moments of the policy's action. Row i belongs to fold i mod FOLDS and is predicted by the model of the other
folds.
"""

from __future__ import annotations

import numpy as np

from manul.logs.batching import Rows
from manul.offpolicy.evaluation.policy_densities import Moments
from manul.types import Floats, Within

FOLDS = 5
RIDGE = 1e-3  # relative to the mean square of each feature


class LossModel:
    """Ridge regression from sums per fold: one pass over the log to fit, a second one to predict.

    >>> model = LossModel((0.0, 1.0))
    >>> actions = np.linspace(0, 1, 50)
    >>> rows = Rows(0, np.zeros((50, 0), np.float32), actions, np.ones(50), actions**2, None, None)
    >>> model.add(rows, rows.losses)
    >>> model.fit()
    >>> bool(np.abs(model.predict(rows) - actions**2).max() < 0.01)
    True
    """

    def __init__(self, actions: Within) -> None:
        self.low, self.span = actions[0], actions[1] - actions[0]
        self.grams: Floats | None = None
        self.products: Floats | None = None
        self.weights: Floats | None = None

    def add(self, rows: Rows, losses: Floats) -> None:
        """Add a piece for fitting."""
        table = self._features(rows, self._scale(rows.actions), self._scale(rows.actions) ** 2)
        if self.grams is None or self.products is None:
            width = table.shape[1]
            self.grams, self.products = np.zeros((FOLDS, width, width)), np.zeros((FOLDS, width))
        folds = _folds(rows)
        for fold in range(FOLDS):
            part = table[folds == fold]
            self.grams[fold] += np.einsum("ni,nj->ij", part, part)
            self.products[fold] += (part * losses[folds == fold, np.newaxis]).sum(axis=0)

    def fit(self) -> None:
        """Solve for the weights of each fold."""
        assert self.grams is not None
        assert self.products is not None
        others, products = self.grams.sum(axis=0) - self.grams, self.products.sum(axis=0) - self.products
        # The small constant keeps the matrix regular for features that are always 0.
        scale = np.einsum("kii->ki", others)
        penalty = np.eye(scale.shape[1]) * (RIDGE * scale + 1e-12)[:, np.newaxis, :]
        self.weights = np.linalg.solve(others + penalty, products[..., np.newaxis])[..., 0]

    def predict(self, rows: Rows) -> Floats:
        """The expected loss of each logged action, by the model that was not fitted to the row."""
        scaled = self._scale(rows.actions)
        return self._predict(rows, scaled, scaled**2)

    def expected(self, rows: Rows, moments: Moments) -> Floats:
        """The expected loss of a policy on each row, from the moments of its action."""
        means = self._scale(moments.means)
        squares = (moments.squares - 2 * self.low * moments.means + self.low**2) / self.span**2
        return self._predict(rows, means, squares)

    def _predict(self, rows: Rows, actions: Floats, squares: Floats) -> Floats:
        assert self.weights is not None
        losses: Floats = (self._features(rows, actions, squares) * self.weights[_folds(rows)]).sum(axis=1)
        return losses

    def _scale(self, actions: Floats) -> Floats:
        return (actions - self.low) / self.span

    def _features(self, rows: Rows, actions: Floats, squares: Floats) -> Floats:
        contexts = rows.contexts.astype(np.float64)
        ones = np.ones(len(actions))
        return np.column_stack([ones, actions, squares, contexts, contexts * actions[:, np.newaxis]])


def _folds(rows: Rows) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return (rows.first + np.arange(len(rows.actions))) % FOLDS
