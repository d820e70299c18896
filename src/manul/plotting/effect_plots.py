"""Plots of effects of features: a curve with its band along numbers and times, and intervals of categories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from manul.plotting import COLOURS, GREY, label_options, label_values, new_axes, style
from manul.utils.validation import Floats

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Bands = tuple[Floats, Floats, Floats]
EFFECT = "effect on the action"


def number_effects(name: str, values: Sequence[Any], bands: Bands, axes: Axes | None = None) -> Axes:
    """Draw effects along numbers or times, and the band between the lows and highs."""
    axes, (effects, lows, highs) = new_axes() if axes is None else axes, bands
    places: Any = np.array(values)
    axes.axhline(0, color=GREY, linewidth=1)
    axes.plot(places, effects, color=COLOURS[0], linewidth=2, marker="o", markersize=3.5, label="_effect")
    axes.fill_between(places, lows, highs, color=COLOURS[0], alpha=0.25, linewidth=0)
    return label_values(style(axes, name, EFFECT), values)


def category_effects(name: str, values: Sequence[Any], bands: Bands, axes: Axes | None = None) -> Axes:
    """Draw the effect of each category and its interval.

    >>> bands = np.array([-1.0, 1.0]), np.array([-2.0, 0.0]), np.array([0.0, 2.0])
    >>> [tick.get_text() for tick in category_effects("city", ["Oslo", "Rome"], bands).get_xticklabels()]
    ['Oslo', 'Rome']
    """
    axes, (effects, lows, highs) = new_axes() if axes is None else axes, bands
    axes.axhline(0, color=GREY, linewidth=1)
    axes.vlines(np.arange(len(values)), lows, highs, color=COLOURS[0], linewidth=6, alpha=0.3)
    axes.plot(np.arange(len(values)), effects, "o", color=COLOURS[0], markersize=5, label="_effect")
    return label_options(style(axes, name, EFFECT), values)
