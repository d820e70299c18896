"""The least and the largest value of a formula whose names are in ranges, by interval arithmetic.

Bounds are safe: a formula that uses a name twice may have wider ones than its values.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from manul.utils.formulas import COMPARISONS, Formula

Bounds = tuple[float, float]
ANY: Bounds = (-math.inf, math.inf)
_TRUTHS = {"and", "or", "not", *COMPARISONS}


def bounds(formula: Formula, ranges: Mapping[str, Bounds]) -> Bounds:
    """The bounds of a `formula` if each name is in its range; a name without a range may be anything.

    >>> from manul.utils.formulas import parse
    >>> bounds(parse("won * action"), {"won": (0.0, 1.0), "action": (0.0, 40.0)})
    (0.0, 40.0)
    """
    if formula.operation == "number":
        return float(formula.constant), float(formula.constant)
    if formula.operation == "name":
        return ranges.get(str(formula.constant), ANY)
    if formula.operation in _TRUTHS:
        return 0.0, 1.0
    if formula.operation == "if":
        one, other = (bounds(part, ranges) for part in formula.parts[1:])
        return min(one[0], other[0]), max(one[1], other[1])
    return _OPERATIONS[formula.operation](*(bounds(part, ranges) for part in formula.parts))


def _product(one: Bounds, other: Bounds) -> Bounds:
    # As in formulas, a factor of 0 makes any product 0.
    ends = [0.0 if 0.0 in (left, right) else left * right for left in one for right in other]
    return min(ends), max(ends)


def _quotient(one: Bounds, other: Bounds) -> Bounds:
    if other[0] <= 0.0 <= other[1]:
        return ANY
    return _product(one, (1.0 / other[1], 1.0 / other[0]))


def _power(base: Bounds, exponent: Bounds) -> Bounds:
    if base[0] <= 0.0:
        return ANY
    try:  # monotone in each of the two
        ends = [math.pow(b, e) for b in base for e in exponent]
    except OverflowError:
        return 0.0, math.inf
    return min(ends), max(ends)


def _absolute(one: Bounds) -> Bounds:
    low, high = sorted(map(abs, one))
    return (0.0 if one[0] <= 0.0 <= one[1] else low), high


def _exponential(one: Bounds) -> Bounds:
    return _exponential_end(one[0]), _exponential_end(one[1])


def _exponential_end(end: float) -> float:
    return math.exp(end) if end < 709.0 else math.inf  # beyond, a number overflows


def _logarithm(one: Bounds) -> Bounds:
    return (math.log(one[0]) if one[0] > 0.0 else -math.inf), (math.log(one[1]) if one[1] > 0.0 else -math.inf)


_OPERATIONS: dict[str, Callable[..., Bounds]] = {
    "+": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "-": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "*": _product,
    "/": _quotient,
    "**": _power,
    "negative": lambda a: (-a[1], -a[0]),
    "min": lambda a, b: (min(a[0], b[0]), min(a[1], b[1])),
    "max": lambda a, b: (max(a[0], b[0]), max(a[1], b[1])),
    "abs": _absolute,
    "exp": _exponential,
    "log": _logarithm,
}
