"""The bounds of a formula contain all its values."""

import math

import numpy as np
import pytest

from manul.utils.formula_bounds import ANY, bounds
from manul.utils.formulas import parse

FORMULAS = [
    "won * action",
    "won * action - 2 * won",
    "(action + value) / (1 + won)",
    "min(value, action) * won",
    "max(1, action) ** (-value)",
    "abs(action - value)",
    "exp(action - 5)",
    "log(1 + value)",
    "action if won > 1 else value",
    "action / (value - 3)",
    "-action * value",
    "(action > value) * won + (won and value) + (not won)",
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_every_value_is_within_the_bounds(formula):
    parsed, rng = parse(formula), np.random.default_rng(0)
    for _ in range(200):
        ranges = {name: tuple(sorted(rng.uniform(-3, 8, 2).tolist())) for name in ("won", "action", "value")}
        low, high = bounds(parsed, ranges)
        for _ in range(10):
            values = {name: float(rng.choice([*ends, rng.uniform(*ends)])) for name, ends in ranges.items()}
            value = parsed.value(values)
            assert math.isnan(value) or low - 1e-9 * abs(low) <= value <= high + 1e-9 * abs(high)


def test_a_factor_of_zero_bounds_what_has_no_bounds():
    assert bounds(parse("action * value"), {"action": (0.0, 0.0), "value": (0.0, math.inf)}) == (0.0, 0.0)


def test_a_name_without_a_range_may_be_anything():
    assert bounds(parse("rate"), {}) == ANY


def test_wider_ranges_have_wider_bounds():
    parsed = parse("won * action - 3 * won")
    narrow, wide = (bounds(parsed, {"won": (0.0, 1.0), "action": (2.0, high)}) for high in (5.0, 9.0))
    assert wide[0] <= narrow[0]
    assert wide[1] >= narrow[1]
