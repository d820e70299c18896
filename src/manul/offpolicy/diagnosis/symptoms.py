"""Symptoms in the rows of a log: values outside their ranges, duplicates, drift."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.logs.rows import Rows
from manul.outcomes import LOSSES
from manul.utils.validation import USABLE, Floats, are_within, range_advice, usable_densities

Symptom = tuple[str, str, str]
Hashes = npt.NDArray[np.uint64]

_MAX_HASHES = 2**16  # 512 kB of memory
_PARTS = 64  # of the log, to find its middle without knowing its length
_PIECE_PARTS = 32  # of a piece at first
_STEPS = 20  # increases of a column that never decreases, such as a counter or a time; it drifts by design
MANY_COPIES = 0.01  # a share of duplicates that makes intervals clearly too narrow
# A share of duplicates makes intervals narrower by the same share: a thousandth is far below their own error, and requests are
# sometimes sent twice. In a short log, one or two rows can be equal by accident.
FEW_COPIES, LEAST_COPIES = 0.001, 3
_LARGE_DRIFT = 0.2  # standard deviations; smaller drift is harmless, however significant


class Outside:
    """Counts the actions, densities and losses that are invalid."""

    def __init__(self, actions: Within, losses: Within) -> None:
        self.actions, self.losses = actions, losses
        self.rows = 0
        self.counts = {"actions": 0, "densities": 0, "losses": 0}
        self.firsts: dict[str, tuple[int, float]] = {}
        self.outcome = LOSSES

    def add(self, rows: Rows) -> Rows:
        """Add a piece; return the rows with a valid action and density."""
        number = rows.space.is_number  # the log itself checks other values
        good = {
            "actions": are_within(rows.actions, *rows.ends()) if number else np.ones(len(rows), bool),
            "densities": usable_densities(rows.densities),
            "losses": are_within(rows.losses, *self.losses),
        }
        self.rows, self.outcome = self.rows + len(rows), rows.outcome
        for name, flags in good.items():
            self.counts[name] += int((~flags).sum())
            if not flags.all() and name not in self.firsts:
                first = int(np.argmin(flags))
                self.firsts[name] = rows.first + first, float(vars(rows)[name][first])
        usable = good["actions"] & good["densities"]
        return rows if usable.all() else rows.select(usable)

    def findings(self) -> list[Symptom]:
        """One symptom for each column with invalid values."""
        (low, high), (least, worst) = self.actions, self.outcome.flip(self.losses)
        outcomes = self.outcome.plural
        rules = {
            "actions": (f"in [{low:g}, {high:g}]", range_advice("actions")),
            "densities": (USABLE, "Log the density of each decision, or see estimate_densities."),
            "losses": (f"in [{least:g}, {worst:g}]", range_advice(self.outcome.keywords)),
        }
        symptoms = []
        for column, (row, number) in self.firsts.items():
            stated = column == "losses"
            name, value = (outcomes, self.outcome.from_loss(number)) if stated else (column, number)
            text = f"{self.counts[column]:,} of {self.rows:,} {name} are not {rules[column][0]}; the first is {value:g} in row {row}. "
            symptoms.append(("error", f"{name} outside the range", text + rules[column][1]))
        return symptoms


class HashSample:
    """The share of copies among hashes, in a fixed amount of memory: only hashes that end in enough zeros are kept.

    A copy has the hash of its original, so the share of copies among the kept hashes estimates the share among all.
    """

    def __init__(self) -> None:
        self.hashes: Hashes = np.empty(0, np.uint64)
        self.mask = np.uint64(0)

    def add(self, hashes: Hashes) -> None:
        self.hashes = np.concatenate([self.hashes, hashes[hashes & self.mask == 0]])
        while len(self.hashes) > _MAX_HASHES:
            self.mask = np.uint64(2 * int(self.mask) + 1)
            self.hashes = self.hashes[self.hashes & self.mask == 0]

    @property
    def share(self) -> float:
        """The share of hashes that are copies of an earlier one."""
        return 1 - len(np.unique(self.hashes)) / len(self.hashes) if len(self.hashes) else 0.0


class Duplicates:
    """Finds rows that occur more than once."""

    def __init__(self) -> None:
        self.sample, self.outcome, self.rows = HashSample(), LOSSES, 0

    def add(self, rows: Rows) -> None:
        self.sample.add(_hashes(rows))
        self.outcome, self.rows = rows.outcome, self.rows + len(rows)

    def findings(self, *, continuous: bool) -> list[Symptom]:
        """Duplicates are a symptom only if there are several and actions are continuous; discrete actions repeat by chance."""
        share = self.sample.share
        if share < FEW_COPIES or round(share * self.rows) < LEAST_COPIES or not continuous:
            return []
        severity = "error" if share > MANY_COPIES else "warning"
        return [
            (
                severity,
                "duplicated rows",
                f"{100 * share:.2g} % of the rows are exact duplicates, which makes intervals too narrow. "
                f"Join decisions and {self.outcome.plural} again so that each decision has one row.",
            )
        ]


class Drift:
    """Compares the mean and variance of each feature between the first and the second half of the contexts.

    Sums are kept for up to 128 parts of equal length; neighbours are merged when there are more. The spread of the parts
    tells drift from rows that come in clusters, such as several rows of one user. A counter is no drift.
    """

    def __init__(self) -> None:
        self.parts: list[Floats] = []
        self.size = 1
        self.waiting: list[Floats] = []
        self.scale: tuple[Floats, Floats] | None = None
        self.names: list[str] = []
        self.last: Floats = np.empty(0)
        self.ascents, self.descents = np.zeros(0), np.zeros(0)

    def add(self, rows: Rows) -> None:
        contexts = rows.contexts.astype(np.float64)
        self._add_steps(contexts)
        if self.scale is None:
            spread = contexts.std(axis=0)
            self.scale = contexts.mean(axis=0), np.where(spread > 0, spread, 1.0)
            self.names = rows.context_names()
        z = (contexts - self.scale[0]) / self.scale[1]
        for part in np.array_split(z, max(1, min(_PIECE_PARTS, len(z) // 32))):
            powers = [(part**power).sum(axis=0) for power in range(1, 5)]
            self._add_sums(np.array([np.full(z.shape[1], len(part)), *powers]))

    def findings(self, failure: float) -> list[Symptom]:
        """The features whose difference is significant and large."""
        parts = [*self.parts, *([sum(self.waiting)] if self.waiting else [])]
        if len(parts) < 2 or parts[0].shape[1] == 0:  # type: ignore[union-attr]
            return []
        sums = np.array(parts)
        before = np.cumsum(sums[:, 0, 0]) <= sums[:, 0, 0].sum() / 2
        before[0] = True
        if before.all():
            return []
        limit = NormalDist().inv_cdf(1 - failure / (4 * sums.shape[2]))
        drifts = _differs(sums[before], sums[~before], 1, limit) | _differs(sums[before], sums[~before], 2, limit)
        drifts &= ~((np.minimum(self.ascents, self.descents) == 0) & (self.ascents + self.descents >= _STEPS))
        if not drifts.any():
            return []
        features = np.flatnonzero(drifts)
        names = ", ".join(self.names[feature] for feature in features[:8]) + (", ..." if len(features) > 8 else "")
        return [
            (
                "warning",
                "context drift",
                f"The mean or variance of {len(features)} of {len(drifts)} features differs between the first and the second half: "
                f"feature {names}. Estimates describe the contexts of the log; evaluate on recent rows.",
            )
        ]

    def _add_steps(self, contexts: Floats) -> None:
        """Count how often each column ascends and descends from one row to the next."""
        steps = np.diff(contexts, axis=0, prepend=self.last[np.newaxis] if len(self.last) else contexts[:1])
        up, down = (steps > 0).sum(axis=0), (steps < 0).sum(axis=0)
        self.ascents, self.descents = (self.ascents + up, self.descents + down) if len(self.last) else (up, down)
        self.last = contexts[-1] if len(contexts) else self.last

    def _add_sums(self, sums: Floats) -> None:
        self.waiting.append(sums)
        if len(self.waiting) < self.size:
            return
        self.parts.append(np.sum(self.waiting, axis=0))
        self.waiting = []
        if len(self.parts) == 2 * _PARTS:
            self.parts = [left + right for left, right in zip(self.parts[::2], self.parts[1::2], strict=True)]
            self.size *= 2


def _differs(first: Floats, second: Floats, power: int, limit: float) -> npt.NDArray[np.bool_]:
    """Whether the mean of a power differs between two halves, each the sums of several parts."""
    halves = [part.sum(axis=0) for part in (first, second)]
    means = [half[power] / half[0] for half in halves]
    variances = [
        np.maximum(np.maximum(half[2 * power] / half[0] - mean**2, 0.0) / half[0], _clustered(parts, power, mean))
        for half, mean, parts in zip(halves, means, (first, second), strict=True)
    ]
    gap = np.abs(means[0] - means[1])
    differs: npt.NDArray[np.bool_] = (gap > limit * np.sqrt(variances[0] + variances[1])) & (gap > _LARGE_DRIFT)
    return differs


def _clustered(parts: Floats, power: int, mean: Floats) -> Floats:
    """The variance of the mean of a half from the spread of its parts, whose rows may depend on each other."""
    count = len(parts)
    if count < 2:
        return np.zeros_like(mean)
    weights = parts[:, 0] / parts[:, 0].sum(axis=0)
    deviations = parts[:, power] / parts[:, 0] - mean
    variance: Floats = (weights * weights * deviations * deviations).sum(axis=0) * count / (count - 1)
    return variance


def _hashes(rows: Rows) -> Hashes:
    columns = [*np.atleast_2d(rows.positions.T), rows.densities, rows.losses, *rows.contexts.T.astype(np.float64)]
    mixed = np.full(len(rows), 0x9E3779B97F4A7C15, np.uint64)
    for column in columns:
        mixed ^= np.ascontiguousarray(column, dtype=np.float64).view(np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    return mixed
