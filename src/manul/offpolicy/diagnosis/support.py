"""Tests of how much of the range of actions a log covers, and of the logged densities.

For any logging policy, 1 / (density * length of the range) averages 1 over all rows, and within any part of the range it
averages that part's share. Both sides are tested with bets (`intervals.Wealth`).
"""

from __future__ import annotations

import math

import numpy as np

from manul.actions.decision import Within
from manul.logs.batching import Rows
from manul.offpolicy.diagnosis.policy_weights import EffectiveSize, MeanTest
from manul.offpolicy.diagnosis.symptoms import Symptom
from manul.offpolicy.evaluation.estimated_densities import are_rounded
from manul.utils.validation import Floats

BINS = 10  # parts of the range that are tested separately
FAILURE = 1e-4  # the probability of a false alarm, for each group of tests
ROUNDED: Symptom = (
    "error",
    "rounded actions",
    "Most actions occur more than once, and their densities were estimated: the log says nothing about the actions between "
    "them, so other policies cannot be evaluated. optimize still gives a policy. To learn more, vary actions at "
    "random from now on.",
)
# Without floors, the largest 1 / (density * length) is the largest one so far. Actions with a hundredth of the uniform density may
# be missing by chance until so many rows have been seen.
RAREST = 100.0
SEEN_ROWS = math.log(2 * (BINS + 1) / FAILURE) * RAREST
FEW_ACTIONS = 100  # a piece with fewer distinct actions has discrete actions


class Support:
    """Tests how much of the range the rows cover, as a whole and in each part."""

    def __init__(self) -> None:
        self.whole, self.bins = MeanTest(), [MeanTest() for _ in range(BINS)]
        self.size, self.largest, self.continuous = EffectiveSize(), 1.0, True
        self.rounded, self.floors = False, True

    def add(self, rows: Rows, span: Within) -> None:
        """Add a piece of rows with valid actions and densities."""
        if not len(rows):
            return
        lows, highs = rows.ends(span)
        shares = 1 / (rows.densities * (highs - lows))
        bins = np.minimum(((rows.actions - lows) / (highs - lows) * BINS).astype(np.int64), BINS - 1)
        if not self.whole.count:
            self.continuous = len(np.unique(rows.actions)) > min(FEW_ACTIONS, len(rows) // 2)
            self.rounded = rows.estimated and are_rounded(rows.actions, rows.densities)
        self.largest = max(self.largest, float(shares.max()), _largest_share(rows, highs - lows))
        self.floors = self.floors and rows.floors is not None
        self.size.add(shares)
        self.whole.add(shares)
        for index, part in enumerate(self.bins):
            inside = shares[bins == index] * BINS
            part.add(inside, zeros=len(shares) - len(inside))

    def findings(self, span: Within) -> list[Symptom]:
        """Densities that are too small, and parts of the range without support."""
        failure = FAILURE / (2 * (BINS + 1))
        unseen = RAREST if not self.floors and self.whole.count < SEEN_ROWS else 1.0
        largest = max(self.largest, unseen)
        low, high = self.whole.ends(largest, failure)
        ends = [part.ends(largest * BINS, failure) for part in self.bins] if self.continuous else []
        thick, thin = (
            [i for i, (low, _) in enumerate(ends) if low > 1],
            [i for i, (_, high) in enumerate(ends) if high < 1],
        )
        symptoms: list[Symptom] = [ROUNDED] if self.rounded else []
        if low > 1 or thick:
            symptoms.append(self._wrong_densities(low, thick, span))
        if len(thin) > BINS / 2 or (high < 1 and not thin):
            symptoms.append(self._missing_exploration(high))
        elif thin:
            symptoms.append(_missing_support(thin, span))
        return symptoms

    def _wrong_densities(self, low: float, thick: list[int], span: Within) -> Symptom:
        part = "" if low > 1 else f" for actions {_ranges(thick, span)}"
        worst = self.whole.mean if low > 1 else max(self.bins[index].mean for index in thick)
        return (
            "error",
            "wrong densities",
            f"The mean of 1 / (density * length of the range) must be 1, but is {worst:.3g}{part}, more than chance explains. "
            "Estimates would be wrong by about that factor. Log the density of the whole mixture: an explored action "
            "inside the greedy window has the density of both parts.",
        )

    def _missing_exploration(self, high: float) -> Symptom:
        return (
            "error",
            "missing exploration",
            f"The logged actions cover about {100 * self.whole.mean:.3g} % of the range, at most {100 * min(high, 1.0):.3g} %. The "
            "rest was never tried, or the densities are too large. Use an epsilon above 0 and log the mixture's density.",
        )


def _largest_share(rows: Rows, spans: Floats) -> float:
    """The largest 1 / (density * length) that the logged policy could have given, if the log has its floors."""
    if rows.floors is None:
        return 0.0
    floors = rows.floors * spans
    explored = floors[floors > 0]
    return float(1 / explored.min()) if len(explored) else 0.0


def _missing_support(thin: list[int], span: Within) -> Symptom:
    return (
        "error",
        "actions with no support",
        f"Actions {_ranges(thin, span)} are much rarer than the logged densities imply, so policies that choose them "
        "cannot be evaluated. Declare the explored range with actions=(low, high).",
    )


def _ranges(bins: list[int], span: Within) -> str:
    step = (span[1] - span[0]) / BINS
    starts = [index for index in bins if index - 1 not in bins]
    stops = [index for index in bins if index + 1 not in bins]
    ends = zip(starts, stops, strict=True)
    return ", ".join(f"{span[0] + first * step:g} to {span[0] + (last + 1) * step:g}" for first, last in ends)
