"""SLOPE (Su, Srinath and Krishnamurthy 2020): choice of the bandwidth for evaluating a deterministic policy.

Estimates with wider windows have less variance and more bias. From narrow to wide, SLOPE takes the last bandwidth whose
interval, two standard errors to each side of its estimate, still intersects all intervals before.
"""

from __future__ import annotations

import numpy as np

from manul.actions.smoothing import explored_densities
from manul.logs.batching import Logs, pieces
from manul.offpolicy.evaluation.policy_densities import Deterministic, centres_of
from manul.types import Floats, Within
from manul.utils.validation import check_has_rows

STEPS = 8  # bandwidths, from 1/2 to 1/256 of the range
MIN_ROWS = 30  # with fewer rows in the window, the standard error is unreliable


def slope(estimates: Floats, errors: Floats) -> int:
    """The index of the estimate that SLOPE takes, from estimates in the order of falling errors and growing bias.

    >>> slope(np.array([0.5, 0.45, 0.1]), np.array([0.1, 0.05, 0.01]))
    1
    """
    widths = 2 * np.maximum.accumulate(errors[::-1])[::-1]
    low, high, choice = -np.inf, np.inf, 0
    for index, (estimate, width) in enumerate(zip(estimates, widths, strict=True)):
        low, high = max(low, estimate - width), min(high, estimate + width)
        if low > high:
            break
        choice = index
    return choice


def choose_bandwidth(policy: Deterministic, log: Logs, actions: Within, losses: Within) -> float:
    """The bandwidth that SLOPE takes, from half the range and its successive halves.

    >>> import manul
    >>> log = manul.simulate(manul.Cats(leaves=8, bandwidth=1/8), manul.worlds.linear(rounds=2000)).log
    >>> 0 < choose_bandwidth(lambda context: 0.5, log, (0.0, 1.0), (0.0, 1.0)) <= 0.5
    True
    """
    bandwidths = (actions[1] - actions[0]) / 2 ** np.arange(STEPS, 0, -1)
    sums, squares, hits, count = np.zeros(STEPS), np.zeros(STEPS), np.zeros(STEPS), 0
    for rows in pieces(log):
        lows, highs = rows.ends(actions)
        centres = centres_of(policy, rows.function_inputs(), lows, highs)
        scaled = (rows.losses - losses[0]) / (losses[1] - losses[0])
        for index, bandwidth in enumerate(bandwidths):
            densities = explored_densities(centres, bandwidth, 0.0, np.column_stack([lows, highs]), rows.actions)
            terms = densities / rows.densities * scaled
            sums[index] += terms.sum()
            squares[index] += (terms * terms).sum()
            hits[index] += (densities > 0).sum()
        count += len(rows.actions)
    check_has_rows(count)
    means = sums / count
    errors = np.sqrt(np.maximum(squares / count - means**2, 0.0) / count)
    first = int(np.argmax(np.append(hits >= MIN_ROWS, True)))
    return float(np.append(bandwidths, bandwidths[-1])[first + slope(means[first:], errors[first:])])
