"""Actions on a grid under densities of continuous actions: rounded after they were drawn, or chosen from a list."""

from __future__ import annotations

import math

import numpy as np

from manul.offpolicy.diagnosis.latest_rows import LatestRows
from manul.offpolicy.diagnosis.symptoms import Symptom
from manul.utils.validation import Floats

CERTAIN = 4.5  # standard errors
FINE = 0.05  # of the width of the policy's windows: a finer grid changes no estimate
_ONE_OF_A_LIST = 0.6  # of the probability, on one action: a policy that chooses from a list, and explores
_POSSIBLE = 1.25  # times the number of actions: no policy that chooses from a list has such a density


def find_rounded_actions(rows: LatestRows, resolution: float) -> list[Symptom]:
    """What a grid of actions says about their densities; `resolution` is its step, as a share of the range, or 0."""
    if rows.estimated or rows.positions.shape[1] > 1 or not resolution:
        return []
    places, count = rows.positions[:, 0], len(np.unique(rows.positions))
    density = float(np.quantile(rows.densities, 0.95))
    step = f"Actions are {count:,} different values, about {resolution:.2g} of the range apart"
    advice = "Log each action as it was drawn, with its density."
    if density > _POSSIBLE * count:
        text = f"{step}, but their densities are up to {density:.3g} times that of a uniform policy, which is impossible for so few. "
        return [("error", "rounded actions", f"{text}They were rounded after their densities were computed. {advice}")]
    if _ends_are_half(places, 1 / rows.densities):
        text = f"{step}, and the first and last are half as frequent as the others, as if they had been rounded. "
        return [("warning", "rounded actions", text + advice)]
    if FINE < resolution * density < _ONE_OF_A_LIST:
        text = (
            f"{step}. If the policy chose from these, evaluate only policies that do so too; if its actions were rounded, the "
            "densities are those of other actions. "
        )
        return [("note", "few different actions", text + advice)]
    return []


def _ends_are_half(places: Floats, weights: Floats) -> bool:
    """Whether the actions at both ends of the range have less than their share of the weight.

    Each action of a list has the same share. Rounding to the nearest value gives the ends half of a share.
    """
    ends = (places <= 1e-9) | (places >= 1 - 1e-9)
    count = len(np.unique(places))
    if not ((places <= 1e-9).any() and (places >= 1 - 1e-9).any()) or count < 4:
        return False
    share = 2 / (count - 2)
    difference = float(weights[ends].sum() - share * weights[~ends].sum())
    error = math.sqrt(float((weights[ends] ** 2).sum() + share**2 * (weights[~ends] ** 2).sum()))
    return difference < -CERTAIN * error
