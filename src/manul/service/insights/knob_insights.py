"""Several knobs: the current distribution of each, and the losses of pairs of values."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from manul.actions.kinds.knob import Knob
from manul.agents.auto_knobs import AutoKnobs
from manul.errors import remedy
from manul.service import wire
from manul.service.engine.loop import Loop
from manul.service.errors import Invalid
from manul.utils.validation import Floats

# Combinations of options whose distributions are computed, values per knob of a pair, and contexts of its predictions.
MOST_COMBINATIONS, PAIR_VALUES, PAIR_CONTEXTS = 64, 16, 4


def marginals(loop: Loop, context: Any) -> list[Floats]:
    """The distribution of each knob over its cells; empty arrays if there are too many combinations of options."""
    if math.prod(knob.cell_count for _, knob in loop.space.knobs if knob.is_option) > MOST_COMBINATIONS:
        return [np.empty(0) for _ in loop.space.knobs]
    with loop.model.hold() as model:  # with limits, the distribution is a view of the agent
        distribution = model.agent.distribution(context)
        return [knob.cell_densities(distribution.marginal(name)) for name, knob in loop.space.knobs]


def marginals_now(loop: Loop, contexts: Sequence[Any]) -> list[list[float]]:
    """The distribution of each knob over its cells, averaged over contexts; empty if there are none."""
    by_context = [marginals(loop, context) for context in contexts]
    return [np.mean(rows, axis=0).tolist() for rows in zip(*by_context, strict=True)] or [[] for _ in loop.space.titled]


def find_knob(loop: Loop, name: str | None, field: str, place: int = 0) -> tuple[int, str, Knob]:
    """The place, the name and the knob of a name; without a name, those of a place."""
    if loop.space.is_number:
        raise Invalid(f"loop {loop.name!r} has one knob.", field)
    names = [each for each, _ in loop.space.titled]
    if name is None:
        place = min(place, len(names) - 1)
    elif name in names:
        place = names.index(name)
    else:
        hint = remedy(name, names, "See the actions of the loop.")
        raise Invalid(f"{field} must be one of {', '.join(names)}, got {name!r}. {hint}", field)
    return place, names[place], loop.space.titled[place][1]


def pair_view(loop: Loop, first: str | None, second: str | None) -> wire.PairView:
    """The losses of pairs of values of two knobs; by default, of the first two knobs."""
    named = None if second is None else find_knob(loop, second, "second")
    one = find_knob(loop, first, "first", place=0 if named is None or named[0] else 1)
    other = named or find_knob(loop, None, "second", place=0 if one[0] else 1)
    knobs = [(place, knob) for place, _, knob in (one, other)]
    with loop.history.snapshot() as history:
        recent = history.actions
    shape = tuple(_size(knob) for _, knob in knobs)
    rows, columns = (_parts(knob, recent[:, place]) for place, knob in knobs)
    counts, sums = np.zeros(shape, np.int64), np.zeros(shape)
    np.add.at(counts, (rows, columns), 1)
    np.add.at(sums, (rows, columns), recent[:, -1])
    means = np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)
    values = [knob.middles(PAIR_VALUES) for _, knob in knobs]
    return wire.PairView(
        first=one[1],
        second=other[1],
        first_values=values[0],
        second_values=values[1],
        count=counts.tolist(),
        loss=[[None if value != value else value for value in row] for row in means.tolist()],
        predicted=_predicted(loop, (one[1], values[0]), (other[1], values[1])),
    )


def _size(knob: Knob) -> int:
    return knob.cell_count if knob.is_option else min(knob.cell_count, PAIR_VALUES)


def _parts(knob: Knob, positions: Floats) -> Any:
    scaled = positions if knob.is_option else positions * _size(knob)
    return scaled.astype(np.int64).clip(0, _size(knob) - 1)


def _predicted(loop: Loop, one: tuple[str, list[Any]], other: tuple[str, list[Any]]) -> list[list[float]]:
    """The predicted losses, averaged over the latest contexts; empty if the range of losses or the contexts are unknown."""
    contexts = loop.model.latest_contexts(PAIR_CONTEXTS)
    if (
        loop.settings.losses == "auto"
        or not contexts
        or not loop.space.is_named
        or not isinstance(loop.model.agent, AutoKnobs)
    ):
        return []
    pairs = [{one[0]: first, other[0]: second} for first in one[1] for second in other[1]]
    tables = []
    for context in contexts:
        with loop.model.hold() as model:
            several: Any = model.agent
            best = several.best(context)
            tables.append(several.predict_losses([context] * len(pairs), [best | pair for pair in pairs]))
    mean = np.mean(tables, axis=0).reshape(len(one[1]), len(other[1]))
    return [[float(value) for value in row] for row in mean]
