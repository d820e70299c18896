"""Reasons not to trust an estimate: weights that do not average 1, too small a sample, one logged action."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from manul.logs.batching import Rows
from manul.offpolicy.evaluation.empirical_likelihood import EmpiricalLikelihood
from manul.offpolicy.evaluation.estimated_densities import HIGHEST, LOWEST
from manul.offpolicy.evaluation.intervals import Terms
from manul.types import Objection, Within

EVIDENCE = 5.4  # against a mean weight of 1; 1 false alarm in 6,000 logs
SMALL = 30.0  # effective size: below, the normal interval covers at most 55 %
TINY = 10.0  # effective size: below, the normal interval covers 22 %
WIDE = 0.5  # of the range of losses
ENOUGH = 100.0  # effective size: an interval of several knobs and the verdict on a gain need as many
FEW_ROWS = 20  # with fewer rows, one action may be chance if actions are discrete


def is_supported(mean_weight: float, effective_size: float) -> bool:
    """Whether a log has so many decisions like those of a policy that an interval of its loss can be trusted.

    >>> is_supported(1.0, 120.0), is_supported(0.5, 120.0), is_supported(1.0, 20.0)
    (True, False, False)
    """
    return LOWEST <= mean_weight <= HIGHEST and effective_size >= ENOUGH


class Evidence:
    """Collects what objections are made of, piece by piece."""

    def __init__(self) -> None:
        self.likelihood, self.rows, self.weights, self.squares = EmpiricalLikelihood(), 0, 0.0, 0.0
        self.lowest_action, self.highest_action, self.several = np.array(np.inf), np.array(-np.inf), False

    def add(self, rows: Rows, terms: Terms) -> None:
        """Add a piece."""
        self.add_terms(terms)
        self.lowest_action = np.minimum(self.lowest_action, rows.positions.min(axis=0))
        self.highest_action = np.maximum(self.highest_action, rows.positions.max(axis=0))
        self.several = rows.knobs is not None

    def add_terms(self, terms: Terms) -> None:
        """Add a piece whose actions are not known."""
        self.likelihood.add(terms)
        self.rows += len(terms.weights)
        self.weights += float(terms.weights.sum())
        self.squares += float((terms.weights * terms.weights).sum())

    @property
    def mean_weight(self) -> float:
        """The mean weight, which is 1 if the logged densities are right."""
        return self.weights / self.rows

    @property
    def effective_size(self) -> float:
        """The effective sample size; 0 if no row matches."""
        return self.weights**2 / self.squares if self.squares else 0.0

    @property
    def supported(self) -> bool:
        """Whether the log has so many decisions like those of the policy that an interval can be trusted."""
        return is_supported(self.mean_weight, self.effective_size)

    @property
    def corrects(self) -> bool:
        """Whether the log has enough decisions like those of the policy for weights to correct a model; fewer add noise."""
        return LOWEST <= self.mean_weight <= HIGHEST and self.effective_size >= SMALL

    def objections(
        self, largest_weight: float, interval: str, ends: Within, *, has_model: bool = False
    ) -> tuple[Objection, ...]:
        """The objections to an estimate with an interval of losses scaled to [0, 1]; errors first.

        `has_model` says that the estimate rests on an outcome model where no decisions match.
        """
        if has_model and interval == "none":
            every = [*self._about_actions(), self._rests_on_model()]
        else:
            size = self._about_model() if has_model else self._about_size(interval, ends)
            every = [*self._about_actions(), *self._about_weights(largest_weight), *size]
        return tuple(sorted(every, key=lambda objection: objection.severity))

    def _about_actions(self) -> Iterator[Objection]:
        if np.array_equal(self.lowest_action, self.highest_action) and self.rows >= FEW_ROWS:
            action = "the same" if self.several else f"{float(self.lowest_action):g}"
            sentence = (
                f"All {self.rows:,} logged actions are {action}, so the log does not show what other actions lead to."
            )
            yield Objection("error", "only one logged action", f"{sentence} Log decisions with exploration.")

    def _about_weights(self, largest_weight: float) -> Iterator[Objection]:
        sentence = f"Weights average {self.mean_weight:.3g}, not 1."
        if self.likelihood.evidence_against_weights(largest_weight) > EVIDENCE:
            advice = "Check that the logged densities are those of the logged actions, in units of the actions."
            yield Objection("error", "wrong densities", f"{sentence} {advice}")
        elif self.several and not LOWEST <= self.mean_weight <= HIGHEST:
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

    def _about_model(self) -> Iterator[Objection]:
        if self.effective_size < SMALL:
            sentence = (
                f"{self.effective_size:,.0f} of {self.rows:,} decisions match: the estimate rests on the outcome model."
            )
            yield Objection("warning", "small sample", f"{sentence} Log more decisions, or explore more.")

    def _about_size(self, interval: str, ends: Within) -> Iterator[Objection]:
        size, narrow = self.effective_size, interval in ("normal", "bootstrap")
        if size < SMALL:
            sentence = f"{size:,.0f} of {self.rows:,} decisions match: not enough to say."
            advice = "Log more decisions, or explore more."
            yield Objection("error" if narrow and size < TINY else "warning", "small sample", f"{sentence} {advice}")
        elif ends[1] - ends[0] > WIDE:
            sentence = "This log says almost nothing about this policy."
            yield Objection("warning", "wide interval", f"{sentence} Log more decisions, or explore more.")
