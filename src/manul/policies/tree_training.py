"""Trains a tree of classifiers on a log, from the bottom up (Algorithms 2 and 8 of the paper).

For each row, the leaves whose window covers the logged action have the cost smoothing density / density * loss, all
others 0. So only the nodes above the two ends of that interval of leaves can have children of different cost, and two
nodes per level and row yield exactly the examples of the paper. A node with one reachable side is forced to it and not
trained, one whose examples all favour the same side always takes it, and one without examples goes towards the middle
of the reachable leaves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from manul.actions.decision import Within
from manul.actions.ranges import Actions
from manul.contexts import conversion
from manul.errors import InputError
from manul.logs.density_models import require_one_knob
from manul.logs.log import Log
from manul.logs.row_hashes import sketch_log
from manul.outcomes import check_outcome_range
from manul.policies.classifier_tree import (
    LEARNED,
    LEFT,
    RIGHT,
    Flags,
    Geometry,
    Integers,
    Leaves,
    Nodes,
    TreePolicy,
    group_by_node,
)
from manul.policies.classifiers import Classifier, prepare_classifier, weight_parameter
from manul.utils.model_files import note_training
from manul.utils.validation import (
    Floats,
    are_densities,
    are_within,
    check_bandwidth,
    check_epsilon,
    check_has_rows,
    check_leaves,
    check_range,
    check_workers,
    range_advice,
    reject,
)


def train_tree(
    log: Log,
    *,
    leaves: int,
    bandwidth: float,
    classifier: Classifier | None = None,
    partition: bool = False,
    epsilon: float = 0.05,
    actions: Within = (0.0, 1.0),
    losses: Within = (0.0, 1.0),
    jobs: int | None = None,
    progress: bool = False,
) -> TreePolicy:
    """Train a tree whose nodes send each context to the cheaper side; with `partition` each level has its own rows.

    >>> import manul
    >>> run = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=200, width=2))
    >>> train_tree(run.log, leaves=8, bandwidth=1/8)
    TreePolicy(actions=(0.0, 1.0), leaves=8, bandwidth=0.125, epsilon=0.05, learned=5 of 7 nodes)
    """
    require_one_knob(log, "train_tree")
    whole = Actions(*check_range("actions", actions))
    geometry = Geometry(whole, check_leaves(leaves), check_bandwidth(bandwidth, whole))
    check_epsilon(epsilon)
    base, workers = prepare_classifier(classifier), check_workers("jobs", jobs)
    training = Training(geometry, _data(log, geometry, check_outcome_range("losses", losses)), base, workers)
    share = _rows_per_level(len(log), geometry.depth) if partition else None
    nodes = training.nodes(training.ends(log.actions), share=share, progress=progress)
    policy = TreePolicy(actions=actions, leaves=leaves, bandwidth=bandwidth, epsilon=epsilon, nodes=nodes)
    return note_training(policy, sketch_log(log))


@dataclass(frozen=True, eq=False)
class Data:
    """The context of each row, and the cost of the leaves whose window covers its action."""

    contexts: conversion.Row
    costs: Floats

    def select(self, rows: Integers) -> Data:
        return Data(self.contexts[rows], self.costs[rows])


@dataclass(frozen=True, eq=False)
class Ends:
    """For each row, the first and last node of a level above its costly leaves, and whether they choose a costly leaf."""

    rows: Integers
    reachable: Leaves
    first: Integers
    last: Integers
    first_costly: Flags
    last_costly: Flags

    def costly(self, at: Integers, nodes: Integers) -> Flags:
        """Whether the subtree of a node of this level chooses a costly leaf (Return_cost, Algorithm 11)."""
        first, last = self.first[at], self.last[at]
        at_ends = (nodes == first) & self.first_costly[at] | (nodes == last) & self.last_costly[at]
        costly: Flags = (first < nodes) & (nodes < last) | at_ends
        return costly

    def select(self, chosen: Flags) -> Ends:
        reachable = Leaves(self.reachable.first[chosen], self.reachable.last[chosen])
        costly = self.first_costly[chosen], self.last_costly[chosen]
        return Ends(self.rows[chosen], reachable, self.first[chosen], self.last[chosen], *costly)


@dataclass(frozen=True, eq=False)
class Training:
    """One run of the training."""

    geometry: Geometry
    data: Data
    base: Classifier
    jobs: int

    def ends(self, actions: Floats) -> Ends:
        """The first and last costly leaf of each row; rows without costs are left out."""
        low, high = (np.full(len(actions), end) for end in (self.geometry.actions.low, self.geometry.actions.high))
        reachable, covering = self.geometry.reachable(low, high), self.geometry.covering(actions)
        first, last = np.maximum(reachable.first, covering.first), np.minimum(reachable.last, covering.last)
        leaves, costly = self.geometry.leaves, np.ones(len(actions), dtype=np.bool_)
        ends = Ends(np.arange(len(actions)), reachable, leaves + first, leaves + last, costly, costly)
        return ends.select((first <= last) & (self.data.costs > 0))

    def nodes(self, ends: Ends, *, share: int | None, progress: bool) -> Nodes:
        """Train all levels from the bottom up, each on the next `share` rows if that is given."""
        from threadpoolctl import threadpool_limits
        from tqdm import tqdm

        depth, every = self.geometry.depth, len(self.data.costs)
        nodes = Nodes(self.data.contexts.shape[1], self.geometry.default_sides(), {})
        # Sums in a linear algebra library depend on its number of threads, so it gets one thread and the nodes train in parallel.
        with threadpool_limits(1):
            for below in tqdm(range(depth), unit=" levels", disable=not progress):
                begin, until = (0, every) if share is None else (below * share, (below + 1) * share)
                ends = self._train_level(nodes, ends.select(ends.rows >= begin), below, until)
        return nodes

    def _train_level(self, nodes: Nodes, ends: Ends, below: int, until: int) -> Ends:
        """Train the parents of the ends with the rows before `until`, and move the ends up to them."""
        first_parent, last_parent = ends.first // 2, ends.last // 2
        apart = np.flatnonzero(first_parent != last_parent)
        at = np.concatenate([np.arange(len(ends.rows)), apart])
        parents = np.concatenate([first_parent, last_parent[apart]])
        left, right = ends.costly(at, 2 * parents), ends.costly(at, 2 * parents + 1)
        reachable = Leaves(ends.reachable.first[at], ends.reachable.last[at])
        only_right, only_left = self.geometry.forced_sides(parents, reachable, below)
        costly = np.where(only_right, right, left)
        differ = np.flatnonzero((left != right) & ~only_right & ~only_left)
        differ = differ[np.argsort(at[differ], kind="stable")]
        cheaper = np.where(left[differ], RIGHT, LEFT)
        costly[differ] = self._train_nodes(nodes, parents[differ], ends.rows[at[differ]], cheaper, until) != cheaper
        first_costly = costly[: len(ends.rows)]
        last_costly = first_costly.copy()
        last_costly[apart] = costly[len(ends.rows) :]
        return Ends(ends.rows, ends.reachable, first_parent, last_parent, first_costly, last_costly)

    def _train_nodes(self, nodes: Nodes, parents: Integers, rows: Integers, cheaper: Integers, until: int) -> Integers:
        """Train the nodes of one level in parallel, and return the side that each row then takes."""
        from sklearn.utils.parallel import Parallel, delayed

        usable = np.flatnonzero(rows < until)
        groups = [(node, usable[indices]) for node, indices in group_by_node(parents[usable])]
        rules = Parallel(n_jobs=self.jobs, prefer="threads")(
            delayed(_train_node)(self.base, self.data.select(rows[indices]), cheaper[indices]) for _, indices in groups
        )
        for (node, _), (side, classifier) in zip(groups, rules, strict=True):
            nodes.sides[node] = side
            if classifier is not None:
                nodes.classifiers[node] = classifier
        return nodes.go_right(parents, self.data.contexts[rows]).astype(np.int64)


def _train_node(base: Classifier, data: Data, cheaper: Integers) -> tuple[int, Classifier | None]:
    """Line 5 of Algorithm 8 as weighted classification; the weight is |cost left - cost right|."""
    from sklearn.base import clone

    weights = [data.costs[cheaper == side].sum() for side in (LEFT, RIGHT)]
    if 0 in weights or data.contexts.shape[1] == 0:
        return (RIGHT if weights[RIGHT] > weights[LEFT] else LEFT), None
    classifier: Classifier = clone(base)
    classifier.fit(data.contexts.astype(np.float64), cheaper, **{weight_parameter(base): data.costs})
    return LEARNED, classifier


def _data(log: Log, geometry: Geometry, losses: Within) -> Data:
    """Windows of reachable leaves are not truncated, so the smoothing density is 1 / (2 * bandwidth) inside them."""
    low, high, (lowest, highest) = geometry.actions.low, geometry.actions.high, losses
    check_has_rows(len(log))
    outside = ~are_within(log.actions, low, high)
    reject(outside, log.actions, "actions", f"in [{low:g}, {high:g}]", range_advice("actions"))
    unusable = ~are_densities(log.densities)
    reject(unusable, log.densities, "densities", "above 0 and finite", "Drop rows without a known density.")
    outside = ~are_within(log.losses, lowest, highest)
    reject(outside, log.losses, "losses", f"in [{lowest:g}, {highest:g}]", range_advice("losses"))
    costs = (log.losses - lowest) / (highest - lowest) / (2 * geometry.bandwidth * log.densities)
    return Data(conversion.matrix(log.contexts), costs)


def _rows_per_level(rows: int, depth: int) -> int:
    if rows < depth:
        raise InputError(f"log must have at least {depth} rows, one per level of the tree, got {rows}.", "log")
    return rows // depth
