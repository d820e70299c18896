"""Checks of the numbers that callers pass: parameters, outcomes and columns of logs."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manul.errors import InputError, ParameterError

if TYPE_CHECKING:
    from manul.actions.ranges import Actions

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
LOG_DENSITIES = "Log the density of each decision."
AS_DECIDED = "Pass the decision unchanged, as returned by decide."
# Outside these limits, importance weights and their squares overflow.
LEAST_DENSITY, LARGEST_DENSITY = 1e-100, 1e100
USABLE = f"in [{LEAST_DENSITY:g}, {LARGEST_DENSITY:g}]"


def check_number(name: str, value: Any, low: float, high: float, remedy: str, *, ends: str = "[]") -> float:
    """Check that a number lies between low and high; `ends` are the brackets of the interval.

    >>> check_number("rate", 0.5, 0, 1, "Try 0.01.", ends="(]")
    0.5
    >>> check_number("rate", 0, 0, 1, "Try 0.01.", ends="(]")
    Traceback (most recent call last):
    manul.errors.ParameterError: rate must be in (0, 1], got 0. Try 0.01.
    """
    number = _as_float(value) if isinstance(value, Real) else math.nan
    fits = low < number if ends[0] == "(" else low <= number
    if not (fits and (number < high if ends[1] == ")" else number <= high)):
        rule = f"in {ends[0]}{low:g}, {high:g}{ends[1]}"
        if high == math.inf:
            rule = ("above" if ends[0] == "(" else "at least") + f" {low:g}" + (" and finite" if ends[1] == ")" else "")
        raise ParameterError(f"{name} must be {rule}, got {value!r}. {remedy}", name)
    return number


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def check_whole_number(name: str, value: Any, low: int, high: int | None, remedy: str) -> int:
    """Check that a number is whole and from low to high; None is no upper limit."""
    fits = isinstance(value, int) and not isinstance(value, bool)
    if not (fits and low <= value and (high is None or value <= high)):
        rule = f"of at least {low}" if high is None else f"from {low} to {high}"
        raise ParameterError(f"{name} must be a whole number {rule}, got {value!r}. {remedy}", name)
    return int(value)


def check_choice(name: str, value: object, allowed: Iterable[str], remedy: str | None = None) -> None:
    """Check that a value is one of the allowed words.

    >>> check_choice("loss", "cubic", ("absolute", "squared"))
    Traceback (most recent call last):
    manul.errors.ParameterError: loss must be 'absolute' or 'squared', got 'cubic'. Try 'absolute'.
    """
    words = list(allowed)
    if value not in words:
        *others, last = map(repr, words)
        rule = f"{', '.join(others)} or {last}" if others else last
        raise ParameterError(f"{name} must be {rule}, got {value!r}. {remedy or f'Try {words[0]!r}.'}", name)


def check_range(name: str, value: tuple[float, float]) -> tuple[float, float]:
    """Check that a range is two finite numbers, the first below the second."""
    try:
        low, high = (float(end) for end in value)
    except (TypeError, ValueError, OverflowError):
        raise ParameterError(f"{name} must be two numbers (low, high), got {value!r}. Try (0, 1).", name) from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high and math.isfinite(high - low)):
        raise ParameterError(f"{name} must be finite with low < high, got ({low!r}, {high!r}).", name)
    return low, high


def check_bandwidth(bandwidth: float, actions: Actions) -> float:
    """Check a bandwidth, in action units, against the range of actions."""
    advice = f"It is at most half the range of actions. Try {actions.span / 16:g}."
    if isinstance(bandwidth, int | float) and 0 < bandwidth < actions.least_bandwidth:
        limit = f"{actions.least_bandwidth:.2g}, the precision of numbers in the range of actions"
        raise ParameterError(f"bandwidth must be at least {limit}, got {bandwidth!r}.", "bandwidth")
    return check_number("bandwidth", bandwidth, 0, actions.span / 2, advice, ends="(]")


def check_epsilon(epsilon: float) -> float:
    return check_number("epsilon", epsilon, 0, 1, "Try 0.05.")


def check_leaves(leaves: int) -> int:
    """Check the number of leaves of a complete binary tree, whose depth is `leaves.bit_length() - 1`."""
    whole = isinstance(leaves, int) and not isinstance(leaves, bool)
    if not (whole and 2 <= leaves <= 2**24 and leaves & (leaves - 1) == 0):
        positive = isinstance(leaves, int | float) and leaves > 0
        near = 2 ** round(math.log2(min(max(leaves, 2), 2**24))) if positive else 128
        raise ParameterError(f"leaves must be a power of two from 2 to 2^24, got {leaves!r}. Try {near}.", "leaves")
    return leaves


def check_half_life(half_life: float | None) -> float | None:
    """Check the number of rounds after which old evidence counts half; None is no forgetting."""
    advice = "Try 10000, or None for no forgetting."
    return None if half_life is None else check_number("half_life", half_life, 1, math.inf, advice, ends="[)")


def check_seed(seed: int) -> int:
    if not (isinstance(seed, int) and not isinstance(seed, bool) and 0 <= seed < 2**64):
        raise ParameterError(f"seed must be an integer in [0, 2^64), got {seed!r}. Try 0.", "seed")
    return seed


def check_workers(name: str, count: int | None) -> int:
    """Check a number of threads or processes; None is one per processor."""
    if count is None:
        return os.cpu_count() or 1
    return check_whole_number(name, count, 1, None, "Omit it to use all processors.")


def check_has_rows(count: int) -> None:
    """Reject a log without rows."""
    if not count:
        raise InputError("log has no rows.", "log")


def check_shape(name: str, values: Floats, *shape: int) -> None:
    """Check that an array has one row per context."""
    if values.shape != shape:
        entry = "one number" if len(shape) == 1 else "one (low, high)"
        rule = f"{entry} for each of the {shape[0]} contexts"
        raise InputError(f"{name} must have {rule}, got shape {values.shape}.", name)


def check_numbers(name: str, values: Any, *shape: int) -> Floats:
    """An array of numbers with one row per context."""
    try:
        numbers = np.ascontiguousarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be numbers, got {values!r:.60}.", name) from None
    check_shape(name, numbers, *shape)
    return numbers


def check_finite(name: str, values: Floats) -> None:
    """Reject NaN and infinity."""
    if not np.isfinite(values).all():
        raise InputError(f"{name} must be finite numbers, got NaN or infinity. Remove those rows.", name)


def check_taken(actions: Floats, densities: Floats, lows: Floats, highs: Floats, *, logged: bool = False) -> None:
    """Check that actions are in their ranges and that densities are usable; with `logged`, errors advise on a log."""
    inside = f"in [{lows.flat[0]:g}, {highs.flat[0]:g}]"
    declare, log = (range_advice("actions"), LOG_DENSITIES) if logged else (AS_DECIDED, AS_DECIDED)
    reject(~are_within(actions, lows, highs), actions, "action", inside, declare)
    reject(~usable_densities(densities), densities, "density", USABLE, log)


def reject_nan(values: Floats, name: str, first_row: int) -> None:
    """Raise an error for the first missing value."""
    missing = np.isnan(values)
    if missing.any():
        row = "" if len(values) == 1 else f" in row {first_row + int(np.argmax(missing))}"
        raise InputError(f"{name} is NaN (not a number){row}; leave out decisions whose {name} is not known.", name)


def range_advice(name: str) -> str:
    """The advice for values outside a range."""
    return f"Declare the range with {name}=(low, high)."


def are_within(values: Floats, low: float | Floats, high: float | Floats) -> Flags:
    """Flag the values inside a range; NaN is outside."""
    return (values >= low) & (values <= high)


def are_densities(values: Floats) -> Flags:
    """Flag the values that are above 0 and finite."""
    return (values > 0) & np.isfinite(values)


def usable_densities(densities: Floats) -> Flags:
    """Flag the densities that importance weights can be computed from."""
    return are_within(densities, LEAST_DENSITY, LARGEST_DENSITY)


def reject(bad: Flags, values: Floats, name: str, rule: str, remedy: str, first_row: int = 0) -> None:
    """Raise an error for the first bad value; rows count from `first_row`."""
    if bad.any():
        first = int(np.argmax(bad))
        row = "" if len(values) == 1 else f" in row {first_row + first}"
        raise InputError(f"{name} must be {rule}, got {values[first]:g}{row}. {remedy}", name)
