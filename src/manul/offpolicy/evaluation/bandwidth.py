"""SLOPE (Su, Srinath and Krishnamurthy 2020): the bandwidth with which a deterministic policy is evaluated.

Estimates with wider windows vary less and are further from the truth. Going from the narrowest to wider ones, the last
one is taken whose interval, two errors to each side of its own estimate, still meets all those before.
"""

from __future__ import annotations

import numpy as np

from manul.actions.smoothing import explored_densities
from manul.logs.batching import Logs, pieces
from manul.offpolicy.evaluation.policy_densities import Deterministic, centres_of
from manul.types import Floats, Within
from manul.utils.validation import check_has_rows

STEPS = 8
FEWEST = 30


def slope(estimates: Floats, errors: Floats) -> int:
    """Which of several estimates to take; they come in the order of falling errors and growing bias.

    >>> slope(np.array([0.5, 0.45, 0.1]), np.array([0.1, 0.05, 0.01]))
    1
    """
    reaches = 2 * np.maximum.accumulate(errors[::-1])[::-1]
    low, high, chosen = -np.inf, np.inf, 0
    for number, (estimate, reach) in enumerate(zip(estimates, reaches, strict=True)):
        low, high = max(low, estimate - reach), min(high, estimate + reach)
        if low > high:
            break
        chosen = number
    return chosen


def choose_bandwidth(policy: Deterministic, log: Logs, actions: Within, losses: Within) -> float:
    """The bandwidth that SLOPE takes, out of halvings of half the range.

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
        for number, bandwidth in enumerate(bandwidths):
            densities = explored_densities(centres, bandwidth, 0.0, np.column_stack([lows, highs]), rows.actions)
            paid = densities / rows.densities * scaled
            sums[number] += paid.sum()
            squares[number] += (paid * paid).sum()
            hits[number] += (densities > 0).sum()
        count += len(rows.actions)
    check_has_rows(count)
    means = sums / count
    errors = np.sqrt(np.maximum(squares / count - means**2, 0.0) / count)
    # Too few rows in the window would make the error look small.
    first_seen = int(np.argmax(np.append(hits >= FEWEST, True)))
    return float(np.append(bandwidths, bandwidths[-1])[first_seen + slope(means[first_seen:], errors[first_seen:])])
