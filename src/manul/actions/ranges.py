"""The range of actions, narrowed per decision where the caller says so."""

from __future__ import annotations

import math
from dataclasses import dataclass

from manul.errors import InputError, ParameterError

# The least share of the range that one decision may be narrowed to: below it, densities and positions lose their digits.
NARROWEST = 1e-9


def checked_range(name: str, value: tuple[float, float]) -> tuple[float, float]:
    """Two finite numbers, the first below the second.

    >>> checked_range("actions", (0, 32))
    (0.0, 32.0)
    """
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError):
        raise ParameterError(f"{name} must be two numbers (low, high); got {value!r}. Try (0, 1).") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        raise ParameterError(f"{name} must be finite with low < high; got ({low!r}, {high!r}). Try (0, 1).")
    return low, high


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
        """The narrowest window around any action whose ends can be told apart from each other in doubles."""
        return max(abs(self.low), abs(self.high)) * 2.0**-50

    def narrowed(self, within: tuple[float, float] | None, bandwidth: float) -> tuple[float, float]:
        """The range of one decision, wide enough for a window of the bandwidth on both sides.

        >>> Actions(0.0, 32.0).narrowed((10, 20), bandwidth=2.0)
        (10.0, 20.0)
        """
        if within is None:
            return self.low, self.high
        try:
            low, high = (float(end) for end in within)
        except (TypeError, ValueError):
            raise InputError(
                f"within must be two numbers (low, high); got {within!r}. Leave it out for the whole range."
            ) from None
        if not (self.low <= low < high <= self.high):
            raise InputError(
                f"within must lie inside the actions ({self.low:g}, {self.high:g}) with low < high; got ({low:g}, {high:g}). Narrow it."
            )
        if high - low < NARROWEST * self.span:
            raise InputError(
                f"within must be at least {NARROWEST * self.span:g} wide, got ({low!r}, {high!r}). Widen it."
            )
        if high - low < 2 * bandwidth * (1 - 1e-12):
            raise InputError(
                f"within must be at least two bandwidths wide, {2 * bandwidth:g}; got ({low:g}, {high:g}). Widen it or lower the bandwidth."
            )
        return low, high


def checked_bandwidth(bandwidth: float, actions: Actions) -> float:
    """A bandwidth in action units that fits into the range.

    >>> checked_bandwidth(2, Actions(0.0, 32.0))
    2.0
    """
    half = actions.span / 2
    if isinstance(bandwidth, int | float) and 0 < bandwidth < actions.least_bandwidth:
        raise ParameterError(
            f"bandwidth must be at least {actions.least_bandwidth:.2g}, so that the ends of a window are numbers of their own; "
            f"got {bandwidth!r}. Try {actions.span / 16:g}."
        )
    if not (isinstance(bandwidth, int | float) and 0 < bandwidth <= half):
        raise ParameterError(
            f"bandwidth must be in (0, {half:g}], half the range of actions; got {bandwidth!r}. "
            f"Smaller bandwidths follow the loss more closely: try {actions.span / 16:g}."
        )
    return float(bandwidth)


def checked_epsilon(epsilon: float) -> float:
    """The share of uniform exploration.

    >>> checked_epsilon(0.05)
    0.05
    """
    if not (isinstance(epsilon, int | float) and 0 <= epsilon <= 1):
        raise ParameterError(f"epsilon must be in [0, 1]; got {epsilon!r}. Try 0.05.")
    return float(epsilon)


def checked_leaves(leaves: int) -> int:
    """The number of leaves of a complete binary tree; its depth is `leaves.bit_length() - 1`.

    >>> checked_leaves(1024)
    1024
    """
    fits = (
        isinstance(leaves, int) and not isinstance(leaves, bool) and 2 <= leaves <= 2**24 and leaves & (leaves - 1) == 0
    )
    if not fits:
        near = (
            2 ** round(math.log2(min(max(leaves, 2), 2**24))) if isinstance(leaves, int | float) and leaves > 0 else 128
        )
        raise ParameterError(f"leaves must be a power of two from 2 to 2^24; got {leaves!r}. Try {near}.")
    return leaves


def checked_half_life(half_life: float | None) -> float | None:
    """Rounds after which old evidence counts half; None forgets nothing.

    >>> checked_half_life(5000)
    5000.0
    """
    if half_life is None:
        return None
    if not (isinstance(half_life, int | float) and 1 <= half_life < math.inf):
        raise ParameterError(f"half_life must be at least 1 round, or None; got {half_life!r}. Try 10000.")
    return float(half_life)


def checked_seed(seed: int) -> int:
    """A seed that fits into 64 bits.

    >>> checked_seed(7)
    7
    """
    if not (isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**64):
        raise ParameterError(f"seed must be an integer in [0, 2^64); got {seed!r}. Try 0.")
    return seed


def fraction(bandwidth: float | None) -> str:
    """A bandwidth as people write it.

    >>> fraction(1/16), fraction(0.3), fraction(6.25), fraction(None)
    ('1/16', '0.3', '6.25', '')
    """
    if bandwidth is None:
        return ""
    parts = 1 / bandwidth
    return f"1/{round(parts)}" if bandwidth < 1 and abs(parts - round(parts)) < 1e-9 else f"{bandwidth:g}"
