"""GP-UCB, the usual method for few rounds: a Gaussian process of the loss, and the action with the lowest confidence bound.

The process has a Matérn kernel 5/2 with a length per feature and per knob. Its parameters maximise the posterior from two
starts whenever the number of rounds has grown by a third; each round is added to its factor at once.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import minimize

Array = NDArray[np.float64]
Loss = Callable[[Array, int], float]
"""The loss of an action, an array, in a round."""
Candidates = Callable[[np.random.Generator, Array | None], Array]
"""Draws the actions among which the process chooses, one per row, given the action with the lowest loss so far."""
Features = Callable[[Array], Array]
"""What the process sees of actions."""

CANDIDATES, FIRST = 101, 5  # actions of one knob; rounds with random actions
DEVIATIONS = 1.0  # of the confidence bound; 2, the usual number, has a tenth more regret in 500 rounds
GROWTH, LARGEST = 1.33, 256  # fit again when the rounds have grown so much; to at most so many rounds
DRAWN = 512  # candidates of several knobs, and a quarter as many near the best one so far


def play(rows: Array, loss: Loss, *, candidates: Candidates, features: Features = np.asarray, seed: int) -> Array:
    """The actions in all rounds, one row each; the first ones are random candidates."""
    rng = np.random.default_rng(seed)
    chosen, losses, process, due = [], np.empty(len(rows)), None, FIRST
    for number, row in enumerate(rows):
        if number >= due:
            start = None if process is None else process.parameters
            process = Process(rows[:number], features(np.array(chosen)), losses[:number], start)
            due = int(GROWTH * number) + 2
        actions = candidates(rng, chosen[np.argmin(losses[:number])] if chosen else None)
        if process is None:
            action = actions[rng.integers(len(actions))]
        else:
            mean, deviation = process.predict(row, features(actions))
            action = actions[np.argmin(mean - DEVIATIONS * deviation)]
        losses[number] = loss(action, number)
        chosen.append(action)
        if process is not None:
            process.add(row, features(action[None])[0], losses[number])
    return np.array(chosen)


def unit_cube(knobs: int) -> Candidates:
    """Candidates for numbers in [0, 1]: a grid for one knob, otherwise random ones, some near the best action so far."""

    def candidates(rng: np.random.Generator, best: Array | None) -> Array:
        if knobs == 1:
            return np.linspace(0, 1, CANDIDATES)[:, None]
        drawn = rng.random((DRAWN, knobs))
        if best is None:
            return drawn
        near = best + 0.05 * rng.standard_normal((DRAWN // 4, knobs))
        return np.vstack([drawn, np.clip(near, 0, 1)])

    return candidates


class Process:
    """A Gaussian process of standardised losses, given contexts and actions."""

    def __init__(self, rows: Array, actions: Array, losses: Array, start: Array | None) -> None:
        self.mean, self.deviation = rows.mean(0), rows.std(0) + 1e-9
        self.centre, self.scale = losses.mean(), losses.std() + 1e-12
        self.inputs, self.values = self._inputs(rows, actions), (losses - self.centre) / self.scale
        width, knobs = rows.shape[1], actions.shape[1]
        # Logarithms of the variance of the signal and of the noise, and of lengths: means and deviations of their priors.
        self.prior = np.log([1.0, 0.1, *[2 * np.sqrt(max(width, 1))] * width, *[0.3 * np.sqrt(knobs)] * knobs])
        self.spread = np.array([1.0, 1.5, *[1.0] * width, *[0.7] * knobs])
        chosen = np.unique(np.linspace(0, len(losses) - 1, LARGEST).astype(int))
        blind = self.prior + np.array([0, 0, *[1.5] * width, *[0] * knobs])  # contexts hardly matter
        self.parameters = self._fit(chosen, [self.prior, blind if start is None else start])
        self.factor = cholesky(self._kernel(self.inputs, self.inputs) + self._noise(len(losses)), lower=True)
        self.weights = self._solve(self.values)

    def predict(self, row: Array, actions: Array) -> tuple[Array, Array]:
        """The mean and the deviation of the expected loss of actions."""
        inputs = self._inputs(np.tile(row, (len(actions), 1)), actions)
        solved = self._solve(self._kernel(self.inputs, inputs))
        variance = np.exp(self.parameters[0]) - (solved**2).sum(0)
        return solved.T @ self.weights, np.sqrt(np.maximum(variance, 1e-12))

    def add(self, row: Array, action: Array, loss: float) -> None:
        """Another round, with the same parameters."""
        new = self._inputs(row[None], action[None])
        column = self._solve(self._kernel(self.inputs, new)[:, 0])
        corner = np.sqrt(max(np.exp(self.parameters[0]) + self._noise(1)[0, 0] - column @ column, 1e-9))
        size = len(self.values)
        factor = np.zeros((size + 1, size + 1), order="F")
        factor[:size, :size], factor[size, :size], factor[size, size] = self.factor, column, corner
        value = (loss - self.centre) / self.scale
        self.weights = np.append(self.weights, (value - column @ self.weights) / corner)
        self.factor, self.inputs, self.values = factor, np.vstack([self.inputs, new]), np.append(self.values, value)

    def _inputs(self, rows: Array, actions: Array) -> Array:
        return np.hstack([np.clip((rows - self.mean) / self.deviation, -5, 5), actions])

    def _solve(self, values: Array) -> Array:
        solved: Array = solve_triangular(self.factor, values, lower=True, check_finite=False)
        return solved

    def _noise(self, size: int) -> Array:
        return (np.exp(self.parameters[1]) + 1e-4) * np.eye(size)

    def _kernel(self, left: Array, right: Array) -> Array:
        return np.exp(self.parameters[0]) * matern(distances(left, right, np.exp(self.parameters[2:])))

    def _fit(self, chosen: NDArray[np.int64], starts: list[Array]) -> Array:
        inputs, values = self.inputs[chosen], self.values[chosen]
        bounds = list(zip(self.prior - 4, self.prior + 4, strict=True))
        found = [
            minimize(self._objective, start, (inputs, values), "L-BFGS-B", True, bounds=bounds, options={"maxiter": 40})
            for start in starts
        ]
        best: Array = min(found, key=lambda one: float(one.fun)).x
        return best

    def _objective(self, parameters: Array, inputs: Array, values: Array) -> tuple[float, Array]:
        """The negative logarithm of the posterior and its gradient."""
        signal, noise = np.exp(parameters[:2])
        lengths = np.exp(parameters[2:])
        squared = distances(inputs, inputs, lengths)
        correlation = signal * matern(squared)
        covariance = correlation + (noise + 1e-4) * np.eye(len(values))
        factor = cholesky(covariance, lower=True, check_finite=False)
        inverse_factor = solve_triangular(factor, np.eye(len(values)), lower=True, check_finite=False)
        inverse = inverse_factor.T @ inverse_factor
        weights = inverse @ values
        off = (parameters - self.prior) / self.spread
        value = 0.5 * values @ weights + np.log(np.diag(factor)).sum() + 0.5 * off @ off
        slope = 0.5 * (inverse - np.outer(weights, weights))  # of the objective by the covariance
        root = np.sqrt(5 * squared)
        by_distance = slope * signal * 5 / 3 * (1 + root) * np.exp(-root)
        scaled = inputs / lengths
        by_lengths = 2 * (by_distance.sum(1) @ scaled**2 - (scaled * (by_distance @ scaled)).sum(0))
        gradient = np.array([(slope * correlation).sum(), noise * np.trace(slope), *by_lengths])
        return float(value), gradient + off / self.spread


def distances(left: Array, right: Array, lengths: Array) -> Array:
    """Squared distances between rows, relative to the lengths."""
    left, right = left / lengths, right / lengths
    return np.maximum((left**2).sum(1)[:, None] + (right**2).sum(1) - 2 * left @ right.T, 0)


def matern(squared: Array) -> Array:
    """The Matérn kernel 5/2 of squared distances."""
    root = np.sqrt(5 * squared)
    return (1 + root + root**2 / 3) * np.exp(-root)
