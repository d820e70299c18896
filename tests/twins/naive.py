"""The reference for tree training: every node is trained on the costs of all leaves, for any bandwidth and range."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from manul.paper import algorithms


@dataclass
class NaiveTree:
    """Leaf i of K at low + (i + offset) (high - low) / K; nodes are numbered from 1, the children of v are 2v and 2v + 1."""

    depth: int
    offset: float
    bandwidth: float
    actions: tuple[float, float]
    width: int
    learners: dict[int, algorithms.CoinMargin] = field(default_factory=dict)

    def __post_init__(self):
        self.leaves = 2**self.depth
        self.M = algorithms.row(np.zeros(self.width))
        self.learners = {node: algorithms.CoinMargin(self.M) for node in range(1, self.leaves)}
        self.weights = np.zeros((self.leaves, len(self.M)), np.float32)

    def reachable(self, within):
        """Leaves whose window lies inside the range, found one by one; the middle one where there is none."""
        low, high = within
        scale = self.leaves / (self.actions[1] - self.actions[0])
        first = (low + self.bandwidth - self.actions[0]) * scale - self.offset
        last = (high - self.bandwidth - self.actions[0]) * scale - (1 - self.offset)
        inside = np.array([first <= i <= last for i in range(self.leaves)])
        if not inside.any():
            middle = math.floor((0.5 * (low + high) - self.actions[0]) * scale)
            inside[min(max(middle, 0), self.leaves - 1)] = True
        return inside

    def covered(self, action):
        """Leaves whose window covers the action."""
        scale = self.leaves / (self.actions[1] - self.actions[0])
        first = (action - self.bandwidth - self.actions[0]) * scale - self.offset
        last = (action + self.bandwidth - self.actions[0]) * scale - self.offset
        return np.array([first <= i <= last for i in range(self.leaves)])

    def learn(self, x, action, density, loss, within):
        """Trains all nodes from the bottom up; returns {node: (cost left, cost right)} of those whose sides differ."""
        x = algorithms.row(x)
        self.M[:] = np.maximum(self.M, np.abs(x))
        cost = np.float32(loss / (2 * self.bandwidth * density))
        usable = self.reachable(within)
        costs = np.where(self.covered(action), cost, np.float32(0))
        touched = {}
        for level in range(self.depth - 1, -1, -1):
            nodes = range(2**level, 2 ** (level + 1))
            costs, usable = zip(*(self.node(v, x, costs, usable, touched) for v in nodes), strict=True)
        return touched

    def node(self, v, x, costs, usable, touched):
        """The cost of what the subtree below v picks, and whether any of its leaves can be reached."""
        i = 2 * (v - 2 ** (v.bit_length() - 1))
        (left, right), (left_usable, right_usable) = costs[i : i + 2], usable[i : i + 2]
        if not (left_usable and right_usable):
            return (left if left_usable else right), left_usable or right_usable
        if left != right:
            self.learners[v].learn(x, (left, right))
            self.weights[v] = self.learners[v].regressor.w
            touched[v] = float(left), float(right)
        return (right if self.goes_right(v, x) else left), True

    def goes_right(self, v, x):
        """The node's choice."""
        return self.weights[v].any() and self.learners[v].f(x) == algorithms.RIGHT
