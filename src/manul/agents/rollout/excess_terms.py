"""Terms of single decisions whose expected values compare the learner with the baseline.

A decision goes to the learner with probability p, its share, and otherwise to the baseline. With l the loss, L and B the
expected losses of learner and baseline, and t the tolerance, `excess_terms` have the expected value p (L - B - t |B|),
and `guarantee_terms` p (L - B) - t |B|. Any centre c that is fixed before the arm is drawn gives the same expected values, and
one close to the losses makes the terms small: each decision may have its own, such as the loss that a model predicts for its
context. |B| is the expected absolute loss, so that a tolerance of rewards, which are negative losses, is a share of them too.

A decision whose loss never came has two values of each term (`unknown_terms`), with the lowest and with the highest loss in
place of l, and the smallest absolute loss in place of |l|. As often as both arms lose losses equally, either value has an
expected value of at most 0, and a surplus of the learner's lost losses counts as the worst possible.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from manul.actions.decision import Within
from manul.utils.validation import Floats

Number = float | Floats  # of all decisions, or one for each


class Outcomes(NamedTuple):
    """Decisions with losses: whether the learner decided, the share of the learner then, and the loss."""

    learner: npt.NDArray[np.bool_]
    shares: Floats
    losses: Floats


def excess_terms(outcomes: Outcomes, centre: Number, tolerance: float) -> Floats:
    """Terms with the expected value p (L - B - t |B|); the centre is that of all decisions, or has one for each."""
    learner, shares, losses = outcomes
    odds, allowed = shares / (1 - shares), centre + tolerance * np.abs(centre)
    baseline = -odds * (losses + tolerance * np.abs(losses) - allowed)
    terms: Floats = np.where(learner, losses - centre, baseline) - shares * (allowed - centre)
    return terms


def excess_bounds(
    shares: Floats, centres: tuple[Number, Number], tolerance: float, losses: Within
) -> tuple[Floats, Floats]:
    """How far the excess terms of decisions with these shares, and with centres between two, can be below and above 0."""
    # The bounds are piecewise linear functions of the centre, with a kink at 0.
    corners = (*centres, np.clip(0.0, *centres))
    pairs = [_excess_bounds(shares, centre, tolerance, losses) for centre in corners]
    below, above = (np.maximum.reduce(sides) for sides in zip(*pairs, strict=True))
    return below, above


def _excess_bounds(shares: Floats, centre: Number, tolerance: float, losses: Within) -> tuple[Floats, Floats]:
    low, high = losses
    odds, allowed = shares / (1 - shares), centre + tolerance * np.abs(centre)
    below = np.maximum(centre - low, odds * (high + tolerance * abs(high) - allowed)) + shares * (allowed - centre)
    return below, np.maximum(high - centre, odds * (allowed - low - tolerance * smallest_size(losses)))


def smallest_size(losses: Within) -> float:
    """The smallest absolute loss of a range."""
    low, high = losses
    return 0.0 if low <= 0 <= high else min(abs(low), abs(high))


class UnknownTerms(NamedTuple):
    """The excess terms and the guarantee terms of a decision whose loss never came, with the lowest and the highest loss."""

    excess: Within
    guarantee: Within


def unknown_terms(*, learner: bool, share: float, centre: float, tolerance: float, losses: Within) -> UnknownTerms:
    """The terms of a decision whose loss never came."""
    size, allowed = smallest_size(losses), centre + tolerance * abs(centre)
    odds, offset = share / (1 - share), share * (allowed - centre)
    excess, guarantee = [], []
    for loss in losses:
        excess.append((loss - centre if learner else -odds * (loss + tolerance * size - allowed)) - offset)
        saved = share * (loss - centre) + tolerance * (size - abs(centre))
        guarantee.append((loss - centre if learner else -saved / (1 - share)) - tolerance * abs(centre))
    return UnknownTerms((excess[0], excess[1]), (guarantee[0], guarantee[1]))


def guarantee_terms(outcomes: Outcomes, centre: Number, tolerance: float) -> Floats:
    """Terms with the expected value p (L - B) - t |B|."""
    learner, shares, losses = outcomes
    saved = shares * (losses - centre) + tolerance * (np.abs(losses) - np.abs(centre))
    terms: Floats = np.where(learner, losses - centre, -saved / (1 - shares)) - tolerance * np.abs(centre)
    return terms


def guarantee_term(*, learner: bool, share: float, loss: float, centre: float, tolerance: float) -> float:
    """The guarantee term of one decision."""
    if learner:
        return loss - centre - tolerance * abs(centre)
    saved = share * (loss - centre) + tolerance * (abs(loss) - abs(centre))
    return -saved / (1 - share) - tolerance * abs(centre)


@lru_cache(maxsize=256)  # each term asks for the bound of its step
def guarantee_bound(share: float, centres: Within, tolerance: float, losses: Within) -> float:
    """How far guarantee terms can be above 0, for shares up to `share` and centres between two."""
    (low, high), smallest = losses, smallest_size(losses)
    saved = (share * (centre - low) + tolerance * max(abs(centre) - smallest, 0.0) for centre in centres)
    return max(high - min(centres), max(saved) / (1 - share))
