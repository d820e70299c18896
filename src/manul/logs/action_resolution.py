"""How finely the actions of a log are resolved: prices in cents or in whole euros, or all different."""

from __future__ import annotations

import numpy as np

from manul.utils.validation import Floats

MOST_REPEATED = 0.5  # of the rows may have an action that occurs twice; otherwise actions are on a grid


def resolution(actions: Floats) -> float:
    """The usual distance between an action and the next different one, if most actions occur more than once; otherwise 0.

    >>> resolution(np.array([9.99, 10.99, 9.99, 11.99, 11.99]))
    1.0
    >>> resolution(np.array([0.1, 0.25, 0.3, 0.7]))
    0.0
    """
    values, counts = np.unique(actions, return_counts=True)
    if counts[counts > 1].sum() <= MOST_REPEATED * len(actions) or len(values) < 2:
        return 0.0
    gaps = np.diff(values)
    nearest = np.minimum(np.append(gaps, np.inf), np.append(np.inf, gaps))
    order = np.argsort(nearest, kind="stable")
    middle = np.searchsorted(np.cumsum(counts[order]), len(actions) / 2)
    return round(float(nearest[order][middle]), 12)
