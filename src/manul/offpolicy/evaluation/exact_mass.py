"""Exact-mass intervals: empirical likelihood for logs that keep the pieces of the distributions they were drawn from.

In every row, the mass of the policy is known where its weights are at most a bound C (`piece_masses.py`), so that no weight above C
has to be allowed for. With the weight w, the loss u, the kept weight k = w if w <= C and otherwise 0, and the covered mass c:

    g = k - c averages 0, given the context and the logged distribution;
    s = k (u - q) + Q + (1 - c) v averages the loss of the policy, if the actions beyond C have the loss v.

The lower end of the interval charges the best loss, v = 0, and the upper end the worst, v = 1. The control q is any prediction that
does not depend on the row's own action and loss, and Q its mean over the kept mass; without one, both are 0. The gain over the logged
policy subtracts u from s, and that over another policy subtracts its g and s, charged with the opposite loss.

The rule of three: without a single loss in m decisions, the loss may still be 3 / m, because that happens in 5 % of logs. So the
upper end of the loss is at least -log(error) times the effective weight (sum k^2 / sum k) divided by the number of rows, and what is
charged; the lower end mirrors it. Empirical likelihood alone would allow for half of that.

C is the one with the smallest mean uncovered mass plus 2.305 C / rows, which an unseen weight of C could add. It depends on
contexts and distributions only, neither on actions nor on losses. Up to `MOST_ROWS` rows are kept in memory to choose it; a longer log has
its terms summed for the few bounds that these rows suggest for longer logs, and the choice between them is made at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.offpolicy.evaluation.empirical_likelihood import SMALLEST_BOUND, Moments, last_likely, profile
from manul.offpolicy.evaluation.piece_masses import Masses
from manul.utils.validation import Floats

MOST_ROWS = 16_384
LONGER = (1, 4, 16, 64)  # times as many rows, for which bounds are tried once there are more than MOST_ROWS
UNSEEN = 2.305  # a weight that no row has may have the probability of as many rows, before it is too unlikely
PER_OCTAVE, OCTAVES = 8, 24  # bounds from 1 to 2^24
# Weights are often ratios of small numbers. Bounds that are none stay away from them, so that rounding does not decide what is kept.
BOUNDS = 1.0123 * 2.0 ** (np.arange(PER_OCTAVE * OCTAVES + 1) / PER_OCTAVE)
Against = Literal["nothing", "logged", "other"]


@dataclass(frozen=True, eq=False)
class PolicyTerms:
    """A policy on rows: the weights of the logged actions and its masses; optionally predicted losses.

    `predicted` are the predictions for the logged actions, and `curves` those of the policy's pieces, of all rows.
    """

    weights: Floats
    masses: Masses
    predicted: Floats | None = None
    curves: Floats | None = None

    def moments(self, losses: Floats, bound: float) -> tuple[Floats, Floats, Floats]:
        """The moments g and s, less what is charged, and the mass that is not covered."""
        kept, covered = np.where(self.weights <= bound, self.weights, 0.0), self.masses.covered(bound)
        if self.predicted is None or self.curves is None:
            return kept - covered, kept * losses, 1.0 - covered
        expected = self.masses.integrate(bound, self.curves[self.masses.pieces])
        return kept - covered, kept * (losses - self.predicted) + expected, 1.0 - covered


class Block(NamedTuple):
    """Rows that wait for the choice of the bound."""

    losses: Floats
    policy: PolicyTerms
    other: PolicyTerms | None
    clusters: npt.NDArray[np.int64] | None


class ExactMass:
    """The interval of the loss of a policy, or of its difference to the loss of the logged or another policy; losses are in [0, 1]."""

    def __init__(self, against: Against = "nothing", *, clustered: bool = False) -> None:
        self.against, self.clustered = against, clustered
        self.rows, self._waiting, self._flushed = 0, list[Block](), 0
        self._levels = np.zeros(len(BOUNDS) + 1)  # the mass of the policy by the bound that its weight needs
        self._largest = np.zeros(len(BOUNDS) + 1)
        self._sums = dict[int, Cells | Clusters]()
        self._totals = dict[
            int, Floats
        ]()  # of the kept weights, their squares, the logged losses and those of the other policy
        self._numbers = dict[object, int]()

    def add(
        self,
        losses: Floats,
        policy: PolicyTerms,
        other: PolicyTerms | None = None,
        clusters: Sequence[object] = (),
    ) -> None:
        """Add rows with the terms of the policy, and of the other one if it is compared with it."""
        numbers = None
        if self.clustered:
            known = self._numbers
            numbers = np.array([known.setdefault(cluster, len(known)) for cluster in clusters], np.int64)
        for each in (policy, *([] if other is None else [other])):
            levels = np.searchsorted(BOUNDS, each.masses.weights)
            self._levels += np.bincount(levels, each.masses.masses, len(self._levels))
            np.maximum.at(self._largest, levels, each.masses.weights)
        self.rows += len(losses)
        block = Block(losses, policy, other, numbers)
        if self._sums:
            self._sum([block])
            return
        self._waiting.append(block)
        if self.rows > MOST_ROWS:
            self._start({self._best(self.rows * factor) for factor in LONGER})

    def ends(self, level: float) -> Within:
        """The interval with the confidence `level` on both sides together; each side alone has half of the error."""
        number, cells = self._chosen()
        low, high = (last_likely(self._moments(number, cells, side), level, side) for side in (0, 1))
        least, most = self._rule_of_three(number, (1 - level) / 2)
        return min(low, least), max(high, most)

    def _rule_of_three(self, number: int, error: float) -> Within:
        """The highest low end and the lowest high end that an interval can have, whatever losses the matching decisions have."""
        weights, squares, logged, other = self._totals[number].tolist()
        effective = squares / weights if weights > 0 else self._kept(number)
        reach, missing = -math.log(error) * effective / self.rows, self._uncovered()[number]
        subtracted = {"nothing": 0.0, "logged": logged, "other": other}[self.against] / self.rows
        return max(1.0 - missing - reach, 0.0) - subtracted, min(missing + reach, 1.0) - subtracted

    def evidence_against_masses(self) -> float:
        """How unlikely it is that g averages 0, as it does if pieces and densities are right: the logarithm of a likelihood ratio."""
        number, cells = self._chosen()
        return profile(self._moments(number, cells, 1)).maximum

    @property
    def bound(self) -> float:
        """The largest weight that is kept."""
        return self._kept(self._chosen()[0])

    @property
    def uncovered(self) -> float:
        """The mean mass of the policy that is not covered, of both policies if two are compared."""
        number, _ = self._chosen()
        return float(self._uncovered()[number])

    def _chosen(self) -> tuple[int, Cells | Clusters]:
        if not self._sums:
            self._start({self._best(self.rows)})
        number = min(self._sums, key=lambda each: self._costs(self.rows)[each])
        return number, self._sums[number]

    def _uncovered(self) -> Floats:
        policies = 2 if self.against == "other" else 1
        return np.maximum(policies - np.cumsum(self._levels[:-1]) / self.rows, 0.0)

    def _costs(self, rows: int) -> Floats:
        return self._uncovered() + UNSEEN * BOUNDS / rows

    def _best(self, rows: int) -> int:
        return int(np.argmin(self._costs(rows)))

    def _kept(self, number: int) -> float:
        return float(self._largest[: number + 1].max())

    def _start(self, numbers: set[int]) -> None:
        self._sums = {number: Clusters() if self.clustered else Cells() for number in sorted(numbers)}
        self._totals = {number: np.zeros(4) for number in self._sums}
        self._sum(self._waiting)
        self._waiting = []

    def _sum(self, blocks: Sequence[Block]) -> None:
        for number, cells in self._sums.items():
            tables = [self._table(block, float(BOUNDS[number]), self._totals[number]) for block in blocks]
            numbers = [block.clusters for block in blocks if block.clusters is not None]
            cells.add(np.concatenate(tables), np.concatenate(numbers) if numbers else None)

    def _table(self, block: Block, bound: float, totals: Floats) -> Floats:
        """One row of g, s charged with the best and s charged with the worst loss per row; `totals` are added to."""
        firsts, seconds, missing = block.policy.moments(block.losses, bound)
        kept = firsts + 1.0 - missing
        totals += [kept.sum(), (kept * kept).sum(), block.losses.sum(), 0.0]
        if self.against == "logged":
            seconds = seconds - block.losses
        low, high = seconds, seconds + missing
        if block.other is not None:
            others, theirs, lacking = block.other.moments(block.losses, bound)
            firsts, low, high = firsts - others, low - theirs - lacking, high - theirs
            totals[3] += theirs.sum()
        return np.column_stack([firsts, low, high])

    def _moments(self, number: int, cells: Cells | Clusters, side: int) -> Moments:
        """The moments of one side: 0 charges the best loss and 1 the worst."""
        most, missing = max(self._kept(number), SMALLEST_BOUND), self._uncovered()[number]
        span = (0.0, 1.0) if self.against == "nothing" else (-1.0, 1.0)
        moments, factor = cells.moments(side, span)
        if self.against == "other":
            charged = missing * (side - 0.5)
            extremes = [(-most, charged - most), (-most, charged), (most, charged), (most, charged + most)]
        else:
            covered, charged, logged = 1.0 - missing, missing * side, float(self.against == "logged")
            extremes = [(-covered, charged), (-covered, charged - logged)]
            extremes += [(most - covered, charged), (most - covered, charged + most - logged)]
        scaled = ((factor * one, factor * two) for one, two in dict.fromkeys(extremes))
        return moments.with_extremes(*scaled, factor=factor)


class Cells:
    """Counts and sums of rows with similar moments; the edges of the cells do not depend on the rows."""

    def __init__(self) -> None:
        self.keys: npt.NDArray[np.int64] = np.empty(0, np.int64)
        self.totals: Floats = np.empty((0, 4))

    def add(self, table: Floats, _clusters: npt.NDArray[np.int64] | None) -> None:
        firsts, lows, highs = table.T
        sizes = np.abs(firsts)
        # Near 0 the cells of g are 1/90 wide, and beyond 1 there are 8 per doubling; those of s are 1/32 as wide as g.
        level = np.sign(firsts) * np.rint(8.0 * np.log2(1.0 + 8.0 * sizes))
        share, charged = np.rint(32.0 * lows / (1.0 + sizes)), np.rint(32.0 * (highs - lows))
        keys = ((level + 512).astype(np.int64) << 20) + ((share + 512).astype(np.int64) << 8) + charged.astype(np.int64)
        self.keys, cells = np.unique(np.concatenate([self.keys, keys]), return_inverse=True)
        parts = np.concatenate([self.totals, np.column_stack([np.ones(len(table)), table])])
        self.totals = np.column_stack([np.bincount(cells, column, len(self.keys)) for column in parts.T])

    def moments(self, side: int, span: Within) -> tuple[Moments, float]:
        counts = self.totals[:, 0]
        firsts, seconds = (self.totals[:, 1:] / counts[:, np.newaxis]).T[[0, 1 + side]]
        return Moments(counts, np.ones(len(counts)), firsts, seconds, span), 1.0


class Clusters:
    """Sums by cluster, such as a user, whose rows depend on each other; a cluster is one observation."""

    def __init__(self) -> None:
        self.totals: Floats = np.zeros((0, 4))

    def add(self, table: Floats, clusters: npt.NDArray[np.int64] | None) -> None:
        assert clusters is not None
        columns = np.column_stack([np.ones(len(table)), table]).T
        count = max(int(clusters.max()) + 1, len(self.totals))
        totals: Floats = np.column_stack([np.bincount(clusters, column, count) for column in columns])
        totals[: len(self.totals)] += self.totals
        self.totals = totals

    def moments(self, side: int, span: Within) -> tuple[Moments, float]:
        """The moments of the clusters in units of their mean size, and the factor of the largest one."""
        known = self.totals[self.totals[:, 0] > 0]
        sizes = known[:, 0]
        mean = float(sizes.mean())
        firsts, seconds = known[:, 1] / mean, known[:, 2 + side] / mean
        return Moments(np.ones(len(known)), sizes / mean, firsts, seconds, span), float(sizes.max()) / mean
