"""Train_tree, Algorithms 2 and 8 of the paper: a tree of classifiers from a log, from the bottom up.

The leaves whose window covers the logged action cost Smooth_h / density * loss, all others nothing. So only the nodes
above the two ends of the window can have sides of different cost, and two nodes per level and row give each node
just the examples that the paper gives it. A node with one reachable side is forced to it and not trained, one whose
examples all favour the same side always takes it, and one without examples goes towards the middle of the leaves
that can be reached.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from manul.actions.ranges import Actions
from manul.contexts import conversion
from manul.errors import InputError
from manul.logs.log import Log
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
    grouped,
)
from manul.policies.classifiers import Classifier, checked_classifier, weights_name
from manul.types import Floats, Within
from manul.utils.validation import (
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
    """The tree whose nodes send each context to the side that cost less; with `partition` each level has its own rows.

    >>> import manul
    >>> run = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=200, width=2))
    >>> train_tree(run.log, leaves=8, bandwidth=1/8)
    TreePolicy(actions=(0.0, 1.0), leaves=8, bandwidth=0.125, epsilon=0.05, learned=5 of 7 nodes)
    """
    whole = Actions(*check_range("actions", actions))
    geometry = Geometry(whole, check_leaves(leaves), check_bandwidth(bandwidth, whole))
    check_epsilon(epsilon)
    base, workers = checked_classifier(classifier), check_workers("jobs", jobs)
    training = Training(geometry, _data(log, geometry, check_range("losses", losses)), base, workers)
    share = _share(len(log), geometry.depth) if partition else None
    nodes = training.nodes(training.ends(log.actions), share=share, progress=progress)
    return TreePolicy(actions=actions, leaves=leaves, bandwidth=bandwidth, epsilon=epsilon, nodes=nodes)


@dataclass(frozen=True, eq=False)
class Data:
    """Each row's context, and what the leaves of its window cost."""

    contexts: conversion.Row
    costs: Floats

    def of(self, rows: Integers) -> Data:
        """Some of the rows."""
        return Data(self.contexts[rows], self.costs[rows])


@dataclass(frozen=True, eq=False)
class Ends:
    """For some rows the two nodes of one level at the ends of the costly window, and whether what they pick pays."""

    rows: Integers
    reachable: Leaves
    alpha: Integers
    beta: Integers
    alpha_pays: Flags
    beta_pays: Flags

    def pays(self, at: Integers, nodes: Integers) -> Flags:
        """Return_cost, Algorithm 11: whether what the subtree below a node of this level picks has the cost."""
        alpha, beta = self.alpha[at], self.beta[at]
        at_ends = (nodes == alpha) & self.alpha_pays[at] | (nodes == beta) & self.beta_pays[at]
        paid: Flags = (alpha < nodes) & (nodes < beta) | at_ends
        return paid

    def of(self, kept: Flags) -> Ends:
        """Some of the rows."""
        reachable = Leaves(self.reachable.first[kept], self.reachable.last[kept])
        pays = self.alpha_pays[kept], self.beta_pays[kept]
        return Ends(self.rows[kept], reachable, self.alpha[kept], self.beta[kept], *pays)


@dataclass(frozen=True, eq=False)
class Training:
    """One run of Train_tree."""

    geometry: Geometry
    data: Data
    base: Classifier
    jobs: int

    def ends(self, actions: Floats) -> Ends:
        """The outermost reachable leaves of each window; rows that cost nothing anywhere are left out."""
        low, high = (np.full(len(actions), end) for end in (self.geometry.actions.low, self.geometry.actions.high))
        reachable, covering = self.geometry.reachable(low, high), self.geometry.covering(actions)
        first, last = np.maximum(reachable.first, covering.first), np.minimum(reachable.last, covering.last)
        alpha, beta = self.geometry.leaves + first, self.geometry.leaves + last
        pays = np.ones(len(actions), dtype=np.bool_)
        whole = Ends(np.arange(len(actions)), reachable, alpha, beta, pays, pays)
        return whole.of((first <= last) & (self.data.costs > 0))

    def nodes(self, ends: Ends, *, share: int | None, progress: bool) -> Nodes:
        """All levels from the bottom up; with a share, each level in turn has the next rows."""
        from threadpoolctl import threadpool_limits
        from tqdm import tqdm

        depth, every = self.geometry.depth, len(self.data.costs)
        nodes = Nodes(self.data.contexts.shape[1], self.geometry.towards_the_middle(), {})
        # Sums in a linear algebra library depend on its number of threads, so it has one, and nodes train in parallel.
        with threadpool_limits(1):
            for below in tqdm(range(depth), unit=" levels", disable=not progress):
                begin, until = (0, every) if share is None else (below * share, (below + 1) * share)
                ends = self._level(nodes, ends.of(ends.rows >= begin), below, until)
        return nodes

    def _level(self, nodes: Nodes, ends: Ends, below: int, until: int) -> Ends:
        """Trains the nodes above the ends with the rows before `until`, and lifts the ends to them."""
        above_alpha, above_beta = ends.alpha // 2, ends.beta // 2
        apart = np.flatnonzero(above_alpha != above_beta)
        at = np.concatenate([np.arange(len(ends.rows)), apart])
        above = np.concatenate([above_alpha, above_beta[apart]])
        left, right = ends.pays(at, 2 * above), ends.pays(at, 2 * above + 1)
        only_right, only_left = self.geometry.forced(above, Leaves(*(each[at] for each in ends.reachable)), below)
        pays = np.where(only_right, right, left)
        differ = np.flatnonzero((left != right) & ~only_right & ~only_left)
        differ = differ[np.argsort(at[differ], kind="stable")]
        cheaper = np.where(left[differ], RIGHT, LEFT)
        pays[differ] = self._learn(nodes, above[differ], ends.rows[at[differ]], cheaper, until) != cheaper
        beta_pays = pays[: len(ends.rows)].copy()
        beta_pays[apart] = pays[len(ends.rows) :]
        return replace(ends, alpha=above_alpha, beta=above_beta, alpha_pays=pays[: len(ends.rows)], beta_pays=beta_pays)

    def _learn(self, nodes: Nodes, above: Integers, rows: Integers, cheaper: Integers, until: int) -> Integers:
        """Trains the nodes of one level in parallel; the side that each row then takes."""
        from sklearn.utils.parallel import Parallel, delayed

        usable = np.flatnonzero(rows < until)
        groups = [(node, usable[places]) for node, places in grouped(above[usable])]
        trained = Parallel(n_jobs=self.jobs, prefer="threads")(
            delayed(_trained)(self.base, self.data.of(rows[places]), cheaper[places]) for _, places in groups
        )
        for (node, _), (side, classifier) in zip(groups, trained, strict=True):
            nodes.sides[node] = side
            if classifier is not None:
                nodes.classifiers[node] = classifier
        return nodes.go_right(above, self.data.contexts[rows]).astype(np.int64)


def _trained(base: Classifier, data: Data, cheaper: Integers) -> tuple[int, Classifier | None]:
    """Line 5 of Algorithm 8 as weighted classification: a wrong side costs |cost left - cost right|."""
    from sklearn.base import clone

    weights = [data.costs[cheaper == side].sum() for side in (LEFT, RIGHT)]
    if 0 in weights or data.contexts.shape[1] == 0:
        return (RIGHT if weights[RIGHT] > weights[LEFT] else LEFT), None
    classifier: Classifier = clone(base)
    classifier.fit(data.contexts.astype(np.float64), cheaper, **{weights_name(base): data.costs})
    return LEARNED, classifier


def _data(log: Log, geometry: Geometry, losses: Within) -> Data:
    """A reachable leaf's window has its full width, so that Smooth_h is 1 / 2h wherever it is not 0."""
    low, high, (least, worst) = geometry.actions.low, geometry.actions.high, losses
    check_has_rows(len(log))
    for name, good, rule, remedy in (
        ("actions", are_within(log.actions, low, high), f"in [{low:g}, {high:g}]", range_advice("actions")),
        ("densities", are_densities(log.densities), "above 0 and finite", "Drop rows whose action was not drawn."),
        ("losses", are_within(log.losses, least, worst), f"in [{least:g}, {worst:g}]", range_advice("losses")),
    ):
        reject(~good, getattr(log, name), name, rule, remedy)
    costs = (log.losses - least) / (worst - least) / (2 * geometry.bandwidth * log.densities)
    return Data(conversion.matrix(log.contexts), costs)


def _share(rows: int, depth: int) -> int:
    if rows < depth:
        raise InputError(f"log must have a row for each of the {depth} levels; got {rows}. Leave partition out.", "log")
    return rows // depth
