"""A world of knots pays what interpolation says, whatever the agent's range, and refuses what is no curve."""

import re

import numpy as np
import pytest

from manul.errors import InputError
from manul.worlds import Curves

GOOD = {"positions": [[0, 0.5, 0.5, 1]], "values": [[0.8, 0.1, 0.9, 0.9]]}


def test_losses_are_interpolated_between_knots(rng):
    positions = np.sort(np.column_stack([np.zeros(100), rng.random((100, 3)), np.ones(100)]), axis=1)
    values, actions = rng.random((100, 5)), rng.random(100)
    world = Curves(rng.random((100, 2)), positions=positions, values=values)
    interpolated = [np.interp(actions[i], positions[i], values[i]) for i in range(100)]
    assert np.allclose(world.losses(actions, (0, 1)), interpolated, rtol=1e-12)


def test_a_jump_belongs_to_its_left_side():
    table = Curves([[1.0]], **GOOD).table((0.0, 1.0))
    losses = [table.loss(0, action) for action in (0.0, 0.25, 0.5, 0.5000001, 1.0)]
    assert losses == pytest.approx([0.8, 0.45, 0.1, 0.9, 0.9])


def test_the_curve_is_stretched_over_the_agents_range(rng):
    world, shares = Curves([[1.0]], **GOOD), rng.random(20)
    unit, wide = world.table((0.0, 1.0)), world.table((-8.0, 24.0))
    assert [wide.loss(0, -8 + 32 * share) for share in shares] == pytest.approx([unit.loss(0, s) for s in shares])


def test_narrowed_rounds_stay_inside_the_agents_range(rng):
    world = Curves([[1.0]], **GOOD, lows=[0.0], highs=[1.0])
    for low, high in np.sort(rng.uniform(-3, 10, (1000, 2)), axis=1):
        table = world.table((low, high))
        assert low <= table.lows[0] < table.highs[0] <= high


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"positions": [[0, 0.6, 0.5, 1]]}, "positions must ascend from 0 to 1 in every round."),
        ({"positions": [[0.1, 0.5, 0.5, 1]]}, "positions must ascend from 0 to 1 in every round."),
        (
            {"positions": [[0, 1]]},
            "values must have one row per context, 1, and at least two columns, got shape (1, 4).",
        ),
        (
            {"positions": [0, 1]},
            "positions must have one row per context, 1, and at least two columns, got shape (2,).",
        ),
        ({"values": [[0, 0, 0, np.nan]]}, "values must be finite numbers, got NaN or infinity."),
        (
            {"expected": [[0, 1]]},
            "expected must have one row per context, 1, and at least two columns, got shape (1, 2).",
        ),
        ({"lows": [0.1]}, "lows and highs must both have one number per context, 1."),
        (
            {"lows": [0.5], "highs": [0.5]},
            "lows and highs must be fractions of the range of actions with 0 <= low < high <= 1, got (0.5, 0.5) in row 0.",
        ),
    ],
)
def test_no_curve_is_refused(setting, sentence):
    with pytest.raises(InputError, match=re.escape(sentence)):
        Curves([[1.0]], **{**GOOD, **setting})
