"""SLOPE (Su, Srinath and Krishnamurthy 2020): choice of the bandwidth for evaluating a deterministic policy.

Estimates with wider windows have less variance and more bias. From narrow to wide, SLOPE takes the last bandwidth whose
interval, one standard error to each side of its estimate, still intersects all intervals before. Estimates are those of
`snips`, so that a constant that is added to all losses changes nothing.
"""

from __future__ import annotations

import numpy as np

from manul.actions.distributions import Windows
from manul.logs.sample import Sample
from manul.offpolicy.smoothed import Function, centres_of
from manul.utils.validation import Floats, check_has_rows

STEPS = 8  # bandwidths, from 1/2 to 1/256 of the range
MIN_ROWS = 30  # with fewer rows in the window, the standard error is unreliable


def slope(estimates: Floats, errors: Floats) -> int:
    """The index of the estimate that SLOPE takes, from estimates in the order of falling errors and growing bias.

    >>> slope(np.array([0.5, 0.45, 0.1]), np.array([0.1, 0.05, 0.01]))
    1
    """
    widths = np.maximum.accumulate(errors[::-1])[::-1]
    low, high, choice = -np.inf, np.inf, 0
    for index, (estimate, width) in enumerate(zip(estimates, widths, strict=True)):
        low, high = max(low, estimate - width), min(high, estimate + width)
        if low > high:
            break
        choice = index
    return choice


def choose_bandwidth(policy: Function, sample: Sample) -> float:
    """The bandwidth that SLOPE takes, from half the range and its successive halves."""
    low, high = sample.span
    bandwidths = (high - low) / 2 ** np.arange(STEPS, 0, -1)
    weights, sums, hits, count = np.zeros(STEPS), np.zeros((STEPS, 4)), np.zeros(STEPS), 0
    for rows in sample.repeatable("SLOPE").pieces():
        lows, highs = rows.ends()
        centres, ends = centres_of(policy, rows.function_inputs(), lows, highs), np.column_stack([lows, highs])
        scaled = rows.shares
        for index, bandwidth in enumerate(bandwidths):
            densities = Windows.around(centres, bandwidth, ends).density(rows.actions)
            ratios = densities / rows.densities
            weights[index] += ratios.sum()
            sums[index] += [(ratios * scaled).sum(), *((ratios * ratios * scaled**power).sum() for power in range(3))]
            hits[index] += (densities > 0).sum()
        count += len(rows)
    check_has_rows(count)
    first = int(np.argmax(np.append(hits >= MIN_ROWS, True)))
    if first == STEPS:
        return float(bandwidths[-1])
    weights, (totals, squares, products, moments) = weights[first:], sums[first:].T
    values = totals / weights
    errors = np.sqrt(np.maximum(moments - 2 * values * products + values**2 * squares, 0.0)) / weights
    return float(bandwidths[first + slope(values, errors)])
