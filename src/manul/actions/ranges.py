"""The range of actions, which a caller may narrow for each decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from manul.errors import InputError
from manul.utils.validation import Floats, check_numbers

# The smallest share of the range for one decision; below it, densities and positions lose precision.
NARROWEST = 1e-9


@dataclass(frozen=True)
class Actions:
    """The actions between low and high, both included.

    >>> Actions(0.0, 32.0).span
    32.0
    """

    low: float
    high: float

    @property
    def span(self) -> float:
        """The length of the range."""
        return self.high - self.low

    @property
    def least_bandwidth(self) -> float:
        """The narrowest bandwidth for which the ends of a window around any action are different doubles."""
        return max(abs(self.low), abs(self.high)) * 2.0**-50

    def narrow(self, within: tuple[float, float] | None, bandwidth: float) -> tuple[float, float]:
        """The range of one decision, at least two bandwidths wide; None is the whole range.

        >>> Actions(0.0, 32.0).narrow((10, 20), bandwidth=2.0)
        (10.0, 20.0)
        """
        if within is None:
            return self.low, self.high
        try:
            low, high = (float(end) for end in within)
        except (TypeError, ValueError):
            raise InputError(
                f"within must be two numbers (low, high), got {within!r}. Omit it for the whole range.", "within"
            ) from None
        if not (self.low <= low < high <= self.high):
            rule = f"inside the range of actions ({self.low!r}, {self.high!r}) with low < high"
            raise InputError(f"within must lie {rule}, got ({low!r}, {high!r}).", "within")
        if high - low < NARROWEST * self.span:
            raise InputError(
                f"within must be at least {NARROWEST * self.span:g} wide, got ({low!r}, {high!r}).", "within"
            )
        if high - low < 2 * bandwidth * (1 - 1e-12):
            rule = f"at least two bandwidths ({2 * bandwidth:g}) wide"
            advice = "Widen it or reduce the bandwidth."
            raise InputError(f"within must be {rule}, got ({low:g}, {high:g}). {advice}", "within")
        return low, high

    def narrow_many(self, within: Any, count: int, bandwidth: float) -> Floats:
        """One (low, high) for each of `count` decisions; `within` is None, or has a range or None for each."""
        if within is None:
            return np.tile((self.low, self.high), (count, 1))
        ranges = [(self.low, self.high) if each is None else each for each in within]
        pairs = check_numbers("within", ranges, count, 2)
        for pair in pairs:
            self.narrow(tuple(pair), bandwidth)
        return pairs


def fraction(bandwidth: float | None) -> str:
    """Format a bandwidth, as a fraction if it is 1 / n.

    >>> fraction(1/16), fraction(0.3), fraction(6.25), fraction(None)
    ('1/16', '0.3', '6.25', '')
    """
    if bandwidth is None:
        return ""
    parts = 1 / bandwidth
    return f"1/{round(parts)}" if bandwidth < 1 and abs(parts - round(parts)) < 1e-9 else f"{bandwidth:g}"
