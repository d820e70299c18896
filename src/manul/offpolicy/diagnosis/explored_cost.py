"""Explored actions that cost less than the logged policy's own: losses that are rewards, or a policy worse than random."""

from __future__ import annotations

import math

import numpy as np

from manul.logs.rows import Rows
from manul.offpolicy.diagnosis.latest_rows import LatestRows
from manul.offpolicy.diagnosis.smooth_regression import SmoothRegression, z_score
from manul.offpolicy.diagnosis.symptoms import Symptom
from manul.outcomes import LOSSES
from manul.utils.validation import Floats

LIKELY, CERTAIN = 2.5, 4.0  # standard errors
_BLOCK = 32  # rows
_LEAST_BLOCKS = 8
_LEAST_ROWS = 200
_MEMORY = 0.98  # of the largest weight of earlier blocks, which is about the variance of the next weights


class ExploredCost:
    """Compares a uniform policy with the logged one: (loss - earlier mean loss) * (weight - 1) averages their difference.

    Given the past, a weight 1 / (density * length of the range) averages 1, so neither trends nor an epsilon that fades
    matters. Blocks count less if their weights are likely to be large.
    """

    def __init__(self) -> None:
        self.losses, self.weights = np.empty(0), np.empty(0)  # of the block that is not complete
        self.mean, self.largest = math.nan, 1.0
        self.total, self.variance, self.blocks, self.outcome = 0.0, 0.0, 0, LOSSES

    def add(self, rows: Rows) -> None:
        """Add a piece of rows with valid actions and densities; estimated densities say nothing."""
        if not rows.estimated:
            rows = rows.select(np.isfinite(rows.losses))
            self.outcome = rows.outcome
            self.add_rows(rows.relative[1], rows.losses)

    def add_rows(self, densities: Floats, losses: Floats) -> None:
        """Add rows, with densities relative to a uniform policy."""
        self.losses, self.weights = np.append(self.losses, losses), np.append(self.weights, 1 / densities)
        complete = len(self.losses) // _BLOCK * _BLOCK
        for start in range(0, complete, _BLOCK):
            self._add_block(self.losses[start : start + _BLOCK], self.weights[start : start + _BLOCK])
        self.losses, self.weights = self.losses[complete:], self.weights[complete:]

    def _add_block(self, losses: Floats, weights: Floats) -> None:
        excess = weights - 1
        if not math.isnan(self.mean) and excess.any():
            difference = float(((losses - self.mean) * excess).sum()) / self.largest
            self.total, self.variance, self.blocks = (
                self.total + difference,
                self.variance + difference**2,
                self.blocks + 1,
            )
        self.mean = float(losses.mean())
        self.largest = max(_MEMORY * self.largest, float(weights.max()), 1.0)

    def findings(self, rows: LatestRows) -> list[Symptom]:
        """A warning if the difference is likely, and certain among the latest rows.

        Neither is enough alone: few weights are large, so their sum is not normal if losses are rare, and the densities of
        a policy that used more than the contexts go along with what it used.
        """
        if self.blocks < _LEAST_BLOCKS or not self.variance or rows.estimated:
            return []
        z = self.total / math.sqrt(self.variance)
        if z > -LIKELY or _z_of_rare_actions(rows) > -CERTAIN:
            return []
        outcome = self.outcome
        better = "earn more" if outcome.higher else "cost less"
        given, meant = ("rewards", "losses") if outcome.higher else ("losses", "rewards")
        text = (
            f"Actions drawn at random {better} than those that the logged policy preferred, more than chance explains. "
        )
        advice = (
            f"Either these {given} are {meant}, or {outcome.plural} and actions do not belong together, or the logged policy is "
            "worse than random."
        )
        return [("warning", f"explored actions {better}", text + advice)]


def _z_of_rare_actions(rows: LatestRows) -> float:
    """Whether losses are lower where densities are, compared with other rows of the same time and with similar contexts.

    This has more power than weights if few rows explored.
    """
    if len(rows) < _LEAST_ROWS or not rows.ranks.any():
        return 0.0
    numbers, rarity = np.arange(len(rows)), -np.log(rows.densities)
    surprise = rows.ranks - SmoothRegression(rows.columns).held_out_predictions(numbers, rows.ranks)
    parts = np.array_split(numbers, len(rows) // _BLOCK)
    centred = np.concatenate([rarity[part] - rarity[part].mean() for part in parts])
    # If losses are rare, those of explored rows may all be missing, and with them the variance of the products.
    independent = math.sqrt(float((centred**2).sum() * (surprise**2).mean()))
    total = float((surprise * centred).sum())
    return min(total / independent, z_score(surprise * centred), key=abs) if independent > 0 else 0.0
