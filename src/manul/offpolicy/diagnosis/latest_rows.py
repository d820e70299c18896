"""The latest rows of a log, kept for tests that need whole rows and their neighbours."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manul.logs.rows import Rows
from manul.offpolicy.diagnosis.smooth_regression import SmoothRegression
from manul.outcomes import LOSSES, Outcome
from manul.utils.validation import Floats

KEPT = 4096  # rows: enough for effects that matter, and few enough to take a fraction of a second
_SAME_TIME = 100  # rows: fewer than a season has, and enough for a mean
MAX_COLUMNS = 32  # of the contexts; of wider ones, those that go along with the actions and losses, and random mixtures


@dataclass(frozen=True, eq=False)
class LatestRows:
    """The columns of the latest rows: contexts, positions of the actions in [0, 1], and densities relative to uniform ones.

    `losses` are in the order of the rows; `continuous` says whether there is one knob with continuous actions.
    """

    contexts: Floats
    positions: Floats
    densities: Floats
    losses: Floats
    estimated: bool
    continuous: bool
    outcome: Outcome = LOSSES

    def __len__(self) -> int:
        return len(self.losses)

    @cached_property
    def ranks(self) -> Floats:
        """The ranks of the losses, so that no loss outweighs the others, without their trend; zeros if all are equal."""
        _, places, counts = np.unique(self.losses, return_inverse=True, return_counts=True)
        return self.without_trend((np.cumsum(counts) - (counts - 1) / 2)[places])

    def without_trend(self, column: Floats) -> Floats:
        """A column relative to its mean at the time, standardised; zeros if it is constant."""
        parts = np.array_split(column, max(len(column) // _SAME_TIME, 1))
        moved = np.concatenate([part - part.mean() for part in parts])
        spread = float(moved.std())
        return moved / spread if spread > 0 else moved

    @cached_property
    def columns(self) -> Floats:
        spread = self.contexts.std(axis=0)
        z: Floats = (self.contexts - self.contexts.mean(axis=0))[:, spread > 0] / spread[spread > 0]
        if z.shape[1] <= MAX_COLUMNS:
            return z
        targets = np.column_stack([self.positions - self.positions.mean(axis=0), self.ranks])
        first = np.argsort(-np.abs(z.T @ targets).max(axis=1), kind="stable")[: MAX_COLUMNS // 2]
        mixtures = np.random.default_rng(0).standard_normal((z.shape[1], MAX_COLUMNS - len(first)))
        return np.hstack([z[:, first], z @ mixtures])

    @cached_property
    def greedy(self) -> Floats:
        """The action that the contexts predict, for each knob; rows that explored hardly count."""
        model, numbers = SmoothRegression(self.columns), np.arange(len(self))
        weights = np.minimum(self.densities, np.quantile(self.densities, 0.9))
        predictions = []
        for column in self.positions.T:
            model.fit(numbers, column, weights / weights.mean())
            predictions.append(model.predict(numbers))
        return np.column_stack(predictions)

    @cached_property
    def decisions(self) -> Floats:
        """What describes a decision: context, action, its distance from the usual action in this context, and its density."""
        away = self.positions - self.greedy
        return np.column_stack([self.columns, self.positions, away, np.abs(away), np.log(self.densities)])


class LatestRowsKeeper:
    """Keeps the latest rows of a log."""

    def __init__(self) -> None:
        self.pieces, self.outcome, self.estimated = list[tuple[Floats, ...]](), LOSSES, False

    def add(self, rows: Rows) -> None:
        """Add a piece of rows with valid actions and densities."""
        kept = rows.select(np.isfinite(rows.losses))
        kept = kept.select(slice(max(len(kept) - KEPT, 0), None))
        self.outcome, self.estimated = rows.outcome, self.estimated or rows.estimated
        positions, densities = kept.relative
        contexts = np.nan_to_num(kept.contexts.astype(np.float64))
        self.pieces.append((contexts, positions, densities, kept.losses))
        while sum(len(piece[-1]) for piece in self.pieces[1:]) >= KEPT:
            self.pieces.pop(0)

    def rows(self, *, continuous: bool) -> LatestRows:
        contexts, positions, densities, losses = (
            np.concatenate(column)[-KEPT:] for column in zip(*self.pieces, strict=True)
        )
        return LatestRows(
            contexts,
            positions,
            densities,
            losses,
            estimated=self.estimated,
            continuous=continuous,
            outcome=self.outcome,
        )
