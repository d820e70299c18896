"""The policy of a loop as tables of density: the current one, and as a function of one feature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any

import numpy as np
from msgspec.structs import replace

from manul.actions.kinds.knob import Knob
from manul.contexts import dates
from manul.contexts.table_encoding import flatten_fields
from manul.contexts.typical import typical_value, vary
from manul.service import wire
from manul.service.engine.loop import Loop
from manul.service.errors import Invalid
from manul.service.insights.history import RECENT
from manul.service.insights.knob_insights import find_knob, marginals
from manul.utils.validation import Floats

# Parts of the range of actions, values of a feature, and contexts that the current density is averaged over.
ACTIONS, VALUES, LATEST = 64, 17, 8
Value = float | str | bool | date
Table = dict[str, Sequence[Value]]


def density_now(loop: Loop, contexts: Sequence[Any]) -> list[float]:
    """The density over equal parts of the range of actions, averaged over the latest contexts; empty before the first."""
    low, high = loop.space.actions
    edges = np.linspace(low, high, ACTIONS + 1)
    rows = [densities(loop, context, edges) for context in contexts]
    return np.mean(rows, axis=0).tolist() if rows else []


def policy_view(loop: Loop, feature: str | None, knob: str | None = None) -> wire.PolicyView:
    """The density over actions, or over the cells of one of several knobs, as a function of a feature."""
    chosen = find_knob(loop, knob, "knob") if not loop.space.is_number or knob is not None else None
    contexts = loop.model.latest_contexts(RECENT)
    known = table(contexts)
    if feature is None:
        feature = next(iter(known), None)
    elif feature not in known:
        raise Invalid(_unknown(feature, list(known)), "feature")
    if feature is None:
        return wire.PolicyView(feature=None, values=[], typical=None, density=[], mean=[])
    values = spread(known[feature])
    varied = vary(known if isinstance(contexts[-1], dict) else contexts, feature, values)
    view = wire.PolicyView(
        feature=feature,
        values=[display_value(value) for value in values],
        typical=display_value(typical_value(known[feature])),
        density=[],
        mean=[],
    )
    if chosen is not None:
        return _knob_view(loop, view, varied, *chosen)
    low, high = loop.space.actions
    edges = np.linspace(low, high, ACTIONS + 1)
    rows = [densities(loop, context, edges) for context in varied]
    middle = (edges[:-1] + edges[1:]) / 2
    mean = [float(each @ middle / each.sum()) for each in rows]
    return replace(view, density=[each.tolist() for each in rows], mean=mean)


def _knob_view(
    loop: Loop, view: wire.PolicyView, contexts: Sequence[Any], place: int, name: str, knob: Knob
) -> wire.PolicyView:
    rows = [marginals(loop, context)[place] for context in contexts]
    cells = knob.middles()
    numbers = None if knob.is_option or not rows[0].size else np.array(cells, np.float64)
    mean = [] if numbers is None else [float(each @ numbers / each.sum()) for each in rows]
    return replace(view, density=[each.tolist() for each in rows], mean=mean, knob=name, cells=cells)


def display_value(value: Value) -> float | str:
    """A value as it is sent: booleans and dates become texts."""
    if isinstance(value, date):
        return value.isoformat(" ", "minutes") if isinstance(value, datetime) else value.isoformat()
    return str(value).lower() if isinstance(value, bool) else value


def features(contexts: Sequence[Any]) -> list[str]:
    """The features of contexts; those of rows of numbers are named by their positions."""
    return list(table(contexts))


def table(contexts: Sequence[Any]) -> Table:
    if not contexts:
        return {}
    if not isinstance(contexts[-1], dict):
        return {str(place): column for place, column in enumerate(zip(*contexts, strict=False))}
    found: dict[str, list[Value]] = {}
    for context in contexts:
        for name, value in flatten_fields(context).items():
            if value is not None:
                found.setdefault(name, []).append(value)
    return dict(found)


def spread(column: Sequence[Value]) -> list[Value]:
    """Equal steps between the 2nd and 98th percentiles of numbers or dates, or the most common texts or booleans."""
    if isinstance(column[0], str | bool):
        return [value for value, _ in Counter(column).most_common(VALUES)]
    days = [dates.days(value) for value in column if isinstance(value, date)]
    if len(days) == len(column):
        start, stop = np.quantile(days, (0.02, 0.98)).tolist()
        return [*dates.evenly_spaced(start, stop, VALUES if stop > start else 1, like=typical_value(column))]
    low, high = np.quantile(np.array(column), (0.02, 0.98)).tolist()
    return np.linspace(low, high, VALUES).tolist() if high > low else [low]


def densities(loop: Loop, context: Any, edges: Floats) -> Floats:
    means: Floats = loop.model.distribution(context).mean_densities(edges)
    return means


def _unknown(feature: str, known: Sequence[str]) -> str:
    close = get_close_matches(feature, known, 1) or list(known[:1])
    remedy = f"Did you mean {close[0]!r}?" if close else "Report losses first."
    return f"the contexts of this loop have no feature {feature!r}. {remedy}"
