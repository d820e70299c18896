"""The critic in plain NumPy, the reference for the core: prediction, gradient, one Adam step, and the chosen window.

f(z, a) = shape(a) + sum_j o_j ramp(q_j(z) + s_j v),   q(z) = U z + W ramp(T z),   v = sqrt(12) (a - 1/2)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from manul.agents.player_host import host_of

HINGES, TRUNK, KNOTS = 32, 16, 17
BLUNT, SHARP = 1.0, 0.1
NARROWEST = 1 / 1024
CORNERS = {"deep": BLUNT, "shallow": BLUNT, "sharp": SHARP, "scout": BLUNT}
Floats = NDArray[np.float64]


def ramp(u: Floats, corner: float = BLUNT) -> Floats:
    """A hinge whose corner is rounded by a parabola between -corner and corner."""
    return np.where(u < -corner, 0.0, np.where(u > corner, u, (u + corner) ** 2 / (4 * corner)))


def ramp_slope(u: Floats, corner: float = BLUNT) -> Floats:
    return np.clip((u + corner) / (2 * corner), 0.0, 1.0)


def hats(actions: Floats) -> Floats:
    """One row per action: its weights on the knots of the shape."""
    places = np.clip(actions, 0.0, 1.0)[:, None] * (KNOTS - 1)
    return np.maximum(0.0, 1.0 - np.abs(places - np.arange(KNOTS)))


@dataclass
class Weights:
    """The parts of one network; `T` and `W` have no rows in a shallow one."""

    U: Floats
    T: Floats
    W: Floats
    s: Floats
    o: Floats
    shape: Floats

    @classmethod
    def unpacked(cls, flat: Floats, width: int, *, deep: bool) -> Weights:
        """From one third of the native array of a member: weights, means or squares."""
        flat = np.asarray(flat, dtype=np.float64)
        columns = HINGES + TRUNK if deep else HINGES
        first, rest = np.split(flat, [(width + 1) * columns])
        first = first.reshape(width + 1, columns)
        second, s, o, shape = np.split(rest, np.cumsum([TRUNK * HINGES if deep else 0, HINGES, HINGES]))
        return cls(first[:, :HINGES].T, first[:, HINGES:].T, second.reshape(-1, HINGES).T, s, o, shape[:KNOTS])

    def packed(self) -> Floats:
        first = np.hstack([self.U.T, self.T.T])
        padding = np.zeros(32 - KNOTS)
        return np.concatenate([first.ravel(), self.W.T.ravel(), self.s, self.o, self.shape, padding])


def predict(weights: Weights, contexts: Floats, actions: Floats, corner: float = BLUNT) -> Floats:
    """Contexts are standardised, one per row, and end with a 1; actions lie in [0, 1]."""
    q = contexts @ weights.U.T + ramp(contexts @ weights.T.T) @ weights.W.T
    v = np.sqrt(12) * (actions - 0.5)
    return hats(actions) @ weights.shape + ramp(q + np.outer(v, weights.s), corner) @ weights.o


def gradient(weights: Weights, contexts: Floats, actions: Floats, losses: Floats, corner: float = BLUNT) -> Weights:
    """Of half the mean squared error."""
    error = (predict(weights, contexts, actions, corner) - losses) / len(losses)
    v = np.sqrt(12) * (actions - 0.5)
    hidden = contexts @ weights.T.T
    u = contexts @ weights.U.T + ramp(hidden) @ weights.W.T + np.outer(v, weights.s)
    delta = error[:, None] * weights.o * ramp_slope(u, corner)
    below = (delta @ weights.W) * ramp_slope(hidden)
    return Weights(
        U=delta.T @ contexts,
        T=below.T @ contexts,
        W=delta.T @ ramp(hidden),
        s=delta.T @ v,
        o=ramp(u, corner).T @ error,
        shape=hats(actions).T @ error,
    )


def adam(flat: Floats, slopes: Weights, *, rate: float, keep: float = 1.0) -> Floats:
    """The native array of a member (weights, means, squares) after one step.

    `rate` contains the bias correction; the rows of U and T that belong to features are multiplied by `keep`.
    """
    weights, means, squares = np.split(np.asarray(flat, dtype=np.float64), 3)
    g = slopes.packed()
    means = 0.9 * means + 0.1 * g
    squares = 0.999 * squares + 0.001 * g**2
    weights = weights - rate * means / np.sqrt(squares + 1e-16)
    features = (slopes.U.shape[1] - 1) * (HINGES + slopes.T.shape[0])
    weights[:features] *= keep
    return np.concatenate([weights, means, squares])


def finite_differences(
    weights: Weights, contexts: Floats, actions: Floats, losses: Floats, corner: float = BLUNT
) -> Weights:
    """The gradient again, by nudging one weight at a time: the twin's own check."""

    def value() -> float:
        return float(np.mean((predict(weights, contexts, actions, corner) - losses) ** 2) / 2)

    slopes = {}
    for field in fields(weights):
        array = getattr(weights, field.name)
        slope = np.zeros_like(array)
        for index in np.ndindex(array.shape):
            kept = array[index]
            array[index] = kept + 1e-5
            above = value()
            array[index] = kept - 1e-5
            slope[index] = (above - value()) / 2e-5
            array[index] = kept
        slopes[field.name] = slope
    return Weights(**slopes)


def sampled_ages(uniform: float, memory: float) -> NDArray[np.int64]:
    """How many rounds before the newest each of the 16 samples of a step lies; the first is then set to 0 in the
    first step of a round."""
    return np.floor(((np.arange(16) + uniform) / 16) ** 2 * memory).astype(np.int64)


def window(curve: Callable[[Floats], Floats], bandwidth: float, low: float = 0.0, high: float = 1.0) -> Floats:
    """Centre and bandwidth of what is played: the smoothed minimum, sought twice, and again where its sides are steep.

    `curve` is the predicted loss in standard units; actions are shares of the range.
    """
    h = min(bandwidth, (high - low) / 2)
    reach = (high - low) / 64 + h
    rough = minimum(curve, low, high, 64, h)
    centre = minimum(curve, max(low, rough - reach), min(high, rough + reach), 32, h)
    narrow = min(h, max(NARROWEST, h / steepness(curve, centre, h, low, high)))
    if narrow < h:
        centre = minimum(curve, max(low, centre - h), min(high, centre + h), 32, narrow)
    return np.array([np.clip(centre, low + narrow, high - narrow), narrow])


def minimum(curve: Callable[[Floats], Floats], low: float, high: float, points: int, h: float) -> float:
    """The middle of the window with the least mean loss, among equidistant ones."""
    step = (high - low) / points
    actions = low + (np.arange(points) + 0.5) * step
    losses, radius = curve(actions), int(h / step + 0.5)
    means = [losses[max(0, i - radius) : i + radius + 1].mean() for i in range(points)]
    return float(actions[np.argmin(means)])


def steepness(curve: Callable[[Floats], Floats], centre: float, h: float, low: float, high: float) -> float:
    """The mean of the outer half of a window less that of its inner half, as the slope of straight sides."""
    places = (np.arange(16) + 0.5) / 8 - 1
    losses, outer = curve(np.clip(centre + h * places, low, high)), np.abs(places) > 0.5
    return max(1.0, float(losses[outer].mean() - losses[~outer].mean()) * 2 / h)


def named_weights(state: dict[str, Floats], member: str, part: int = 0) -> Weights:
    """The weights (0), means (1) or squares (2) of a member for named contexts: a dense network over all features."""
    deep = member == "deep"
    columns = HINGES + TRUNK if deep else HINGES
    constant = np.split(np.asarray(state[member], dtype=np.float64), 3)[part]
    rows = np.asarray(state[f"{member}_features"], dtype=np.float64).reshape(-1, 3, columns)[:, part]
    return Weights.unpacked(np.concatenate([rows.ravel(), constant]), len(rows), deep=deep)


def named_adam(flat: Floats, slopes: Weights, present: NDArray[np.bool_], *, rate: float, keep: float) -> Floats:
    """As `adam`, but absent features keep their weights, means and squares."""
    after, columns = adam(flat, slopes, rate=rate, keep=keep), HINGES + slopes.T.shape[0]
    absent = np.flatnonzero(np.repeat(~present, columns))
    for part in range(3):
        after[part * len(flat) // 3 + absent] = flat[part * len(flat) // 3 + absent]
    return after


def curve(agent, context: Floats) -> Callable[[Floats], Floats]:
    """What the networks of an Auto predict for actions in a context, in standard units."""
    state, width = host_of(agent).state(), len(context)
    z = np.append(np.clip((context - state["shift"][:width]) * state["scale"][:width], -5, 5), 1.0)
    shares = [member.weight for member in agent.report().members]
    networks = [Weights.unpacked(np.split(state[name], 3)[0], width, deep=name == "deep") for name in CORNERS]

    def losses_of(actions: Floats) -> Floats:
        rows = np.tile(z, (len(actions), 1))
        losses = map(predict, networks, [rows] * 4, [actions] * 4, CORNERS.values())
        return sum(share * each for share, each in zip(shares, losses, strict=True))

    return losses_of
