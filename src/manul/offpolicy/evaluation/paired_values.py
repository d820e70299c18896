"""The doubly robust value of a policy from sums over rows, and its difference to the logged policy on the same rows.

The value is mean Q + r with the self-normalised residual r = sum w (u - q) / sum w: u is the loss, q the
predicted loss of the logged action, Q that of the policy, w the importance weight. Without predictions, it is `snips`. The
influence of a row is (Q - mean Q) + w (u - q - r) / mean w, a linear form in (1, Q, w (u - q), w, u, u - q), so the sums of
their products suffice.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from manul.utils.validation import Floats

TERMS = 6


@dataclass
class PairedValue:
    """Sums over rows; losses and predictions are scaled to [0, 1]."""

    products: Floats = field(default_factory=lambda: np.zeros((TERMS, TERMS)))
    hits: int = 0  # rows with a positive weight

    def add(
        self, weights: Floats, losses: Floats, predicted: Floats | float = 0.0, expected: Floats | float = 0.0
    ) -> None:
        """Add rows; `predicted` are the losses of the logged actions, `expected` those of the policy."""
        ones = np.ones(len(losses))
        residuals = losses - predicted
        terms = np.stack([ones, expected * ones, weights * residuals, weights, losses, residuals])
        self.products += np.einsum("in,jn->ij", terms, terms)
        self.hits += int(np.count_nonzero(weights))

    def __iadd__(self, other: PairedValue) -> PairedValue:
        self.products = self.products + other.products
        self.hits += other.hits
        return self

    @property
    def rows(self) -> int:
        return int(self.products[0, 0])

    @property
    def mean_weight(self) -> float:
        """The mean importance weight, which is about 1 if the densities are right."""
        return float(self.products[0, 3] / self.products[0, 0])

    @property
    def effective_size(self) -> float:
        """The effective sample size; 0 if all weights are 0."""
        return float(self.products[0, 3] ** 2 / self.products[3, 3]) if self.products[3, 3] > 0 else 0.0

    @property
    def raw_residual(self) -> float:
        """The self-normalised residual; 0 if all weights are 0."""
        residual, weight = self.products[0, 2:4]
        return float(residual / weight) if weight > 0 else 0.0

    @property
    def residual(self) -> float:
        """The self-normalised residual, limited so that the value stays in [0, 1]."""
        expected = float(self.products[0, 1] / self.products[0, 0])
        return min(max(expected + self.raw_residual, 0.0), 1.0) - expected

    @property
    def value(self) -> float:
        return float(self.products[0, 1] / self.products[0, 0]) + self.residual

    @property
    def logged(self) -> float:
        return float(self.products[0, 4] / self.products[0, 0])

    @property
    def gain(self) -> float:
        """How much lower the loss of the policy is than the logged one."""
        return self.logged - self.value

    @property
    def error(self) -> float:
        return self._deviation(self._influence)

    @property
    def logged_error(self) -> float:
        """The standard error of the mean logged loss."""
        return self._deviation(self._logged_influence)

    @property
    def gain_error(self) -> float:
        """The standard error of the gain: at least what it is if residuals vary in matching rows as they do in all rows.

        The matching rows alone would give 0 if losses are rare and none of them is among the few rows that match.
        """
        return max(self._deviation(self._influence - self._logged_influence), self._pooled_error)

    @property
    def _pooled_error(self) -> float:
        rows, (total, square) = self.rows, (self.products[0, 5], self.products[5, 5])
        variance = max(float(square - total**2 / rows), 0.0) / rows
        # The sum of (w / mean w - 1)^2, the share of each row in the value minus its share in the logged mean.
        spread = rows * (rows / self.effective_size - 1) if self.effective_size else 0.0
        return math.sqrt(variance * max(spread, 0.0)) / rows

    @property
    def _influence(self) -> Floats:
        expected, weight = self.products[0, 1] / self.rows, self.mean_weight
        inverse = 1.0 / weight if weight > 0 else 0.0
        return np.array([-expected, 1.0, inverse, -self.raw_residual * inverse, 0.0, 0.0])

    @property
    def _logged_influence(self) -> Floats:
        return np.array([-self.logged, 0.0, 0.0, 0.0, 1.0, 0.0])

    def _deviation(self, form: Floats) -> float:
        return math.sqrt(max(float(form @ self.products @ form), 0.0)) / self.rows
