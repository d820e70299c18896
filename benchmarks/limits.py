"""Measured values with their limits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Check:
    """A measured value, its upper limit, and a note.

    >>> Check("loss", 0.5, 0.4).line
    'MISS loss: 0.5 (limit 0.4)'
    """

    name: str
    value: float
    limit: float
    note: str = ""

    @property
    def ok(self) -> bool:
        return self.value <= self.limit

    @property
    def line(self) -> str:
        verdict = "ok  " if self.ok else "MISS"
        return f"{verdict} {self.name}: {self.value:.4g} (limit {self.limit:.4g}){self.note and ', '}{self.note}"

    @property
    def verdict(self) -> str:
        """The line with how far the limit was missed.

        >>> Check("loss", 0.5, 0.4).verdict
        'missed by 0.1  loss: 0.5 (limit 0.4)'
        """
        return f"{'met' if self.ok else f'missed by {self.value - self.limit:.2g}':14} {self.line[5:]}"


def mean_check(name: str, values: Sequence[float], limit: float, note: str = "") -> Check:
    """Check a mean over seeds; the note begins with its standard error.

    >>> mean_check("loss", [0.2, 0.4], 0.4).line
    'ok   loss: 0.3 (limit 0.4), ± 0.1'
    """
    error = f"± {standard_error(values):.2g}"
    return Check(name, float(np.mean(values)), limit, f"{error}, {note}" if note else error)


def standard_error(values: Sequence[float]) -> float:
    """The standard error of the mean.

    >>> round(standard_error([0.2, 0.4]), 6)
    0.1
    """
    return float(np.std(values, ddof=1) / np.sqrt(len(values)))
