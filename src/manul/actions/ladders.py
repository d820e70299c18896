"""Ladders: mixtures of ever wider uniform distributions, which explore near a window more than far from it.

The core draws from them (`src/core/knobs/ladder.hpp`) and describes them by levels: their ends and shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from manul.actions.distribution import Atoms, Distribution
from manul.actions.knobs import Choice, Knob, Knobs, Span, Stepped
from manul.actions.knobs_distribution import Branch

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


def branch(knobs: Knobs, chosen: Mapping[int, int], probability: float, levels: Sequence[Levels]) -> Branch:
    """A combination of options, by the numbers of choices and options, and the other knobs with these levels given it.

    >>> knobs = Knobs.check({"price": (10, 50), "template": Choice(["a", "b"])})
    >>> branch(knobs, {1: 0}, 0.5, [[(0.0, 1.0, 1.0)], []]).options
    {'template': 'a'}
    """
    options: dict[str, Any] = {}
    others: dict[str, Distribution | Atoms] = {}
    for index, (name, knob) in enumerate(knobs.knobs):
        if isinstance(knob, Choice):
            options[name] = knob.options[chosen[index]]
        else:
            others[name] = knob_distribution(knob, levels[index])
    return Branch(options, probability, others)
