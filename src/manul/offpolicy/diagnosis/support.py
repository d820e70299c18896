"""Tests of how much of the range of actions a log covers, and of the logged densities, knob by knob.

For any logging policy, 1 / (density * length of the range) averages 1 over all rows, and within any part of the range it
averages that part's share. Both sides are tested with bets (`intervals.Wealth`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from manul.actions.decision import Within
from manul.actions.space import ActionSpace
from manul.errors import InputError
from manul.logs.rows import UNIT, Rows
from manul.offpolicy.diagnosis.leaks import LEAKED, Leaks
from manul.offpolicy.diagnosis.symptoms import Symptom
from manul.offpolicy.evaluation.estimated_densities import are_rounded
from manul.offpolicy.evaluation.intervals import ClopperPearson, Wealth
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
SMALL, TINY = 100, 30  # effective sample sizes below which there is a warning and an error
FEW_ACTIONS = 100  # a piece with fewer distinct actions has discrete actions


ROUNDING = 1e-6  # how far, as a share, the product of the densities of knobs may be off
_LIMITS = " If limits between the knobs exclude the rest, all is well."


class MeanTest:
    """Tests whether nonnegative values average 1."""

    def __init__(self) -> None:
        self.wealth, self.count, self.total = Wealth(), 0, 0.0

    def add(self, values: Floats, zeros: int = 0) -> None:
        self.wealth.add(values, zeros)
        self.count += len(values) + zeros
        self.total += float(values.sum())

    @property
    def mean(self) -> float:
        return self.total / self.count if self.count else 0.0

    def ends(self, largest: float, failure: float) -> Within:
        """Bounds of the mean, each wrong with a probability of at most `failure`, if no value exceeds `largest`."""
        upper = ClopperPearson()
        upper.count, upper.total = self.count, self.total
        return self.wealth.lower(failure, largest), upper.ends(1 - 2 * failure, largest)[1]


class EffectiveSize:
    """The effective sample size of a uniform policy: about the number of rows that explored."""

    def __init__(self) -> None:
        self.rows, self.total, self.squares = 0, 0.0, 0.0

    def add(self, weights: Floats) -> None:
        self.rows += len(weights)
        self.total += float(weights.sum())
        self.squares += float((weights * weights).sum())

    @property
    def size(self) -> float:
        return self.total**2 / self.squares if self.squares else 0.0

    def findings(self) -> list[Symptom]:
        """A note if few rows explored, and a warning if next to none did."""
        if self.size >= SMALL:
            return []
        text = (
            f"About {self.size:,.0f} of {self.rows:,} rows explored; a policy very different from the logged one can be judged "
            f"by those only. {self._advice} if you plan to compare such policies."
        )
        return [("warning" if self.size < TINY else "note", "small effective sample", text)]

    @property
    def _advice(self) -> str:
        """A larger epsilon does not help if most rows explored already."""
        return "Log more decisions" if self.size > self.rows / 2 else "Log with a larger epsilon"


class Coverage:
    """Tests each knob alone, and the joint density of several; a single number is a knob without a name."""

    def __init__(self, space: ActionSpace) -> None:
        self.space, kinds = space, dict(space.knobs)
        straight = {name for name, knob in kinds.items() if not knob.is_discrete and not knob.is_bent}
        self.spans = {name: ActionSpace(knob).ends if name in straight else UNIT for name, knob in kinds.items()}
        self.numeric = [name for name, knob in kinds.items() if not knob.is_discrete]
        self.supports, self.columns = {name: Support() for name in kinds}, {name: Leaks() for name in kinds}
        self.whole, self.largest, self.by_knob, self.floors = MeanTest(), 1.0, True, True
        self.products, self.probabilities, self.outside, self.untested = _Count(), _Count(), _Count(), ""

    @property
    def several(self) -> bool:
        return len(self.supports) > 1

    @property
    def continuous(self) -> bool:
        """Whether equal rows are duplicates: one of several knobs is a range, or the actions of a single one differ."""
        return any(self.several or self.supports[name].continuous for name in self.numeric)

    def add(self, rows: Rows) -> None:
        """Add a piece of rows with valid actions and densities, inside the limits."""
        if not len(rows):
            return
        if self.several:
            shares = 1 / (rows.densities * np.prod([*rows.volumes.values()], axis=0))
            self.whole.add(shares)
            self.largest = max(self.largest, float(shares.max()))
        self.floors = self.floors and rows.floors is not None and not np.isnan(rows.floors).any()
        self.by_knob = self.by_knob and rows.by_knob is not None
        if not self.space.is_number and rows.by_knob is not None:
            product = np.prod([*rows.by_knob.values()], axis=0)
            self.products.add(rows, np.abs(product / rows.densities - 1) > ROUNDING)
            for name in [name for name in self.supports if name not in self.numeric]:
                self.probabilities.add(rows, rows.by_knob[name] > 1 + ROUNDING)
        for name, one in rows.knob_rows():
            self.supports[name].add(one)
            self.columns[name].add(one, continuous=name in self.numeric and self.supports[name].continuous)

    def inside(self, rows: Rows) -> Rows:
        """The rows inside the limits; without the context fields that limits need, only the ranges count."""
        try:
            inside = None if rows.left is None else rows.left.inside
        except InputError as error:
            self.untested = str(error)
            return replace(rows, space=rows.space.with_limits(()))
        if inside is None or inside.all():
            return rows
        self.outside.add(rows, ~inside)
        return rows.select(inside)

    def findings(self) -> list[Symptom]:
        """What is wrong with the densities, of all knobs and of each, or with the ranges."""
        counts = ((self.products, _PRODUCT), (self.probabilities, _PROBABILITY), (self.outside, _OUTSIDE))
        symptoms = [symptom for count, words in counts for symptom in count.symptom(words)]
        if self.untested:
            text = f"{self.untested} Densities were compared with the whole ranges."
            symptoms.append(("warning", "limits not tested", text))
        for name, support in self.supports.items() if self.by_knob else ():
            for symptom in support.findings(self.spans[name]):
                if not self.several or self.floors or symptom[1] == "wrong densities":
                    symptoms.append(self._of_knob(name, symptom))
        low, _ = self.whole.ends(self.largest, FAILURE)
        if low > 1 and not symptoms:
            text = f"The mean of 1 / (density * volume of the ranges) must be 1, but is {self.whole.mean:.3g}, more than chance "
            symptoms.append(("error", "wrong densities", text + "explains. Log the joint density of all knobs."))
        return symptoms

    def leaks(self) -> list[Symptom]:
        """Columns that were not known at the decision; those that know the loss are reported once."""
        wrong = any(title == "wrong densities" for _, title, _ in self.findings())
        symptoms: dict[tuple[str, str], Symptom] = {}
        for name, columns in self.columns.items():
            for symptom in columns.findings(wrong_densities=wrong):
                about_loss = symptom[1] in LEAKED
                stated = symptom if about_loss else self._of_knob(name, symptom)
                symptoms.setdefault((symptom[1], "" if about_loss else name), stated)
        return [*symptoms.values()]

    def size(self) -> list[Symptom]:
        """A note if few rows explored; with several knobs, that the test was skipped."""
        if not self.several:
            return next(iter(self.supports.values())).size.findings()
        missing = (
            "" if self.by_knob else " The log has no densities by knob, so single knobs and leaks were not tested."
        )
        text = "Few rows of a log with several knobs match another policy, so estimates rest on an outcome model. The effective "
        text += f"sample size of a uniform policy is a test for one knob and was skipped.{missing}"
        return [("note", "several knobs", text)]

    def _of_knob(self, name: str, symptom: Symptom) -> Symptom:
        """A symptom of one knob; what one of several never tries may be excluded by limits, so that is a warning."""
        severity, title, text = symptom
        uncovered = self.several and title in ("missing exploration", "actions with no support")
        stated = f"Knob {name}: {text}" if name else text
        return "warning" if uncovered else severity, title, stated + (_LIMITS if uncovered else "")


_OUTSIDE = (
    "broken limits",
    "the action breaks the limits of the log",
    "Log the decisions of each set of limits into a log of their own.",
)
_PRODUCT = (
    "densities do not multiply",
    "the densities of the knobs do not multiply to the joint density",
    "Log decision.density and decision.densities as they are.",
)
_PROBABILITY = (
    "probabilities above 1",
    "a step or option has a density above 1",
    "Steps and options have probabilities; log decision.densities as they are.",
)


class _Count:
    """Counts bad rows, and keeps the number of the first."""

    def __init__(self) -> None:
        self.bad, self.rows, self.first = 0, 0, 0

    def add(self, rows: Rows, flags: Any) -> None:
        if not self.bad and flags.any():
            self.first = rows.first + int(np.argmax(flags))
        self.bad, self.rows = self.bad + int(flags.sum()), self.rows + len(rows)

    def symptom(self, words: Sequence[str]) -> list[Symptom]:
        title, text, advice = words
        found = f"In {self.bad:,} of {self.rows:,} rows, {text}; the first is row {self.first}. {advice}"
        return [("error", title, found)] if self.bad else []


class Support:
    """Tests how much of the range the rows cover, as a whole and in each part."""

    def __init__(self) -> None:
        self.whole, self.bins = MeanTest(), [MeanTest() for _ in range(BINS)]
        self.size, self.largest, self.continuous = EffectiveSize(), 1.0, True
        self.rounded, self.floors = False, True

    def add(self, rows: Rows) -> None:
        lows, highs = rows.ends()
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
