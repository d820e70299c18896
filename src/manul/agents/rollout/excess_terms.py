"""Terms of single decisions whose expected values compare the learner with the baseline.

A decision goes to the learner with probability p, its share, and otherwise to the baseline. With l the loss, L and B the
expected losses of learner and baseline, and t the tolerance, `excess_terms` have the expected value p (L - B - t |B|),
and `guarantee_terms` p (L - B) - t |B|. Any centre c that is fixed beforehand gives the same expected values, and one
close to the losses makes the terms small. |B| is the expected absolute loss, so that a tolerance of rewards, which are
negative losses, is a share of them too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manul.types import Floats, Within


class Outcomes(NamedTuple):
    """Decisions with losses: whether the learner decided, the share of the learner then, and the loss."""

    learner: npt.NDArray[np.bool_]
    shares: Floats
    losses: Floats


def excess_terms(outcomes: Outcomes, centre: float, tolerance: float) -> Floats:
    """Terms with the expected value p (L - B - t |B|).

    >>> outcomes = Outcomes(np.array([True, False]), np.full(2, 0.5), np.array([0.3, 0.1]))
    >>> excess_terms(outcomes, centre=0.2, tolerance=0.0).round(3)
    array([0.1, 0.1])
    """
    learner, shares, losses = outcomes
    odds, allowed = shares / (1 - shares), centre + tolerance * abs(centre)
    baseline = -odds * (losses + tolerance * np.abs(losses) - allowed)
    terms: Floats = np.where(learner, losses - centre, baseline) - shares * (allowed - centre)
    return terms


def excess_bounds(shares: Floats, centre: float, tolerance: float, losses: Within) -> tuple[Floats, Floats]:
    """How far the excess terms of decisions with these shares can be below and above 0.

    >>> excess_bounds(np.array([0.5]), centre=0.2, tolerance=0.0, losses=(0.0, 1.0))
    (array([0.8]), array([0.8]))
    """
    low, high = losses
    odds, allowed = shares / (1 - shares), centre + tolerance * abs(centre)
    below = np.maximum(centre - low, odds * (high + tolerance * abs(high) - allowed)) + shares * (allowed - centre)
    return below, np.maximum(high - centre, odds * (allowed - low - tolerance * abs(low)))


def guarantee_terms(outcomes: Outcomes, centre: float, tolerance: float) -> Floats:
    """Terms with the expected value p (L - B) - t |B|.

    >>> outcomes = Outcomes(np.array([True, False]), np.full(2, 0.5), np.array([0.3, 0.2]))
    >>> guarantee_terms(outcomes, centre=0.2, tolerance=0.1).round(3)
    array([ 0.08, -0.02])
    """
    learner, shares, losses = outcomes
    saved = shares * (losses - centre) + tolerance * (np.abs(losses) - abs(centre))
    terms: Floats = np.where(learner, losses - centre, -saved / (1 - shares)) - tolerance * abs(centre)
    return terms


def guarantee_term(*, learner: bool, share: float, loss: float, centre: float, tolerance: float) -> float:
    """The guarantee term of one decision.

    >>> round(guarantee_term(learner=False, share=0.5, loss=0.2, centre=0.2, tolerance=0.1), 3)
    -0.02
    """
    if learner:
        return loss - centre - tolerance * abs(centre)
    saved = share * (loss - centre) + tolerance * (abs(loss) - abs(centre))
    return -saved / (1 - share) - tolerance * abs(centre)


def guarantee_bound(share: float, centre: float, tolerance: float, losses: Within) -> float:
    """How far guarantee terms can be above 0, for shares up to `share`.

    >>> round(guarantee_bound(0.5, centre=0.2, tolerance=0.0, losses=(0.0, 1.0)), 3)
    0.8
    """
    low, high = losses
    smallest = 0.0 if low <= 0 <= high else min(abs(low), abs(high))
    saved = (share * (centre - low) + tolerance * max(abs(centre) - smallest, 0.0)) / (1 - share)
    return max(high - centre, saved)
