"""The training rule of `Cats` in plain NumPy, the reference for `src/core/models/cats.hpp`.

    x  context, standardised, then 1     K, D  leaves, 2^D               v  node, numbered from 1 at the root
    a  action                            h     bandwidth                 c  centre of the chosen window
    P  density                           l     loss in [0, 1]            q  model of the loss

Weights are float32 in the core's order of additions, everything else is float64, so both agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from manul.paper.algorithms import dot

F32 = np.float32
Row = npt.NDArray[np.float32]
Vector = npt.NDArray[np.float64]
Cost = Callable[[int], float]


def clip(x: float, low: float, high: float) -> float:
    return min(max(x, low), high)


class Standardiser:
    """z = (x - mean) / deviation with the running moments (Welford), at most 6 in magnitude; then 1 and zeros."""

    def __init__(self, width: int) -> None:
        self.width, self.t = width, 0
        self.stride = (width + 8) // 8 * 8
        self.mean, self.variance = np.zeros(width), np.zeros(width)

    def learn(self, context: Row) -> None:
        self.t += 1
        rate, before = 1.0 / self.t, context.astype(float) - self.mean
        self.mean += rate * before
        self.variance += rate * (before * (context - self.mean) - self.variance)

    def row(self, context: Row) -> Row:
        x = np.zeros(self.stride, F32)
        deviation = np.sqrt(self.variance).astype(F32)
        seen = deviation > 0
        x[: self.width][seen] = np.clip((context[seen] - self.mean[seen]).astype(F32) / deviation[seen], -6, 6)
        x[self.width] = 1
        return x


class AdaGrad:
    """theta += step / sqrt(start + the sum of g^2), row by row; `step` is g times a rate. Returns the change."""

    def __init__(self, theta: Row | Vector, start: float) -> None:
        self.theta, self.G, self.start = theta, np.zeros_like(theta), theta.dtype.type(start)

    def step(self, i: int, g: Row | float, step: Row | float) -> Row | float:
        self.G[i] += g * g
        change = step / np.sqrt(self.G[i] + self.start)
        self.theta[i] += change
        return change  # type: ignore[no-any-return]


class Nodes:
    """f_v(x) = w_v.x + w_0.x + s (m_v - 1/2); right if f_v(x) >= 0."""

    def __init__(self, K: int, stride: int) -> None:
        self.w = AdaGrad(np.zeros((K, stride), F32), start=0.01)  # w[0] is shared by all nodes
        self.s = AdaGrad(np.array([-1e-3]), start=0.01)
        self.rate, self.x = 2.5 / math.sqrt(stride), np.zeros(stride, F32)
        self.common = 0.0

    def look(self, x: Row) -> None:
        self.x, self.common = x, float(dot(self.w.theta[0], x))

    def f(self, v: int) -> float:
        return float(dot(self.w.theta[v], self.x)) + self.common + float(self.s.theta[0]) * place(v)

    def learn(self, v: int, cost_left: float, cost_right: float) -> float:
        """One step on the hinge loss W max(0, 1 - y f_v(x)); y is the cheaper side. The new f_v(x)."""
        f, W = self.f(v), abs(cost_left - cost_right)
        y = 1.0 if cost_left > cost_right else -1.0
        if y * W * f >= W:
            return f
        x, m = self.x, place(v)
        own = float(dot(x, self.w.step(v, F32(y * W) * x, F32(self.rate * y * W) * x)))
        shared = float(dot(x, self.w.step(0, F32(y * W) * x, F32(self.rate * y * W) * x)))
        self.common += shared
        return f + own + shared + m * float(self.s.step(0, y * W * m, self.rate * y * W * m))


def place(v: int) -> float:
    """m_v - 1/2: where node v splits the range, from the middle."""
    width = 1 << (v.bit_length() - 1)
    return (v - width + 0.5) / width - 0.5


def between(values: Vector, near: int, far: int, way: float) -> float:
    """A broken line at a point between two of its knots."""
    return float((1.0 - way) * values[near] + way * values[far])


def area(values: Vector, near: int, far: int, way: float) -> float:
    """Its area from the near knot to there, if the knots lie 1 apart."""
    return float(way * (values[near] + 0.5 * way * (values[far] - values[near])))


def stretch(knot: int) -> float:
    """How far apart the knots 0, h, 3h, 7h, ... of H are, in bandwidths; the one of 0 has index 40."""
    return 2.0 ** abs(knot - 40)


class LossModel:
    """q(x, a) = b + H(u) + d[c] + s(u) beta[c].x + alpha(a).x with u = a - c, s(u) = clip(u / h, -1, 1)."""

    cells = 8

    def __init__(self, h: float, stride: int) -> None:
        self.h, self.b, self.t = h, 0.0, 0
        self.rate, self.vector_rate = 0.05, F32(0.1 / math.sqrt(stride))
        self.H = AdaGrad(np.zeros(81), start=0.1)  # knot 0 has index 40
        self.d = AdaGrad(np.zeros(self.cells), start=0.1)
        self.alpha = AdaGrad(np.zeros((self.cells + 1, stride), F32), start=0.1)  # at the ends of the cells
        self.beta = AdaGrad(np.zeros((self.cells, stride), F32), start=0.1)

    def cell(self, a: float) -> int:
        return int(clip(a * self.cells, 0.0, self.cells - 1.0))

    def s(self, u: float) -> float:
        return clip(u * (1.0 / self.h), -1.0, 1.0)

    def knots(self, u: float) -> tuple[int, int, float]:
        """The two of the knots 0, h, 3h, 7h, ... around |u|, and how far u is on the way from one to the other."""
        mantissa, exponent = math.frexp(min(abs(u) * (1.0 / self.h), 2.0**38) + 1)
        sign = -1 if math.copysign(1, u) < 0 else 1
        return 40 + sign * (exponent - 1), 40 + sign * exponent, 2 * mantissa - 1

    def ends(self, a: float) -> tuple[int, int, float]:
        """The ends of the cell around a, and how far a is on the way from one to the other."""
        j = self.cell(a)
        return j, j + 1, clip(a * self.cells - j, 0.0, 1.0)

    def q(self, x: Row, c: float, a: float) -> float:
        j, alpha = self.cell(c), self.alphas(x)
        slope = float(dot(self.beta.theta[j], x))
        level = self.b + self.d.theta[j]
        curve = between(self.H.theta, *self.knots(a - c))
        return float(level + curve + slope * self.s(a - c) + between(alpha, *self.ends(a)))

    def Q(self, x: Row, c: float, c_i: float) -> float:
        """The mean of q over [c_i - h, c_i + h]."""
        level = self.b + float(self.d.theta[self.cell(c)])
        ends = self.integral(x, c, c_i + self.h), self.integral(x, c, c_i - self.h)
        return level + (ends[0] - ends[1]) * (0.5 * (1.0 / self.h))

    def integral(self, x: Row, c: float, a: float) -> float:
        """The integral from 0 of alpha(a).x and, from c, of H(u) + s(u) beta[c].x."""
        u = a - c
        right, left = u * (1.0 / self.h) + 1, u * (1.0 / self.h) - 1
        near, far, way = self.knots(u)
        step = 1 if far > near else -1
        curve = 0.0
        for knot in range(40, near, step):
            curve += step * 0.5 * stretch(knot) * (self.H.theta[knot] + self.H.theta[knot + step])
        curve += step * stretch(near) * area(self.H.theta, near, far, way)
        sided = 0.25 * (right * abs(right) - left * abs(left))
        slope, alpha, cells = float(dot(self.beta.theta[self.cell(c)], x)), self.alphas(x), 0.0
        near, far, way = self.ends(a)
        for j in range(near):
            cells += 0.5 * (alpha[j] + alpha[j + 1])
        return float(self.h * (curve + slope * sided) + 1.0 / self.cells * (cells + area(alpha, near, far, way)))

    def alphas(self, x: Row) -> Vector:
        return np.array([float(dot(row, x)) for row in self.alpha.theta])

    def learn(self, x: Row, c: float, a: float, l: float, error: float) -> None:  # noqa: E741
        """One step of AdaGrad on (q - l)^2 / 2, given the error q - l, and the running mean b."""
        s, j = self.s(a - c), self.cell(c)
        near, far, way = self.knots(a - c)
        for scalars, i, g in [(self.H, near, error * (1 - way)), (self.H, far, error * way), (self.d, j, error)]:
            scalars.step(i, g, -self.rate * g)
        near, far, way = self.ends(a)
        alphas = [(self.alpha, near, error * (1 - way)), (self.alpha, far, error * way)]
        for vectors, i, g in [(self.beta, j, error * s), *alphas]:
            vectors.step(i, F32(g) * x, -self.vector_rate * (F32(g) * x))
        self.t += 1
        self.b += (l - self.b) / min(self.t, 10000)


class CatsTwin:
    """Actions, ranges, bandwidth and densities are in action units, as in the core."""

    def __init__(self, *, actions: tuple[float, float], depth: int, width: int, bandwidth: float) -> None:
        self.low, self.high = actions
        self.D, self.K, self.h = depth, 2**depth, bandwidth
        middles = self.low + bandwidth, self.high - bandwidth
        self.first, self.last = middles if middles[0] < middles[1] else actions
        self.standardiser = Standardiser(width)
        self.nodes = Nodes(self.K, self.standardiser.stride)
        self.model = LossModel(bandwidth * (1.0 / (self.high - self.low)), self.standardiser.stride)

    def scaled(self, a: float) -> float:
        return (a - self.low) * (1.0 / (self.high - self.low))

    def position(self, a: float) -> float:
        return (a - self.first) * (self.K / (self.last - self.first))

    def reachable(self, within: tuple[float, float]) -> range:
        """The leaves whose window lies inside the range, or the one in its middle."""
        first = math.ceil(self.position(within[0] + self.h) - 0.5)
        last = math.floor(self.position(within[1] - self.h) - 0.5)
        if first > last:
            first = last = math.floor(self.position(0.5 * (within[0] + within[1])))
        return range(int(clip(first, 0, self.K - 1)), int(clip(last, 0, self.K - 1)) + 1)

    def centre(self, leaf: int, within: tuple[float, float]) -> float:
        action = self.first + (leaf + 0.5) * ((self.last - self.first) / self.K)
        return clip(action, within[0] + self.h, within[1] - self.h)

    def has(self, v: int, leaves: range) -> bool:
        """Whether a reachable leaf lies below v."""
        below = self.D - (v.bit_length() - 1)
        return (self.K + leaves[0]) >> below <= v <= (self.K + leaves[-1]) >> below

    def route(self, v: int, leaves: range) -> int:
        """The leaf that x reaches from v; a node with one reachable side is forced to it."""
        while v < self.K:
            right = self.nodes.f(v) >= 0 if self.has(2 * v, leaves) and self.has(2 * v + 1, leaves) else None
            v = 2 * v + (self.has(2 * v + 1, leaves) if right is None else right)
        return v - self.K

    def window(self, context: Row, within: tuple[float, float]) -> float:
        """The centre of the window that the policy plays."""
        self.nodes.look(self.standardiser.row(context))
        return self.centre(self.route(1, self.reachable(within)), within)

    def learn(self, context: Row, a: float, P: float, l: float, within: tuple[float, float]) -> None:  # noqa: E741
        x, leaves = self.standardiser.row(context), self.reachable(within)
        self.nodes.look(x)
        leaf = self.route(1, leaves)
        played = self.centre(leaf, within)
        c = self.scaled(played)
        surprise = l - self.model.q(x, c, self.scaled(a))

        def cost(i: int) -> float:
            """C_i = Q_i + (l - q(x, a)) min(1, w_i) with w_i = 1 / (2 h P) if |a - c_i| <= h, else 0."""
            c_i = self.centre(i, within)
            bounded = surprise * min(1.0, 1.0 / (2.0 * self.h * P)) if abs(a - c_i) <= self.h else 0.0
            return self.model.Q(x, c, self.scaled(c_i)) + bounded

        if abs(a - played) > self.h:
            leaf = int(clip(math.floor(self.position(a)), leaves[0], leaves[-1]))
        self.train(self.K + leaf, leaves, cost)
        self.model.learn(x, c, self.scaled(a), l, -surprise)
        self.standardiser.learn(context)

    def train(self, v: int, leaves: range, cost: Cost) -> None:
        """Each node above a leaf compares the leaf carried from below with the one reached from the sibling."""
        siblings = [(v >> below) ^ 1 for below in range(self.D)]
        rivals = [self.route(u, leaves) if self.has(u, leaves) else None for u in siblings]
        carried = cost(v - self.K)
        for sibling, rival in zip(siblings, rivals, strict=True):
            if rival is None:
                continue
            other = cost(rival)
            left, right = (other, carried) if sibling % 2 == 0 else (carried, other)
            carried = right if self.nodes.learn(sibling // 2, left, right) >= 0 else left
