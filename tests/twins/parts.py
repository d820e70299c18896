"""The experts of a yes/no part in plain NumPy, the reference for the core: bases, priors, updates, curves and weights.

eta(z, a) = sum_j u_j(a) (theta_j . z), with a Gaussian posterior of theta.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Philox
from numpy.typing import NDArray

Floats = NDArray[np.float64]
POINTS, HATS = 96, 13
GRID = np.arange(POINTS) / (POINTS - 1)
# Functions of the action, "products", "walks" or "unhinted"; deviations of level, slope and own slope; the first weight.
EXPERTS: list[tuple[str, float, float, float, float]] = [
    ("lin log", 0, 0, 0.7, 0),
    ("lin log hats", 1, 0, 0.7, -2),
    ("lin", 1, 1, 0.7, 0),
    ("log", 1, 1, 0.7, 0),
    ("lin", 4, 3, 4, -1),
    ("log", 4, 3, 4, -1),
    ("lin walks", 1, 1, 1.75, 0),
    ("log walks", 1, 1, 1.75, 0),
    ("log products", 2, 1, 0.7, -1),
    ("lin unhinted", 1, 1, 2.5, -5),
    ("log unhinted", 1, 1, 2.5, -5),
]


def functions(actions: Floats) -> dict[str, Floats]:
    """The functions of the action on the grid, whose actions are given."""
    low, span = actions[0], actions[-1] - actions[0]
    log = np.log(actions if low > 0 else actions - low + 0.02 * span)
    hats = np.maximum(0, 1 - np.abs(GRID[:, None] * (HATS - 1) - np.arange(HATS))).T
    standard = {name: (u - u.mean()) / u.std() for name, u in (("lin", actions), ("log", log))}
    return {"one": np.ones(POINTS), **standard, **{f"hat{k}": hat for k, hat in enumerate(hats)}}


def directions() -> Floats:
    """Eight points per function: sums of twelve uniform numbers, centred and made uncorrelated by sevens."""
    made: list[Floats] = []
    for number in range(3 + HATS):
        draws = [
            Philox(key=0, counter=[48 * number + place, 96, 0, 0]).random_raw(2) >> 11 for place in range(48)
        ]  # counters begin at 1, and NumPy's generator adds 1 before it draws
        uniform = np.array(draws, dtype=np.float64).reshape(8, 12) * 2.0**-53
        own = np.float32(uniform.sum(axis=1) - 6).astype(float)
        own -= own.mean()
        for other in made[number // 7 * 7 :]:
            own -= own @ other / 8 * other
        made.append(own / np.sqrt((own**2).mean()))
    return np.array(made)


class Expert:
    def __init__(self, traits: str, level: float, slope: float, own: float, hint: int, width: int) -> None:
        self.traits, self.width, self.hint = traits.split(), width, 0 if "unhinted" in traits else hint
        slopes = [name for name in ("lin", "log") if name in self.traits]
        self.bases = ["one", *slopes, *([f"hat{k}" for k in range(HATS)] if "hats" in self.traits else [])]
        # One entry per coefficient: its function of the action, the columns of z that it multiplies, mean and variance.
        rows = [("one", (), -1.5 if hint <= 0 else 0.0, 6.0)]
        rows += [(name, (), self.hint * 2.5 / len(slopes), own**2) for name in slopes]
        rows += [(name, (), 0.0, 0.16) for name in self.bases[1 + len(slopes) :]]
        for i in range(width if level else 0):
            rows.append(("one", (i,), 0.0, level**2 / width))
            rows += [(slopes[0], (i,), 0.0, slope**2 / width)] if slope else []
            rows += [("one", (i, k), 0.0, level**2 / width) for k in range(i + 1 if "products" in self.traits else 0)]
        self.functions, self.columns = [row[0] for row in rows], [row[1] for row in rows]
        self.mean, self.covariance = np.array([row[2] for row in rows]), np.diag([row[3] for row in rows])

    def _of_context(self, z: Floats) -> Floats:
        def bent(value: float) -> float:
            return float(np.clip(value, -0.5, 0.5)) / 0.43

        def one(columns: tuple[int, ...]) -> float:
            if len(columns) == 2:
                i, k = columns
                return (z[i] ** 2 - 1) * 0.7071 if i == k else bent(z[i]) * bent(z[k])
            return float(z[columns[0]]) if columns else 1.0

        return np.array([one(columns) for columns in self.columns])

    def curve(self, u: dict[str, Floats], z: Floats, points: Floats) -> Floats:
        """The logits of the eight points at each action of the grid, made monotone by the hint."""
        own = self._of_context(z)
        chosen = np.array([[own[i] * (self.functions[i] == name) for i in range(len(own))] for name in self.bases])
        # The core's order: the function whose slope depends on the context comes second, as here.
        factor = np.linalg.cholesky(chosen @ self.covariance @ chosen.T)
        coefficients = (chosen @ self.mean)[:, None] + factor @ points[: len(self.bases)]
        eta = np.array([u[name] for name in self.bases]).T @ coefficients
        if not self.hint:
            return eta
        return np.asarray((np.minimum if self.hint < 0 else np.maximum).accumulate(eta, axis=0))

    def learn(self, u: dict[str, Floats], z: Floats, position: float, seen: float) -> None:
        if "walks" in self.traits:
            self.covariance[0, 0] = min(self.covariance[0, 0] + 0.005, 6.0)
        phi = self._of_context(z) * [np.interp(position, GRID, u[name]) for name in self.functions]
        v = self.covariance @ phi
        variance, mean = phi @ v, phi @ self.mean
        f = mean
        for _ in range(200):  # Newton's method, damped
            p = 1 / (1 + np.exp(-f))
            f -= np.clip((f - mean + variance * (p - seen)) / (1 + variance * p * (1 - p)), -0.5, 0.5)
        weight = max(p * (1 - p), 1e-6)
        self.mean = self.mean + v * (f - mean) / variance
        self.covariance = self.covariance - np.outer(v, v) * weight / (1 + weight * variance)


class YesNo:
    """The mixture of the experts of a yes/no part with a hint, for rows of `width` numbers."""

    def __init__(self, actions: Floats, hint: int, width: int) -> None:
        self.u, self.points = functions(actions), directions()
        self.experts = [Expert(*each[:4], hint, width) for each in EXPERTS]
        self.weights = np.array([each[4] for each in EXPERTS], dtype=float)
        self.rows: list[Floats] = []

    def standardised(self, context: Floats) -> Floats:
        rows = np.array(self.rows)
        deviation = rows.std(axis=0)
        scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0) * len(rows) / (len(rows) + 5)
        return np.clip((context - rows.mean(axis=0)) * scale, -4, 4)

    @property
    def shares(self) -> Floats:
        shares = np.exp(self.weights - self.weights.max()) + 0.002 / len(self.weights)
        return shares / shares.sum()

    def predict(self, context: Floats) -> Floats:
        """The probability at each action of the grid; experts with less than 1 % are not asked."""
        asked = self.shares * (self.shares >= 0.01)
        curves = [self._probability(e.curve(self.u, self.standardised(context), self.points)) for e in self.experts]
        return np.asarray(asked @ curves / asked.sum())

    def _probability(self, eta: Floats) -> Floats:
        return np.exp(-np.log1p(np.exp(-np.maximum(eta, -10.75))).mean(axis=-1))  # the geometric mean

    def learn(self, context: Floats, position: float, seen: float) -> None:
        self.rows.append(context)
        z = self.standardised(context)
        place = min(int(position * (POINTS - 1)), POINTS - 2)
        share = position * (POINTS - 1) - place
        each = []
        for expert in self.experts:
            free = Expert.curve(_free(expert), self.u, z, self.points)
            at = free[place] + share * (free[place + 1] - free[place])
            if expert.hint:
                earlier = np.vstack([free[: place + 1], at])
                at = earlier.min(axis=0) if expert.hint < 0 else earlier.max(axis=0)
            each.append(float(self._probability(at)))
        mixed = self.shares @ each
        chances = np.clip([*each, mixed], 1e-5, 1 - 1e-5)
        likelihoods = seen * np.log(chances) + (1 - seen) * np.log(1 - chances)
        self.weights = (1 - 1 / 1500) * self.weights + np.maximum(likelihoods[:-1] - likelihoods[-1], -3)
        for expert in self.experts:
            expert.learn(self.u, z, position, seen)


def _free(expert: Expert) -> Expert:
    """The same without its hint."""
    free = object.__new__(Expert)
    vars(free).update(vars(expert), hint=0)
    return free
