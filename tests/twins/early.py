"""The experts for the first rounds in plain NumPy, the reference for the core: the Gaussian process, the constant action, their
tests and shares. Everything is computed from the arrays of a saved Auto, slowly and literally.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manul.agents.player_host import host_of
from tests.twins import forest

Floats = NDArray[np.float64]
LOSSES, PRIOR_ROUNDS, MOST, RETIREMENT, SAMPLE, DOUBTFUL = 5.0, 5.0, 384, 1536, 96, 256
BINS, LENGTHS, SHARES, LEVEL = 32, (0.2, 0.6), (0.003, 0.03, 0.3, 3.0), 4.0
MEANS, DEVIATIONS = (0.5, 0.2, 0.5, 0.1, 0.5), (1.5, 1.5, 1.5, 1.5, 1.0)  # action, context, both, noise, level
STATE = (
    "active",
    "running",
    "age",
    "weight",
    "evidence",
    "contextual",
    "own",
    "own_square",
    "constant",
    "constant_square",
)
STATE += ("rest", "rest_count", "lasting_rest", "lasting_count", "against_rest", "against_squares")
PROCESS = ("ready", "present", "building", "factored", "first_steps", "steps", "first_power", "second_power")


def field(state: dict, name: str) -> float:
    """One of the numbers of the experts, or of the process."""
    return float(state["early"][STATE.index(name)] if name in STATE else state["early_process"][PROCESS.index(name)])


def retire(agent):
    """The agent, now without the experts, as if it came from a file of an older version."""
    player = host_of(agent).player
    names = [name for name in player.state() if name.startswith("early") or name == "constant_expert"]
    player.restore({name: np.zeros_like(array) if name in names else array for name, array in player.state().items()})
    return agent


def matern(s: Floats) -> Floats:
    return (1 + s + s**2 / 3) * np.exp(-s)


@dataclass(frozen=True)
class Kernel:
    """The covariance of losses, with the parameters as logarithms relative to their prior means."""

    parameters: Floats
    actions: int = 1

    def __call__(self, contexts: Floats, actions: Floats, others: Floats, other_actions: Floats) -> Floats:
        action, context, both, _, level = MEANS * np.exp(self.parameters[:5])
        rates = np.exp(self.parameters[5 : 5 + self.actions]) / (0.09 * self.actions)
        active = contexts.shape[1]
        apart = (rates * (actions[:, None] - other_actions[None]) ** 2).sum(axis=2)
        near = matern(np.sqrt(5 * apart))
        if not active:
            return level + action * near
        widths = np.exp(self.parameters[5 + self.actions :]) / (4 * active)
        similar = np.exp(-0.5 * (widths * (contexts[:, None] - others[None]) ** 2).sum(axis=2))
        return level + action * near + context * similar + both * similar * near

    def matrix(self, contexts: Floats, actions: Floats) -> Floats:
        noise = MEANS[3] * np.exp(self.parameters[3])
        total = self(contexts[:1], actions[:1], contexts[:1], actions[:1])[0, 0]
        return self(contexts, actions, contexts, actions) + (noise + 3e-4 * total) * np.eye(len(actions))


@dataclass(frozen=True)
class Rounds:
    """Rounds since the start, oldest first: raw contexts, actions and losses, and those in standard units."""

    contexts: Floats
    actions: Floats
    losses: Floats


def rounds(state: dict, width: int) -> Rounds:
    """The rounds of the experts that a saved Auto remembers."""
    total, age, capacity = int(state["units"][0]), int(field(state, "age")), len(state["losses"])
    columns = len(state["actions"]) // capacity
    slots = np.arange(total - age, total) % capacity
    contexts = state["contexts"].reshape(capacity, -1)[slots, :width].astype(float)
    actions = state["actions"].reshape(capacity, columns)[slots].astype(float)
    return Rounds(contexts, actions, state["losses"][slots].astype(float))


@dataclass(frozen=True)
class Factor:
    """The process with the parameters and units of one factor, and its rounds."""

    kernel: Kernel
    contexts: Floats
    actions: Floats
    y: Floats
    mean: Floats
    scale: Floats
    centre: float
    gain: float

    @classmethod
    def of(cls, state: dict, width: int, which: str | None = None) -> Factor:
        data, columns = rounds(state, width), len(state["actions"]) // len(state["losses"])
        array = which or ("early_factor_2" if field(state, "present") else "early_factor")
        (rows, centre, gain, low, high), rest = state[array][:5], state[array][5:]
        parameters, mean, scale = np.split(rest, [5 + columns + width, 5 + columns + 2 * width])
        used, n = scale > 0, int(rows)
        kernel = Kernel(np.concatenate([parameters[: 5 + columns], parameters[5 + columns :][used]]), columns)
        y = LOSSES * gain * (np.clip(data.losses[:n], low, high) - centre)
        contexts = np.clip((data.contexts[:n] - mean) * scale, -5, 5)[:, used]
        return cls(kernel, contexts, data.actions[:n], y, mean, scale, float(centre), float(gain))

    def standard(self, context: Floats, count: int) -> Floats:
        row = np.clip((np.asarray(context, dtype=np.float32) - self.mean) * self.scale, -5, 5)[self.scale > 0]
        return np.tile(row, (count, 1))

    def predict(self, context: Floats, actions: Floats) -> tuple[Floats, Floats]:
        """Predictions of y and their standard deviations."""
        points = actions.reshape(len(actions), -1)
        cross = self.kernel(self.standard(context, len(points)), points, self.contexts, self.actions)
        whole = self.kernel.matrix(self.contexts, self.actions)
        alpha = np.linalg.solve(whole, self.y)
        reach = (self.y.max() - self.y.min()) / 2
        mean = np.clip(cross @ alpha, self.y.min() - reach, self.y.max() + reach)
        total = self.kernel(self.contexts[:1], self.actions[:1], self.contexts[:1], self.actions[:1])[0, 0]
        left = total - np.einsum("ij,ji->i", cross, np.linalg.solve(whole, cross.T))
        scale = (PRIOR_ROUNDS + self.y @ alpha) / (PRIOR_ROUNDS + len(self.y))
        return mean, np.sqrt(scale * np.maximum(left, 0))

    def residuals(self) -> Floats:
        """The losses minus their predictions by the rounds before, in units of the loss."""
        whole = self.kernel.matrix(self.contexts, self.actions)
        before = [whole[i, :i] @ np.linalg.solve(whole[:i, :i], self.y[:i]) if i else 0.0 for i in range(len(self.y))]
        return (self.y - before) / (LOSSES * self.gain)

    def loss(self, y: Floats) -> Floats:
        return y / (LOSSES * self.gain) + self.centre


def log_posterior(parameters: Floats, contexts: Floats, actions: Floats, y: Floats) -> float:
    """Of the parameters, with the scale of the losses profiled out."""
    columns = actions.shape[1]
    deviations = np.concatenate([DEVIATIONS, np.full(columns, 1.2), np.full(contexts.shape[1], 2.0)])
    whole = Kernel(parameters, columns).matrix(contexts, actions)
    square, (_, determinant) = y @ np.linalg.solve(whole, y), np.linalg.slogdet(whole)
    evidence = -(len(y) + PRIOR_ROUNDS) / 2 * np.log(PRIOR_ROUNDS + square) - determinant / 2
    return float(evidence - ((parameters / deviations) ** 2).sum() / 2)


def gradient(parameters: Floats, contexts: Floats, actions: Floats, y: Floats, nudge: float = 1e-5) -> Floats:
    """By finite differences."""
    slopes = []
    for each in np.eye(len(parameters)) * nudge:
        ends = [log_posterior(parameters + sign * each, contexts, actions, y) for sign in (1, -1)]
        slopes.append((ends[0] - ends[1]) / (2 * nudge))
    return np.array(slopes)


def fitted(before: dict, after: dict, width: int) -> Floats:
    """The parameters and Adam's moments after one step, for the rounds of `after`; all columns vary."""
    data, n = rounds(after, width), int(field(after, "age"))
    chosen = np.arange(min(n, SAMPLE)) * n // min(n, SAMPLE)
    spread = data.contexts - data.contexts.mean(axis=0)
    contexts = np.clip(spread / np.sqrt((spread**2).mean(axis=0)), -5, 5)[chosen]
    _, _, centre, _, gain = after["units"]
    bounds = after.get("loss_bounds", (-np.inf, np.inf))
    y = LOSSES * gain * (np.clip(data.losses[chosen], *bounds[:2]) - centre)
    own, means, squares = before["early_parameters"].reshape(3, -1)
    slopes = gradient(own, contexts, data.actions[chosen], y)
    means, squares = 0.9 * means + 0.1 * slopes, 0.99 * squares + 0.01 * slopes**2
    steps = field(after, "steps")
    move = 0.1 * means / (1 - 0.9**steps) / (np.sqrt(squares / (1 - 0.99**steps)) + 1e-6)
    farthest = np.where(np.arange(len(own)) < 5, 4.0, 6.0)
    return np.concatenate([np.clip(own + move, -farthest, farthest), means, squares])


def constant(actions: Floats, losses: Floats) -> tuple[Floats, Floats]:
    """The predicted losses in 32 bins of actions, and their standard deviations."""
    bins = np.minimum((actions * BINS).astype(int), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    used, n, middle = np.flatnonzero(counts), len(losses), losses.mean()
    z = np.array([losses[bins == b].mean() for b in used]) - middle
    within = sum(((losses[bins == b] - losses[bins == b].mean()) ** 2).sum() for b in used)
    apart = np.abs(np.arange(BINS)[:, None] - np.arange(BINS)) / BINS
    means, variances, evidence = [], [], []
    for share in SHARES:
        for length in LENGTHS:
            covariance = LEVEL + share * matern(np.sqrt(5) * apart / length)
            whole = covariance[np.ix_(used, used)] + np.diag(1 / counts[used])
            cross = np.linalg.solve(whole, covariance[used])
            scale = PRIOR_ROUNDS * losses.var() + within + z @ np.linalg.solve(whole, z)
            left = LEVEL + share - (covariance[used] * cross).sum(axis=0)
            means.append(z @ cross)
            variances.append(scale / (n + PRIOR_ROUNDS) * left)
            evidence.append(-np.linalg.slogdet(whole)[1] / 2 - (n + PRIOR_ROUNDS) / 2 * np.log(scale))
    weights = np.exp(np.array(evidence) - max(evidence))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    square = weights @ (np.array(variances) + np.array(means) ** 2)
    return middle + mean, np.sqrt(square - mean**2)


def constant_curve(values: Floats, actions: Floats) -> Floats:
    return np.interp(actions, (np.arange(BINS) + 0.5) / BINS, values)


def z_score(errors: Floats, others: Floats) -> float:
    difference = errors**2 - others**2
    return float(difference.sum() / np.sqrt((difference**2).sum()))


def tests(state: dict, width: int) -> tuple[float, float]:
    """The weight of the process beside the constant action, and the evidence."""
    factor = Factor.of(state, width)
    residuals, n = factor.residuals(), len(factor.y)
    errors, y = state["early_errors"][:n], factor.y / (LOSSES * factor.gain)
    weight = 1 / (1 + np.exp(-1.7 * z_score(errors[8:], residuals[8:]))) if factor.contexts.shape[1] else 1.0
    own = weight * residuals + (1 - weight) * errors
    mean_before = np.concatenate([[0.0], np.cumsum(y)[:-1] / np.arange(1, n)])
    z = z_score((y - mean_before)[4:], own[4:])
    return weight, max(np.clip(z / 2, 0, 1), np.clip(2 - n / 32, 0, 1))


def shares(state: dict) -> tuple[float, float]:
    """The share of own predictions, and that of the constant action in the rest."""

    def regression(product: float, square: float, total: float, count: float, first: float) -> float:
        prior = 20 * total / count
        return float(np.clip((product + prior * first) / (square + prior), 0, 1))

    get = {name: field(state, name) for name in STATE}
    fade = np.clip((RETIREMENT - get["age"]) / (RETIREMENT - MOST), 0, 1)
    own = regression(get["own"], get["own_square"], get["rest"], get["rest_count"], 1.0) if get["running"] else 0.0
    first = 1 - get["weight"] if get["contextual"] else 1.0
    lasting = (get["constant"], get["constant_square"], get["lasting_rest"], get["lasting_count"])
    u = get["against_rest"] / np.sqrt(get["against_squares"])
    factor = np.clip(2 - 2 * get["weight"], 0, 1) if get["contextual"] else 1.0
    lasts = 0.5 * regression(*lasting, first) * (1 - fade) / (1 + np.exp(1.7 * u)) * factor
    return own * fade, 0.0 if lasts < 0.001 else lasts


def curve(agent, context: Floats, *, optimistic: bool = False) -> Callable[[Floats], Floats]:
    """The predicted loss of actions in [0, 1], in standard units, by all experts and the rest."""
    state, width = host_of(agent).state(), len(context)
    _, _, centre, _, gain = state["units"]
    rest, (g, lasting), weight = forest.curve(agent, context), shares(state), field(state, "weight")
    means, deviations = state["constant_expert"][6 + 2 * BINS :].reshape(2, BINS)
    factor = Factor.of(state, width) if g else None

    def predicted(actions: Floats) -> Floats:
        alone = gain * (constant_curve(means, actions) - centre)
        others = rest(actions) + lasting * (alone - rest(actions))
        if factor is None:
            return others
        mean, doubt = factor.predict(context, actions)
        own = weight * gain * (factor.loss(mean) - centre) + (1 - weight) * alone
        if optimistic:
            doubt = doubt / (LOSSES * factor.gain) if len(factor.y) <= DOUBTFUL else 0.0
            own = own - 0.75 * gain * (weight * doubt + (1 - weight) * constant_curve(deviations, actions))
        return others + g * (own - others)

    return predicted
