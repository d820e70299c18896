"""What the pieces of a row say: its mass, the density of an action, and the distribution function."""

import numpy as np

NUMBERS = {"price": (10, 50), "size": (0.0, 3.0)}  # several knobs that are drawn independently of each other


def masses(space, pieces):
    """The mass of each row, one list for each knob."""
    return [
        [
            sum((high - low + knob.is_discrete) * density for low, high, density in own.row(row))
            for row in range(len(own))
        ]
        for (_, knob), own in zip(space.knobs, pieces.values(), strict=True)
    ]


def densities(space, pieces, actions):
    """The joint density of each action by the pieces of its row, in the units of the log."""
    table = space.rows(actions, len(next(iter(pieces.values()))))
    joint = np.ones(len(table))
    for place, (name, knob) in enumerate(space.knobs):
        for row, position in enumerate(table[:, place]):
            joint[row] *= _density(knob, pieces[name].row(row), position)
    return joint


def _density(knob, pieces, position):
    if knob.is_discrete:
        number = position if knob.is_option else np.floor(position * knob.volume)
        return max((density for low, high, density in pieces if low <= number <= high), default=0.0)
    value = position if knob.is_bent else knob.value(position)
    near = 1e-9 * (1.0 if knob.is_bent else knob.volume)  # an end may be rounded
    found = max((density for low, high, density in pieces if low - near <= value <= high + near), default=0.0)
    return found / (knob.units(np.array([knob.value(position)]))[0] if knob.is_bent else 1.0)


def distribution_function(pieces, points, *, is_discrete):
    """The mass below each of the points; the step or option n reaches from n to n + 1."""
    return [
        sum(density * (min(max(point, low), high + is_discrete) - low) for low, high, density in pieces)
        for point in points
    ]
