"""Estimates from weights that are known already, such as those of a model before it learned, with the objections of `evaluate`."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from manul.actions.decision import Within
from manul.offpolicy.estimate import Estimate, Objection
from manul.offpolicy.evaluation.intervals import Terms
from manul.offpolicy.evaluation.objections import SMALL, Evidence
from manul.utils.validation import Floats

LEVEL = 0.95


def weighted_estimate(weights: Floats, losses: Floats, span: Within, bound: float) -> Estimate:
    """The self-normalised mean of losses in a range; `bound` is an upper bound of the weights."""
    low, high = span
    shares, evidence = (losses - low) / (high - low), Evidence()
    evidence.add_terms(Terms(weights * shares, weights, weights, shares))
    value, ends = math.nan, (0.0, 1.0)
    if evidence.weights:
        value = float((weights * shares).sum()) / evidence.weights
        least, most = evidence.likelihood.ends(LEVEL, bound)
        ends = min(least, value), max(most, value)
    return Estimate(
        value=low + (high - low) * value,
        low=low + (high - low) * ends[0],
        high=low + (high - low) * ends[1],
        effective_size=evidence.effective_size,
        largest_weight=float(weights.max()),
        mean_weight=evidence.mean_weight,
        rows=evidence.rows,
        level=LEVEL,
        objections=evidence.objections(bound, "empirical-likelihood", ends),
    )


def mean_estimate(losses: Floats, span: Within) -> Estimate:
    """The mean of losses in a range, with its interval."""
    estimate, count = weighted_estimate(np.ones(len(losses)), losses, span, 1.0), len(losses)
    decisions = "1 decision" if count == 1 else f"{count:,} decisions"
    few = Objection("warning", "small sample", f"{decisions}: not enough to say.")
    return replace(estimate, objections=(few,) if count < SMALL else ())
