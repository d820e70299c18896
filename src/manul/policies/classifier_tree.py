"""Trees of classifiers: the geometry of their leaves, the routing of contexts to leaves, and the policy.

Nodes are numbered from 1 at the root; the children of v are 2v and 2v + 1, and leaf i of K is K + i, as in the core.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.actions.distribution import Distribution
from manul.actions.distributions import Windows
from manul.actions.ranges import Actions
from manul.contexts import conversion
from manul.contexts.schema import Context, ContextSchema
from manul.policies.classifiers import Classifier
from manul.policies.plot_mixin import PlotMixin
from manul.utils import model_files, sklearn_files
from manul.utils.validation import Floats, check_bandwidth, check_epsilon, check_leaves, check_range

Integers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Sides = npt.NDArray[np.int8]

LEFT, RIGHT, LEARNED = 0, 1, 2


class Leaves(NamedTuple):
    """Leaves first..last of each row, both included; empty if first > last."""

    first: Integers
    last: Integers


@dataclass(frozen=True)
class Geometry:
    """Leaf i of K has its action at low + (i + 1/2) (high - low) / K; the rules are those of the core's geometry.

    >>> Geometry(Actions(0.0, 1.0), leaves=8, bandwidth=1/4).reachable([0.0], [1.0])
    Leaves(first=array([2]), last=array([5]))
    """

    actions: Actions
    leaves: int
    bandwidth: float

    @property
    def depth(self) -> int:
        """The number of nodes on a path to a leaf."""
        return self.leaves.bit_length() - 1

    def reachable(self, lows: npt.ArrayLike, highs: npt.ArrayLike) -> Leaves:
        """The leaves whose window lies inside each range, or the middle leaf if there is none."""
        low, high = np.asarray(lows, dtype=np.float64), np.asarray(highs, dtype=np.float64)
        first = np.ceil(self._position(low + self.bandwidth) - 0.5)
        last = np.floor(self._position(high - self.bandwidth) - 0.5)
        middle = np.floor(self._position(0.5 * (low + high)))
        none_fits = first > last
        return Leaves(self._clamp(np.where(none_fits, middle, first)), self._clamp(np.where(none_fits, middle, last)))

    def covering(self, actions: npt.ArrayLike) -> Leaves:
        """The leaves whose window covers each action."""
        action = np.asarray(actions, dtype=np.float64)
        first = np.ceil(self._position(action - self.bandwidth) - 0.5)
        last = np.floor(self._position(action + self.bandwidth) - 0.5)
        return Leaves(first.astype(np.int64), last.astype(np.int64))

    def centres(self, leaves: npt.ArrayLike, lows: npt.ArrayLike, highs: npt.ArrayLike) -> Floats:
        """The centre of each leaf's window, moved so that the window fits into the range."""
        spacing = (self.actions.high - self.actions.low) / self.leaves
        action = self.actions.low + (np.asarray(leaves, dtype=np.float64) + 0.5) * spacing
        lowest, highest = np.asarray(lows) + self.bandwidth, np.asarray(highs) - self.bandwidth
        return np.where(action < lowest, lowest, np.where(action > highest, highest, action))

    def forced_sides(self, nodes: Integers, reachable: Leaves, below: int) -> tuple[Flags, Flags]:
        """Whether only the right child of each node is reachable, and whether only the left; `below` is the height of the children."""
        lowest, highest = ((self.leaves + ends) >> below for ends in reachable)
        only_right = 2 * nodes < lowest
        return only_right, ~only_right & (2 * nodes + 1 > highest)

    def default_sides(self) -> Sides:
        """The side of each node that contains the middle of the reachable leaves; left if it lies between both."""
        first, last = self.reachable(self.actions.low, self.actions.high)
        nodes = np.arange(self.leaves)
        level = np.frexp(np.maximum(nodes, 1))[1] - 1
        right_begins = (2 * nodes + 1 << np.maximum(self.depth - 1 - level, 0)) - self.leaves
        return np.where(2 * right_begins < first + last + 1, RIGHT, LEFT).astype(np.int8)

    @property
    def _per_unit(self) -> float:
        return self.leaves / (self.actions.high - self.actions.low)

    def _position(self, action: Floats) -> Floats:
        return (action - self.actions.low) * self._per_unit

    def _clamp(self, leaf: Floats) -> Integers:
        return np.clip(leaf, 0, self.leaves - 1).astype(np.int64)


def group_by_node(nodes: Integers) -> Iterator[tuple[int, Integers]]:
    """Yield each distinct node in ascending order, with the indices at which it occurs.

    >>> [(node, indices.tolist()) for node, indices in group_by_node(np.array([5, 4, 5]))]
    [(4, [1]), (5, [0, 2])]
    """
    order = np.argsort(nodes, kind="stable")
    distinct, starts = np.unique(nodes[order], return_index=True)
    yield from zip(distinct.tolist(), np.split(order, starts[1:]), strict=True) if len(distinct) else ()


@dataclass(frozen=True, eq=False)
class Nodes:
    """The rules of the nodes: `sides[v]` is LEFT, RIGHT, or LEARNED if `classifiers[v]` predicts the side."""

    width: int
    sides: Sides
    classifiers: dict[int, Classifier]

    def go_right(self, nodes: Integers, rows: conversion.Row) -> Flags:
        """Whether each row goes right at its node."""
        right: Flags = self.sides[nodes] == RIGHT
        learned = np.flatnonzero(self.sides[nodes] == LEARNED)
        for node, indices in group_by_node(nodes[learned]):
            at = learned[indices]
            # Double precision makes the result for a row independent of the other rows in the batch.
            right[at] = np.asarray(self.classifiers[node].predict(rows[at].astype(np.float64))) == RIGHT
        return right


@model_files.saveable()
class TreePolicy(PlotMixin, model_files.FileMixin):
    """A tree of classifiers trained on a log; `train_tree` returns it.

    >>> import manul
    >>> run = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=200, width=2))
    >>> policy = manul.policies.train_tree(run.log, leaves=8, bandwidth=1/8)
    >>> 0 < policy.distribution([0.3, 1.2]).mean() < 1
    True
    """

    def __init__(
        self, *, actions: Within = (0.0, 1.0), leaves: int, bandwidth: float, epsilon: float = 0.05, nodes: Nodes
    ) -> None:
        self.actions = check_range("actions", actions)
        self.leaves = check_leaves(leaves)
        self.bandwidth = check_bandwidth(bandwidth, Actions(*self.actions))
        self.epsilon = check_epsilon(epsilon)
        self.nodes = nodes
        self._geometry = Geometry(Actions(*self.actions), self.leaves, self.bandwidth)

    @property
    def schema(self) -> ContextSchema:
        """The width of contexts, which are rows of numbers."""
        return ContextSchema(self.nodes.width)

    def distribution(self, context: Context, within: Within | None = None) -> Distribution:
        """Uniform around the action of the context's leaf, mixed with uniform exploration of weight epsilon."""
        ends = np.array([self._geometry.actions.narrow(within, self.bandwidth)])
        return self._windows(conversion.row(context)[np.newaxis], ends)[0]

    def distributions(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> Windows:
        """The distribution of each row; `within` is one (low, high) per row."""
        return self._windows(*self._rows(contexts, within))

    def actions_many(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None = None) -> Floats:
        """The centre of each row's window; `within` is one (low, high) per row."""
        return self._centres(*self._rows(contexts, within))

    def __reduce__(self) -> tuple[Any, ...]:
        return model_files.by_attributes(self)

    def _contents(self) -> model_files.Contents:
        learned = self.nodes.classifiers
        advice = "Train with another, such as LogisticRegression()."
        fitted = [learned[node] for node in sorted(learned)]
        encoded = sklearn_files.dump_objects(fitted, "classifier", advice) if fitted else np.empty(0, np.uint8)
        window = {"leaves": self.leaves, "bandwidth": self.bandwidth, "epsilon": self.epsilon}
        parameters = {"actions": self.actions, **window, "width": self.nodes.width}
        return "TreePolicy", parameters, {"sides": self.nodes.sides, "classifiers": encoded}

    @classmethod
    def from_saved(cls, parameters: model_files.Parameters, arrays: model_files.Arrays) -> Self:
        """Restore the policy from the contents of a file."""
        width, leaves = model_files.check_width(parameters.pop("width")), check_leaves(parameters["leaves"])
        sides, encoded = model_files.vectors(arrays, sides=("i1", leaves), classifiers=("u1", None))
        learned = np.flatnonzero(sides == LEARNED).tolist()
        decoded = sklearn_files.load_objects(encoded, "classifier", method="predict") if len(encoded) else []
        widths = {getattr(classifier, "n_features_in_", width) for classifier in decoded}
        if not np.isin(sides, (LEFT, RIGHT, LEARNED)).all() or len(decoded) != len(learned) or widths - {width}:
            raise model_files.mismatch_error()
        return cls(**parameters, nodes=Nodes(width, sides, dict(zip(learned, decoded, strict=True))))

    def __repr__(self) -> str:
        return (
            f"TreePolicy(actions={self.actions!r}, leaves={self.leaves}, bandwidth={self.bandwidth!r}, "
            f"epsilon={self.epsilon!r}, learned={len(self.nodes.classifiers)} of {self.leaves - 1} nodes)"
        )

    def _rows(self, contexts: npt.ArrayLike, within: npt.ArrayLike | None) -> tuple[conversion.Row, Floats]:
        rows = conversion.matrix(contexts)
        return rows, self._geometry.actions.narrow_many(within, len(rows), self.bandwidth)

    def _windows(self, rows: conversion.Row, ends: Floats) -> Windows:
        return Windows.around(self._centres(rows, ends), self.bandwidth, ends, self.epsilon)

    def _centres(self, rows: conversion.Row, ends: Floats) -> Floats:
        conversion.check_width(rows.shape[1], self.nodes.width)
        lows, highs = ends.T
        return self._geometry.centres(self._route(rows, self._geometry.reachable(lows, highs)), lows, highs)

    def _route(self, rows: conversion.Row, reachable: Leaves) -> Integers:
        nodes = np.ones(len(rows), dtype=np.int64)
        for below in reversed(range(self._geometry.depth)):
            right, only_left = self._geometry.forced_sides(nodes, reachable, below)
            free = np.flatnonzero(~right & ~only_left)
            right[free] = self.nodes.go_right(nodes[free], rows[free])
            nodes = 2 * nodes + right
        return nodes - self.leaves
