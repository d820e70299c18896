"""Reasons not to trust an estimate: weights that do not average 1, too small a sample, one logged action and others."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from manul.actions.decision import Within
from manul.logs.rows import Rows
from manul.offpolicy.estimate import Objection
from manul.offpolicy.evaluation.empirical_likelihood import EmpiricalLikelihood
from manul.offpolicy.evaluation.estimated_densities import HIGHEST, LOWEST
from manul.offpolicy.evaluation.intervals import Terms, is_approximate, is_exact
from manul.outcomes import LOSSES
from manul.utils.validation import Floats

EVIDENCE = 5.4  # against a mean weight of 1; 1 false alarm in 6,000 logs
SMALL = 30.0  # effective size: below, the normal interval covers at most 55 %
TINY = 10.0  # effective size: below, the normal interval covers 22 %
WIDE = 0.5  # of the range of losses
ENOUGH = 100.0  # effective size: an interval of several knobs and the verdict on a gain need as many
HEAVY = 30.0  # rows that determine the spread of the weights: with fewer, normal intervals hold in 40 to 90 % of logs
INFLUENTIAL = 20.0  # rows that determine the standard error of dr: with fewer, the same
TOLERANCE = 1e-9  # of rounding
CHANCE = 3.0  # standard errors by which weights, or predictions, of matching decisions may differ from the policy's
MOST_DECLARED = 100.0  # times the width of the losses may their range be as wide; skewed and rare losses need room
FEW_ROWS = 20  # with fewer rows, one action may be chance if actions are discrete
LARGEST = 1e60  # fourth powers of larger numbers overflow
_BETTER = "The default interval of snips allows for that."


class Moments:
    """Sums of powers of values, less the first value, which keeps digits if they all are alike.

    >>> moments = Moments()
    >>> moments.add(np.repeat([1.0, 3.0], 50))
    >>> moments.mean, moments.z, moments.determining_rows
    (2.0, 20.0, 100.0)
    """

    def __init__(self) -> None:
        self.first: float | None = None
        self.sums = np.zeros(5)

    def add(self, values: Floats) -> None:
        self.first = float(values[0]) if self.first is None and len(values) else self.first
        shifted = np.clip(values - (self.first or 0.0), -LARGEST, LARGEST)
        self.sums += [np.sum(shifted**power) for power in range(5)]

    @property
    def mean(self) -> float:
        return (self.first or 0.0) + float(self.sums[1] / self.sums[0])

    @property
    def z(self) -> float:
        """The mean divided by its standard error; 0 if all values are equal."""
        square, _ = self._central
        return self.mean / math.sqrt(square / float(self.sums[0])) if square > 0 else 0.0

    @property
    def determining_rows(self) -> float:
        """How many rows determine the variance: (sum of squares)^2 / sum of fourth powers, of what differs from the mean."""
        square, fourth = self._central
        return float(self.sums[0]) * square**2 / fourth if square > 0 and fourth > 0 else math.inf

    @property
    def _central(self) -> tuple[float, float]:
        one, two, three, four = (self.sums[1:] / self.sums[0]).tolist()
        square = two - one**2
        if square <= 1e-12 * max(two, 1e-12):  # rounding
            return 0.0, 0.0
        return square, four - 4 * one * three + 6 * one**2 * two - 3 * one**4


def is_supported(mean_weight: float, effective_size: float) -> bool:
    """Whether a log has so many decisions like those of a policy that an interval of its loss can be trusted."""
    return LOWEST <= mean_weight <= HIGHEST and effective_size >= ENOUGH


class Evidence:
    """Collects what objections are made of, piece by piece."""

    def __init__(self) -> None:
        self.likelihood, self.rows, self.weights, self.squares = EmpiricalLikelihood(), 0, 0.0, 0.0
        self.lowest_action, self.highest_action, self.several = np.array(np.inf), np.array(-np.inf), False
        self.lowest_loss, self.highest_loss, self.outcome = math.inf, -math.inf, LOSSES
        self.powers, self.controls, self.influences = np.zeros(2), Moments(), Moments()

    def add(self, rows: Rows, terms: Terms) -> None:
        self.add_terms(terms)
        self.lowest_action = np.minimum(self.lowest_action, rows.positions.min(axis=0))
        self.highest_action = np.maximum(self.highest_action, rows.positions.max(axis=0))
        self.several, self.outcome = not rows.space.is_number, rows.outcome
        self.lowest_loss = min(self.lowest_loss, float(rows.losses.min()))
        self.highest_loss = max(self.highest_loss, float(rows.losses.max()))

    def add_terms(self, terms: Terms) -> None:
        """Add a piece whose actions are not known."""
        self.likelihood.add(terms)
        self.rows += len(terms.weights)
        self.weights += float(terms.weights.sum())
        self.squares += float((terms.weights * terms.weights).sum())
        squares = np.minimum(terms.weights, LARGEST) ** 2
        self.powers += [squares.sum(), (squares * squares).sum()]
        if terms.controls is not None:
            self.controls.add(terms.controls)
            self.influences.add(terms.numerators)

    @property
    def mean_weight(self) -> float:
        """The mean weight, which is 1 if the logged densities are right."""
        return self.weights / self.rows

    @property
    def effective_size(self) -> float:
        """The effective sample size; 0 if no row matches."""
        return self.weights**2 / self.squares if self.squares else 0.0

    @property
    def determining_rows(self) -> float:
        """How many rows determine the spread of the weights: (sum of squares)^2 / sum of fourth powers."""
        squares, fourths = self.powers.tolist()
        return squares**2 / fourths if fourths else 0.0

    @property
    def missing_weight(self) -> float:
        """By how many standard errors the mean weight is below 1."""
        variance = self.squares / self.rows - self.mean_weight**2
        return (1.0 - self.mean_weight) / math.sqrt(variance / self.rows) if variance > 0 else 0.0

    @property
    def supported(self) -> bool:
        """Whether the log has so many decisions like those of the policy that an interval can be trusted."""
        return is_supported(self.mean_weight, self.effective_size)

    @property
    def corrects(self) -> bool:
        """Whether the log has enough decisions like those of the policy for weights to correct a model; fewer add noise."""
        return LOWEST <= self.mean_weight <= HIGHEST and self.effective_size >= SMALL

    def objections(
        self,
        largest_weight: float,
        interval: str,
        ends: Within,
        *,
        has_model: bool = False,
        scale: Within | None = None,
        value: float | None = None,
        against_masses: float = 0.0,
    ) -> tuple[Objection, ...]:
        """The objections to an estimate with an interval of losses scaled to [0, 1]; errors first.

        `has_model` says that the estimate rests on an outcome model where no decisions match. `scale` is the declared range
        of losses, and `value` the scaled estimate, if the interval may not contain it. `against_masses` is the evidence of an
        exact-mass interval against the logged pieces and densities.
        """
        if has_model and interval == "none":
            every = [*self._about_actions(), self._rests_on_model()]
        else:
            evidence = max(self.likelihood.evidence_against_weights(largest_weight), against_masses)
            weights = [*self._about_weights(evidence, exact=is_exact(interval))]
            size = self._about_model(weights) if has_model else self._about_size(interval, ends, weights)
            every = [*self._about_actions(), *weights, *size]
            every += [] if scale is None or is_approximate(interval) else self._about_range(ends, scale)
            every += [] if value is None else self._about_disagreement(ends, value)
        return tuple(sorted(every, key=lambda objection: objection.severity))

    def _about_actions(self) -> Iterator[Objection]:
        if np.array_equal(self.lowest_action, self.highest_action) and self.rows >= FEW_ROWS:
            action = "the same" if self.several else f"{float(self.lowest_action):g}"
            sentence = (
                f"All {self.rows:,} logged actions are {action}, so the log does not show what other actions lead to."
            )
            yield Objection("error", "only one logged action", f"{sentence} Log decisions with exploration.")

    def _about_weights(self, evidence: float, *, exact: bool) -> Iterator[Objection]:
        """An `exact` interval charges what the log misses, so that it holds with few matching decisions, too."""
        sentence = f"Weights average {self.mean_weight:.3g}, not 1."
        if evidence > EVIDENCE:
            advice = "Check that the logged densities are those of the logged actions, in units of the actions."
            yield Objection("error", "wrong densities", f"{sentence} {advice}")
        elif self.several and not exact and not LOWEST <= self.mean_weight <= HIGHEST:
            advice = "The log has too few of the policy's decisions. Use the estimator dm, which rests on a model."
            yield Objection("error", "mean weight", f"{sentence} {advice}")
        elif not 0.5 <= self.mean_weight <= 2:
            advice = "The log has too few of the policy's decisions, or its densities are wrong. Run manul check."
            yield Objection("warning", "mean weight", f"{sentence} {advice}")

    def _rests_on_model(self) -> Objection:
        sentence = (
            f"Weights average {self.mean_weight:.2g}, and {self.effective_size:,.0f} of {self.rows:,} decisions match"
        )
        advice = "The log cannot confirm the predictions of the model, so there is no interval."
        return Objection("warning", "rests on a model", f"{sentence}. {advice}")

    def _about_model(self, weights: list[Objection]) -> Iterator[Objection]:
        if self.effective_size < SMALL:
            matching = f"{self.effective_size:,.0f} of {self.rows:,} decisions match"
            sentence = f"{matching}: the estimate rests on the outcome model, and the interval may be too narrow."
            yield Objection("warning", "small sample", f"{sentence} Log more decisions, or explore more.")
        elif self.determining_rows < HEAVY:
            yield self._too_few_determine(self.determining_rows)
        elif self.influences.determining_rows < INFLUENTIAL:
            yield self._too_few_determine(self.influences.determining_rows)
        elif self.missing_weight > CHANCE and not weights:
            yield self._missing_decisions(f"Weights average {self.mean_weight:.2g}, not 1")
        elif abs(self.controls.z) > CHANCE:
            yield self._missing_decisions(
                f"The model predicts other {self.outcome.plural} for the decisions that match than for the policy"
            )

    def _missing_decisions(self, sign: str) -> Objection:
        sentence = f"{sign}: the log lacks the policy's decisions in some contexts"
        return Objection("warning", "missing decisions", f"{sentence}. The interval may be too narrow. {_BETTER}")

    def _too_few_determine(self, count: float) -> Objection:
        sentence = f"Large weights of {count:,.0f} of {self.rows:,} rows determine the error of the estimate"
        advice = f"The interval may be too narrow. {_BETTER}"
        return Objection("warning", "few large weights", f"{sentence}. {advice}")

    def _about_range(self, ends: Within, scale: Within) -> Iterator[Objection]:
        """Object if losses are far from filling their declared range, and the interval is wide because of that."""
        spread, declared = self.highest_loss - self.lowest_loss, scale[1] - scale[0]
        if 0 < MOST_DECLARED * spread < declared and (ends[1] - ends[0]) * declared > WIDE * spread:
            seen, range_ = map(self.outcome.flip, ((self.lowest_loss, self.highest_loss), scale))
            names = self.outcome.plural
            declared_as = f"but their range is {range_[0]:g} to {range_[1]:g}"
            sentence = f"The {names} of the log are between {seen[0]:g} and {seen[1]:g}, {declared_as}"
            advice = "The interval allows for all of it. If most of it cannot occur, declare a narrower range."
            yield Objection("warning", f"wide range of {names}", f"{sentence}. {advice}")

    def _about_disagreement(self, ends: Within, value: float) -> Iterator[Objection]:
        if value < ends[0] - TOLERANCE or value > ends[1] + TOLERANCE:
            sentence = "The estimate was outside of the interval, which was extended to contain it"
            advice = f"Weights average {self.mean_weight:.3g}. Rely on the interval."
            yield Objection("warning", "estimate outside the interval", f"{sentence}. {advice}")

    def _about_size(self, interval: str, ends: Within, weights: list[Objection]) -> Iterator[Objection]:
        size, narrow = self.effective_size, is_approximate(interval)
        if size < SMALL:
            sentence = f"{size:,.0f} of {self.rows:,} decisions match: not enough to say."
            advice = "Log more decisions, or explore more."
            yield Objection("error" if narrow and size < TINY else "warning", "small sample", f"{sentence} {advice}")
        elif narrow and self.determining_rows < HEAVY:
            yield self._too_few_determine(self.determining_rows)
        elif narrow and self.missing_weight > CHANCE and not weights:
            yield self._missing_decisions(f"Weights average {self.mean_weight:.2g}, not 1")
        elif ends[1] - ends[0] > WIDE:
            sentence = "This log says almost nothing about this policy."
            yield Objection("warning", "wide interval", f"{sentence} Log more decisions, or explore more.")
