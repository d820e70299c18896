"""What a loop plays, as tables of density: now, and for each value of one feature of its contexts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from manul.service import schema
from manul.service.export import flattened
from manul.service.loop import Loop
from manul.service.problems import Invalid
from manul.types import Floats

ACTIONS = 64
VALUES = 25
LATEST = 8
Row = dict[str, float | str | None]


def density_now(loop: Loop, contexts: Sequence[Any]) -> list[float]:
    """The density over even parts of the range of actions, averaged over the latest contexts; nothing before the first."""
    found = [densities(loop, context) for context in contexts[-LATEST:]]
    return np.mean(found, axis=0).tolist() if found else []


def policy_view(loop: Loop, feature: str | None) -> schema.PolicyView:
    """The density over actions for values of a feature."""
    contexts = loop.latest_contexts()
    rows = [columns(context) for context in contexts]
    known = features(contexts)
    if feature is None:
        feature = known[0] if known else None
    elif feature not in known:
        raise Invalid(_unknown(feature, known), "feature")
    if not rows:
        return schema.PolicyView(feature=None, values=[], typical=None, density=[], mean=[])
    base = {name: typical(rows, name) for name in known}
    values: list[float | str] = [] if feature is None else spread(rows, feature)
    changed = [base if feature is None else {**base, feature: value} for value in values or [""]]
    found = [densities(loop, _context(contexts[-1], row)) for row in changed]
    low, high = loop.settings.actions
    middles = low + (np.arange(ACTIONS) + 0.5) / ACTIONS * (high - low)
    return schema.PolicyView(
        feature=feature,
        values=values,
        typical=None if feature is None else base[feature],
        density=[each.tolist() for each in found],
        mean=[float(each @ middles / each.sum()) for each in found],
    )


def features(contexts: Sequence[Any]) -> list[str]:
    """The features of some contexts; rows of numbers have their places for names.

    >>> features([[0.5, 2.0]]), features([{"outdoor": 4.5, "sky": "grey"}])
    (['0', '1'], ['outdoor', 'sky'])
    """
    if not contexts:
        return []
    if not isinstance(contexts[-1], dict):
        return list(map(str, range(len(contexts[-1]))))
    return list(dict.fromkeys(name for context in contexts[-LATEST:] for name in flattened(context)))


def columns(context: Any) -> Row:
    """A context as columns.

    >>> columns([0.5])
    {'0': 0.5}
    """
    return flattened(context) if isinstance(context, dict) else {str(place): x for place, x in enumerate(context)}


def typical(rows: Sequence[Row], name: str) -> float | str | None:
    """The median of numbers, the most common of texts.

    >>> typical([{"sky": "grey"}, {"sky": "blue"}, {"sky": "grey"}], "sky")
    'grey'
    """
    numbers, texts = _split(rows, name)
    if texts:
        return Counter(texts).most_common(1)[0][0]
    return float(np.median(numbers)) if numbers else None


def spread(rows: Sequence[Row], name: str) -> list[float | str]:
    """Even steps over all but the outermost numbers, or the texts, the most common first.

    >>> spread([{"sky": "grey"}, {"sky": "blue"}, {"sky": "grey"}], "sky")
    ['grey', 'blue']
    """
    numbers, texts = _split(rows, name)
    if texts:
        return [text for text, _ in Counter(texts).most_common(VALUES)]
    if not numbers:
        return []
    low, high = np.quantile(numbers, (0.02, 0.98)).tolist()
    return np.linspace(low, high, VALUES).tolist() if high > low else [low]


def densities(loop: Loop, context: Any) -> Floats:
    """The mean density in even parts of the range of actions."""
    with loop.lock:
        distribution = loop.agent.distribution(context)
    found: Floats = distribution.mean_densities(np.linspace(*loop.settings.actions, ACTIONS + 1))
    return found


def _split(rows: Sequence[Row], name: str) -> tuple[list[float], list[str]]:
    values = [row[name] for row in rows if row.get(name) is not None]
    return [each for each in values if isinstance(each, float | int)], [
        each for each in values if isinstance(each, str)
    ]


def _context(like: Any, row: Row) -> Any:
    return dict(row) if isinstance(like, dict) else [row[str(place)] for place in range(len(like))]


def _unknown(feature: str, known: Sequence[str]) -> str:
    close = get_close_matches(feature, known, 1) or list(known[:1])
    remedy = f"Did you mean {close[0]!r}?" if close else "Report losses first."
    return f"feature must be one of this loop's contexts; got {feature!r}. {remedy}"
