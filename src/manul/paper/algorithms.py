"""The algorithms of "Efficient Contextual Bandits with Continuous Actions" in plain NumPy, slow and literal.

Read this file beside the paper; the tests compare the native core with it. It uses the paper's letters:

    x  context          h   bandwidth           T   tree policy, or the number of rounds
    a  action in [0,1]  K   leaves, 2^D         v, u, w  nodes of a tree
    P  density          D   depth               c   costs, one per leaf
    l  loss in [0,1]    eps epsilon             alpha, beta  leaves at the two ends of the costly window

Arithmetic is float32 in the core's order of additions, so both agree to the last bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

F32 = np.float32
Row = npt.NDArray[np.float32]
Rounds = Iterable[tuple[npt.ArrayLike, Callable[[float], float]]]  # (x_t, l_t)
History = list[tuple[float, float, float]]  # (a_t, P_t(a_t|x_t), l_t(a_t))
Costs = npt.NDArray[np.float64]

LEFT, RIGHT = 0, 1


# Section 2: smoothing


def Smooth(h: float, a_prime: float, a: float) -> float:
    """Smooth_h(a'|a): the density at a' of the uniform distribution on [a - h, a + h] inside [0, 1].

    >>> Smooth(0.25, 0.5, 0.4)
    2.0
    """
    low, high = max(a - h, 0.0), min(a + h, 1.0)
    return 1.0 / (high - low) if low <= a_prime <= high else 0.0


def IPS_costs(h: float, K: int, a_t: float, P_t: float, l_t: float) -> Costs:
    """c_t(i/K) = Smooth_h(a_t | i/K) / P_t(a_t|x_t) * l_t(a_t), for all i (line 6 of Algorithm 1).

    >>> IPS_costs(0.25, 4, 0.5, 1.0, 0.5)
    array([0., 1., 1., 1.])
    """
    return np.array([Smooth(h, a_t, i / K) / P_t * l_t for i in range(K)])


# Learners: online binary cost-sensitive classifiers


class Learner(Protocol):
    """The classifier f^v of a node, trained online on the costs of both sides."""

    def f(self, x: Row) -> int:
        """LEFT or RIGHT."""

    def learn(self, x: Row, c: tuple[float, float]) -> None:
        """Learn from a cost-sensitive example."""


def row(x: npt.ArrayLike) -> Row:
    """The context, a constant 1, and zeros up to a multiple of eight.

    >>> row([2.0, 3.0])
    array([2., 3., 1., 0., 0., 0., 0., 0.], dtype=float32)
    """
    values = np.append(np.asarray(x, dtype=F32), F32(1))
    return np.pad(values, (0, -len(values) % 8))


def dot(a: Row, b: Row) -> np.float32:
    """The inner product in the core's order of additions: even and odd groups of eight separately, then halves.

    >>> float(dot(row([2.0, 3.0]), row([1.0, 1.0])))
    6.0
    """
    groups = (a * b).reshape(-1, 8)
    paired = len(groups) // 2 * 2
    even, odd = np.zeros(8, F32), np.zeros(8, F32)
    for g in range(0, paired, 2):
        even, odd = even + groups[g], odd + groups[g + 1]
    tail = groups[paired] if paired < len(groups) else np.zeros(8, F32)
    v = (even + tail) + odd
    return F32(((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7])))


class CoinRegressor:
    """Least squares by coin betting (the paper's [Coin16]): each coordinate bets a share of its wealth.

    `M`, the largest magnitude of each feature, is shared by all nodes of a tree.
    """

    def __init__(self, M: Row) -> None:
        self.M = M
        self.w, self.theta, self.G, self.wealth = (np.zeros(len(M), F32) for _ in range(4))
        self.L = F32(0)

    def predict(self, x: Row) -> np.float32:
        return dot(self.w, x)

    def step(self, x: Row, g: np.float32) -> None:
        """Settle the current bet with the gradient g of the prediction, and place the next one."""
        self.L = max(self.L, abs(g))
        stake = (g * x) * self.bet()
        self.theta = self.theta - g * x
        self.G = self.G + np.abs(g * x)
        self.wealth = self.wealth - stake
        self.w = self.bet()

    def bet(self) -> Row:
        """The share of its wealth that each coordinate bets."""
        scale = self.L * self.M
        return ((F32(1) + self.wealth) / (scale * (scale + self.G) + F32(1e-30)) * self.theta).astype(F32)


class CoinCosts:
    """The paper's learner: one regressor per side predicts its cost; the lower prediction wins, ties go left."""

    def __init__(self, M: Row) -> None:
        self.sides = CoinRegressor(M), CoinRegressor(M)

    def f(self, x: Row) -> int:
        return RIGHT if self.sides[LEFT].predict(x) - self.sides[RIGHT].predict(x) > 0 else LEFT

    def learn(self, x: Row, c: tuple[float, float]) -> None:
        errors = [side.predict(x) - F32(cost) for side, cost in zip(self.sides, c, strict=True)]
        for side, error in zip(self.sides, errors, strict=True):
            side.step(x, error)


class CoinMargin:
    """One regressor of the label -1 or +1, weighted by the difference of the costs."""

    def __init__(self, M: Row) -> None:
        self.regressor = CoinRegressor(M)

    def f(self, x: Row) -> int:
        return RIGHT if self.regressor.predict(x) > 0 else LEFT

    def learn(self, x: Row, c: tuple[float, float]) -> None:
        y = F32(1) if c[LEFT] > c[RIGHT] else F32(-1)
        weight = y * (F32(c[LEFT]) - F32(c[RIGHT]))
        self.regressor.step(x, weight * (self.regressor.predict(x) - y))


# Trees: Algorithms 4 and 9


@dataclass(eq=False)
class Node:
    """A node v; ids count level by level from 0 at the root."""

    id: int
    parent: Node | None = None
    left: Node | None = None
    right: Node | None = None
    learner: Learner | None = None
    only: int | None = None
    label: float = math.nan
    cost: float = math.nan

    def child(self, side: int) -> Node:
        child = self.left if side == LEFT else self.right
        assert child is not None
        return child

    def f(self, x: Row) -> int:
        """f^v(x); the two special nodes always take the same side."""
        if self.only is not None:
            return self.only
        assert self.learner is not None
        return self.learner.f(x)

    def leftmost(self) -> list[Node]:
        """The internal nodes on the path from here to the leftmost leaf."""
        return [] if self.left is None else [self, *self.left.leftmost()]

    def get_action(self, x: Row) -> float:
        v = self
        while v.left is not None:
            v = v.child(v.f(x))
        return v.label


@dataclass(eq=False)
class Tree:
    """A complete binary tree; `levels[d]` holds the nodes of level d from left to right."""

    levels: list[list[Node]] = field(default_factory=list)

    @property
    def root(self) -> Node:
        return self.levels[0][0]

    @property
    def leaves(self) -> list[Node]:
        return self.levels[-1]


def Build_tree(D: int, m_sharp: int | None, base: Callable[[], Learner]) -> Tree:
    """Algorithm 9: ids, labels, and the two nodes that make the outermost 2^m# leaves unreachable (None: all leaves are reachable).

    >>> tree = Build_tree(3, 1, lambda: CoinCosts(row([0.0])))
    >>> [v.id for v in tree.levels[1]], tree.root.get_action(row([0.5]))
    ([1, 2], 0.25)
    """
    tree = Tree([[Node(id=0)]])
    for _ in range(D):
        for v in tree.levels[-1]:
            v.learner = base()
            v.left, v.right = Node(id=2 * v.id + 1, parent=v), Node(id=2 * v.id + 2, parent=v)
        tree.levels.append([v.child(side) for v in tree.levels[-1] for side in (LEFT, RIGHT)])
    for v in tree.leaves:
        v.label = (v.id - (2**D - 1)) / 2**D
    if m_sharp is None:
        return tree
    by_id = [v for level in tree.levels for v in level]
    by_id[2 ** (D - m_sharp) - 2].only = LEFT
    by_id[2 ** (D - m_sharp - 1) - 1].only = RIGHT
    if m_sharp == D - 1:
        # At h = 1/2 both are the root and contradict each other; one leaf is left, the one at 1/2.
        for v in tree.root.child(RIGHT).leftmost():
            v.only = LEFT
    return tree


# Batch training: Algorithms 2 and 8

Example = tuple[Row, Costs]
Oracle = Callable[[list[tuple[Row, tuple[float, float]]]], Learner]


def Train_tree(D: int, oracle: Oracle, m_sharp: int | None, S: Sequence[Example], *, partition: bool = True) -> Tree:
    """Algorithm 2, or without the partition Algorithm 8: `oracle` is the argmin over F of the empirical cost."""
    tree = Build_tree(D, m_sharp, lambda: oracle([]))
    n = len(S) // D
    for d in range(D - 1, -1, -1):
        B = S[(D - d - 1) * n : (D - d) * n] if partition else S
        for v in tree.levels[d]:
            if v.only is None:
                v.learner = oracle([(x, c_v) for x, c in B if (c_v := _binary_costs(v, x, c))[LEFT] != c_v[RIGHT]])
    return tree


def _binary_costs(v: Node, x: Row, c: Costs) -> tuple[float, float]:
    left, right = (c[round(v.child(side).get_action(x) * len(c))] for side in (LEFT, RIGHT))
    return float(left), float(right)


# Online training: Algorithms 10 and 11


def Return_cost(w: Node, alpha: Node, beta: Node, c_star: float) -> float:
    """Algorithm 11: the cost of the leaf that the subtree of w chooses; w is on the level of alpha and beta."""
    if w.id < alpha.id or w.id > beta.id:
        return 0.0
    if alpha.id < w.id < beta.id:
        return c_star
    return alpha.cost if w.id == alpha.id else beta.cost


def Online_train_tree(T: Tree, x: Row, a_min: int, a_max: int, c_star: float) -> list[tuple[int, float, float]]:
    """Algorithm 10: the leaves a_min..a_max cost c_star, all others 0; returns the updates (id, cost left, cost right).

    The paper does not specify which cost the special nodes pass up. It must be that of the side they are forced to.
    Examples with equal costs are skipped, as in Algorithm 8.
    """
    K = len(T.leaves)
    a_min, a_max = max(a_min, 0), min(a_max, K - 1)
    if a_min > a_max:
        return []
    alpha, beta = T.leaves[a_min], T.leaves[a_max]
    alpha.cost = beta.cost = c_star
    updates = []
    while alpha.parent is not None and beta.parent is not None:
        for u in dict.fromkeys([alpha.parent, beta.parent]):
            c = (Return_cost(u.child(LEFT), alpha, beta, c_star), Return_cost(u.child(RIGHT), alpha, beta, c_star))
            if u.only is None and c[LEFT] != c[RIGHT]:
                assert u.learner is not None
                u.learner.learn(x, c)
                updates.append((u.id, *c))
            u.cost = c[u.f(x)]
        alpha, beta = alpha.parent, beta.parent
    return updates


# Algorithm 1


def uniforms(seed: int, t: int) -> tuple[float, float]:
    """The two random numbers of decision t, as the core draws them."""
    raw = np.random.Philox(key=seed, counter=t).random_raw(2)
    return float(raw[0] >> np.uint64(11)) * 2.0**-53, float(raw[1] >> np.uint64(11)) * 2.0**-53


def CATS(
    h: float,
    D: int,
    eps: float,
    base: Callable[[Row], Learner],
    rounds: Rounds,
    seed: int = 0,
) -> History:
    """Algorithm 1 with Algorithm 10 in its line 7: (a_t, P_t(a_t|x_t), l_t(a_t)) of each round (x_t, l_t)."""
    K, history = 2**D, []
    rounds = list(rounds)
    M = np.zeros_like(row(rounds[0][0]))
    T = Build_tree(D, round(math.log2(K * h)), lambda: base(M))
    for t, (x_t, l_t) in enumerate(rounds):
        x = row(x_t)
        centre = T.root.get_action(x)
        explored, position = uniforms(seed, t)
        low, high = (0.0, 1.0) if explored < eps else (centre - h, centre + h)
        a_t = low + position * (high - low)
        P_t = eps + (1 - eps) / (2 * h) if centre - h <= a_t <= centre + h else eps
        M[:] = np.maximum(M, np.abs(x))
        c_star = float(F32(l_t(a_t) / (2 * h * P_t)))
        Online_train_tree(T, x, math.ceil(K * (a_t - h)), math.floor(K * (a_t + h)), c_star)
        history.append((a_t, P_t, l_t(a_t)))
    return history


# Section 5: the comparators dTree and dLinear, on the actions i/K


def greedy_atom(K: int, i: int, eps: float, seed: int, t: int) -> tuple[int, float]:
    """Epsilon-greedy with greedy leaf i: the chosen leaf and its probability."""
    explored, position = uniforms(seed, t)
    j = int(position * K) if explored < eps else i
    return j, eps / K + (1 - eps if j == i else 0)


def dTree(
    D: int,
    eps: float,
    base: Callable[[Row], Learner],
    rounds: Rounds,
    seed: int = 0,
) -> History:
    """CATS with zero bandwidth: only the chosen leaf has a cost, which is passed up while the nodes would choose it."""
    K, history = 2**D, []
    rounds = list(rounds)
    M = np.zeros_like(row(rounds[0][0]))
    T = Build_tree(D, None, lambda: base(M))
    for t, (x_t, l_t) in enumerate(rounds):
        x = row(x_t)
        j, p = greedy_atom(K, round(T.root.get_action(x) * K), eps, seed, t)
        M[:] = np.maximum(M, np.abs(x))
        c, v, chosen = float(F32(l_t(j / K) / p)), T.leaves[j], True
        while c and chosen and (u := v.parent) is not None and u.learner is not None:
            side = LEFT if v is u.left else RIGHT
            chosen = u.f(x) == side
            u.learner.learn(x, (c, 0.0) if side == LEFT else (0.0, c))
            v = u
        history.append((j / K, p * K, l_t(j / K)))
    return history


def dLinear(
    K: int,
    eps: float,
    rounds: Rounds,
    seed: int = 0,
) -> History:
    """One regressor per action on the doubly robust costs q_i(x) + [i = j] (l - q_i(x)) / p; q learns the losses."""
    history = []
    rounds = list(rounds)
    M = np.zeros_like(row(rounds[0][0]))
    f, q = [CoinRegressor(M) for _ in range(K)], [CoinRegressor(M) for _ in range(K)]
    for t, (x_t, l_t) in enumerate(rounds):
        x = row(x_t)
        j, p = greedy_atom(K, int(np.argmin([f_i.predict(x) for f_i in f])), eps, seed, t)
        M[:] = np.maximum(M, np.abs(x))
        error = float(q[j].predict(x)) - l_t(j / K)
        for i in range(K):
            c = float(q[i].predict(x)) - (error / p if i == j else 0.0)
            f[i].step(x, f[i].predict(x) - F32(c))
        q[j].step(x, F32(error))
        history.append((j / K, p * K, l_t(j / K)))
    return history
