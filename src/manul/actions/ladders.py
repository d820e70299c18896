"""Ladders: mixtures of ever wider uniform distributions, which explore near a window more than far from it.

The core draws from them (`src/core/knobs/ladder.hpp`) and describes them by levels: their ends and shares.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from manul.actions.distribution import Atoms, Distribution
from manul.actions.knobs import Knob, Span, Stepped

Levels = Iterable[tuple[float, float, float]]


def mix_levels(levels: Levels) -> Distribution:
    """The distribution with these levels, of which at least one has a share.

    >>> mix_levels([(0.25, 0.75, 0.5), (0.0, 1.0, 0.5)]).densities
    array([0.5, 1.5, 0.5])
    """
    mixed: Distribution | None = None
    total = 0.0
    for low, high, share in levels:
        total += share
        if share > 0:
            level = Distribution.uniform(low, high)
            mixed = level if mixed is None else mixed.mix(level, share / total)
    assert mixed is not None
    return mixed


def knob_distribution(knob: Knob, levels: Levels) -> Distribution | Atoms:
    """The distribution of a knob, not a choice, whose positions have these levels.

    >>> knob_distribution(Stepped(1, 2, 1), [(0.0, 0.5, 0.5), (0.0, 1.0, 0.5)]).masses
    array([0.75, 0.25])
    """
    mixed = mix_levels(levels)
    if isinstance(knob, Span):
        return Distribution(knob.low + mixed.edges * knob.volume, mixed.densities / knob.volume)
    assert isinstance(knob, Stepped)
    masses = mixed.mean_densities(np.linspace(0.0, 1.0, knob.count + 1)) / knob.count
    values = np.array([knob.value((step + 0.5) / knob.count) for step in range(knob.count)])
    return Atoms(values, masses, knob.step)
