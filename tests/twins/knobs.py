"""Auto for several knobs in plain NumPy, the reference for the core: the surface, its minimum, windows, and the ladder.

f(a) = sum_k shape_k(a_k) + sum_j o_j ramp(q_j + s_j v),   v = sqrt(12) (a - 1/2);   knobs are numbers in [0, 1].
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from manul.agents.player_host import host_of
from tests.twins import critic

Floats = NDArray[np.float64]
POINTS, GROUPS, RECENT, STEPS, FINE_STEPS = 16, 3, 8, 16, 8
SEARCH_STREAM, DRAW_STREAM = 64, 256


@dataclass
class Surface:
    """The hinges of all networks in one context, times the shares of the networks, and the sum of their shapes."""

    q: Floats
    s: Floats  # one row per hinge
    o: Floats
    corner: Floats
    shape: Floats  # one row per knob

    @classmethod
    def of(cls, agent, context: Floats) -> Surface:
        state, columns = host_of(agent).state(), len(agent.space.knobs)
        width = len(context)
        z = np.append(np.clip((context - state["shift"][:width]) * state["scale"][:width], -5, 5), 1.0)
        parts = []
        shares = [member.weight for member in agent.report().members]
        for name, share in zip(critic.CORNERS, shares, strict=True):
            deep = name == "deep"
            units = critic.HINGES + critic.TRUNK if deep else critic.HINGES
            flat = np.split(np.asarray(state[name], dtype=np.float64), 3)[0]
            sizes = [(width + 1) * units, critic.TRUNK * critic.HINGES if deep else 0, columns * critic.HINGES]
            first, second, slopes, o, shape = np.split(flat, np.cumsum([*sizes, critic.HINGES]))
            first = z @ first.reshape(width + 1, units)
            lift = critic.ramp(first[critic.HINGES :]) @ second.reshape(-1, critic.HINGES) if deep else 0.0
            corner = np.full(critic.HINGES, critic.CORNERS[name])
            shapes = share * shape.reshape(columns, 32)[:, : critic.KNOTS]
            parts.append((first[: critic.HINGES] + lift, slopes.reshape(columns, -1).T, share * o, corner, shapes))
        q, s, o, corner, shape = zip(*parts, strict=True)
        return cls(np.concatenate(q), np.vstack(s), np.concatenate(o), np.concatenate(corner), sum(shape))

    def values(self, actions: Floats, h: Floats) -> Floats:
        """The mean over windows of half-widths h, to the second moment; one action per row."""
        u, rounded = self._bent(actions, h)
        shapes = sum(
            critic.hats(np.clip(actions[:, k] + side * h[k] / np.sqrt(3), 0, 1)) @ self.shape[k] / 2
            for k in range(actions.shape[1])
            for side in (-1, 1)
        )
        return critic.ramp(u, rounded) @ self.o + shapes

    def slopes(self, actions: Floats, h: Floats) -> Floats:
        u, rounded = self._bent(actions, h)
        slopes = np.sqrt(12) * (critic.ramp_slope(u, rounded) * self.o) @ self.s
        for k in range(actions.shape[1]):
            for side in (-1, 1):
                places = np.clip(actions[:, k] + side * h[k] / np.sqrt(3), 0, 1) * (critic.KNOTS - 1)
                knots = np.minimum(places.astype(np.int64), critic.KNOTS - 2)
                slopes[:, k] += (critic.KNOTS - 1) * np.diff(self.shape[k])[knots] / 2
        return slopes

    def averages(self, actions: Floats, h: Floats, cells: int = 24) -> Floats:
        """The mean over the window by brute force, without clipping it to the range."""
        places = (np.arange(cells) + 0.5) / cells * 2 - 1
        offsets = np.stack(np.meshgrid(*[places * width for width in h]), axis=-1).reshape(-1, len(h))
        return np.array([self.values(action + offsets, 0 * h).mean() for action in actions])

    def _bent(self, actions: Floats, h: Floats) -> tuple[Floats, Floats]:
        u = self.q + np.sqrt(12) * (actions - 0.5) @ self.s.T
        return u, np.sqrt(self.corner**2 + 12 * (self.s**2 @ h**2))


def descend(surface: Surface, points: Floats, h: Floats, box: Floats, first: float, steps: int) -> Floats:
    """The best point that Rprop meets: steps 1.2 times as long in the same direction, half as long when it turns."""
    points, lengths, before = points.copy(), np.full(points.shape, first), np.zeros(points.shape)
    met = [points.copy()]
    for _ in range(steps):
        slopes = surface.slopes(points, h)
        lengths *= np.where(slopes * before > 0, 1.2, np.where(slopes * before < 0, 0.5, 1.0))
        points = np.clip(points - np.sign(slopes) * lengths, box[0], box[1])
        before = slopes
        met.append(points.copy())
    every = np.vstack(met)
    return every[np.argmin(surface.values(every, h))]


def windows(agent, context: Floats, box: Floats) -> tuple[Floats, Floats]:
    """Centres and half-widths of what is played; the rows of `box` are lows and highs."""
    surface, count = Surface.of(agent, context), box.shape[1]
    rounds, h = agent.report().rounds, agent.report().bandwidth_share * count**0.25
    widths = np.minimum(h, (box[1] - box[0]) / 2)
    turns, sequence = (
        np.array([draw(agent.seed, int(rounds), SEARCH_STREAM + k)[0] for k in range(count)]),
        steps(count),
    )
    starts = box[0] + (turns + np.arange(GROUPS * POINTS)[:, None] * sequence) % 1 * (box[1] - box[0])
    starts[:RECENT] = np.clip(latest_actions(agent, count), box[0], box[1])
    chosen = starts[np.argsort(surface.values(starts, widths), kind="stable")[:POINTS]]
    centre = descend(surface, chosen, widths, box, min(0.25, 0.5 * 32 ** (-1 / count)), STEPS)
    narrow = np.array([narrowed(surface, centre, k, widths, box) for k in range(count)])
    if (narrow < widths).any():
        near = np.array([np.maximum(box[0], centre - h), np.minimum(box[1], centre + h)])
        group = near[0] + (0.5 + np.arange(POINTS)[:, None] * sequence) % 1 * (near[1] - near[0])
        group[0] = centre
        centre = descend(surface, group, narrow, near, h / 4, FINE_STEPS)
    return np.clip(centre, box[0] + narrow, box[1] - narrow), narrow


def narrowed(surface: Surface, centre: Floats, k: int, widths: Floats, box: Floats) -> float:
    """The half-width of one knob, narrower if the loss rises steeply inside the window."""
    actions = np.tile(centre, (4, 1))
    actions[:, k] = np.clip(centre[k] + widths[k] * np.array([-0.75, 0.75, -0.25, 0.25]), box[0, k], box[1, k])
    outer, other, inner, last = surface.values(actions, 0 * widths)
    rise = (outer + other - inner - last) / widths[k]
    return min(widths[k], max(critic.NARROWEST, widths[k] / max(1.0, rise)))


def latest_actions(agent, count: int) -> Floats:
    actions, rounds = host_of(agent).state()["actions"].reshape(-1, count), agent.report().rounds
    return actions[(rounds - 1 - np.arange(RECENT)) % len(actions)].astype(np.float64)


def steps(count: int) -> Floats:
    """The steps of the R-sequence: powers of 1 / x, where x^(count + 1) = x + 1."""
    roots = np.roots([1, *[0] * (count - 1), -1, -1])
    root = next(root.real for root in roots if abs(root.imag) < 1e-9 and root.real > 1)
    return root ** -np.arange(1.0, count + 1)


def draw(seed: int, number: int, stream: int) -> tuple[float, float]:
    """Two uniform numbers, by NumPy's generator."""
    bits = np.random.Philox(key=seed, counter=[number, stream, 0, 0]).random_raw(2)
    first, second = (bits >> np.uint64(11)) * 2.0**-53
    return float(first), float(second)


@dataclass
class Ladder:
    """Five uniform distributions, from the window to the whole range, and their masses."""

    lows: Floats
    highs: Floats
    masses: Floats

    @classmethod
    def around(cls, centre: float, h: float, low: float, high: float, nearby: float, anywhere: float, knobs: int):
        whole = (high - low) / 2
        half = h * (whole / h) ** (np.arange(5) / 4)
        middle = np.clip(centre, low + half, high - half)
        near, far = 1 - (1 - nearby) ** (1 / knobs), 1 - (1 - anywhere) ** (1 / knobs)
        levels = (1 - far) * np.array([1 - near, *near * np.array([4, 2, 1]) / 7])
        return cls(middle - half, middle + half, np.append(levels, far))

    def density(self, position: float) -> float:
        inside = (position >= self.lows - 1e-12) & (position <= self.highs + 1e-12)
        return float(np.sum(inside * self.masses / (self.highs - self.lows)))

    def mass(self, low: float, high: float) -> float:
        common = np.minimum(high, self.highs) - np.maximum(low, self.lows)
        return float(np.sum(self.masses * np.maximum(0, common) / (self.highs - self.lows)))

    def at(self, level: float, place: float) -> float:
        i = min(int(np.searchsorted(np.cumsum(self.masses), level, side="right")), 4)
        return self.lows[i] + place * (self.highs[i] - self.lows[i])
