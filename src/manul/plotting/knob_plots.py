"""Plots of several knobs: probabilities of options, the predicted loss along one knob, and over a pair of knobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from manul.outcomes import LOSSES, Outcome
from manul.plotting import COLOURS, from_zero, label_options, new_axes, spread_ticks, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DOTS = 40  # up to so many steps are drawn as dots, more as a line


def options_plot(probabilities: Mapping[Any, float], axes: Axes | None = None) -> Axes:
    """Draw the probabilities of options as bars."""
    axes = new_axes() if axes is None else axes
    for number, (option, probability) in enumerate(probabilities.items()):
        bar: dict[str, Any] = {"linewidth": 24, "solid_capstyle": "butt", "color": COLOURS[0]}
        axes.plot([number, number], [0, probability], label=f"_{option}", **bar)
    return label_options(style(from_zero(axes), "option", "probability"), list(probabilities))


def steps_plot(values: npt.ArrayLike, probabilities: npt.ArrayLike, axes: Axes | None = None) -> Axes:
    """Draw the probabilities of steps."""
    axes = new_axes() if axes is None else axes
    axes.plot(values, probabilities, linestyle="none", marker="o", markersize=4, color=COLOURS[0], label="_probability")
    axes.vlines(np.asarray(values), 0, np.asarray(probabilities), color=COLOURS[0], linewidth=1.2)
    return style(from_zero(axes), "step", "probability")


def loss_plot(
    values: Sequence[float],
    losses: Sequence[float],
    best: tuple[float, float],
    axes: Axes | None = None,
    *,
    dots: bool = False,
    outcome: Outcome = LOSSES,
) -> Axes:
    """Draw the predicted loss, or reward, of values of a knob as a line, or a few as dots, and mark the best value."""
    axes = new_axes() if axes is None else axes
    look: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 5}
    name = f"predicted {outcome.name}"
    axes.plot(values, losses, color=COLOURS[0], label=f"_{name}", **(look if dots and len(values) <= _DOTS else {}))
    axes.plot(best[:1], best[1:], "o", color=COLOURS[1], markersize=8, label="_best")
    return style(axes, "value", name)


def loss_map(
    edges: tuple[npt.ArrayLike, npt.ArrayLike],
    losses: npt.ArrayLike,
    best: tuple[float, float],
    axes: Axes | None = None,
    *,
    outcome: Outcome = LOSSES,
) -> Axes:
    """Draw the predicted loss, or reward, of cells between edges of two knobs as a heat map, and mark the best cell."""
    axes, name = new_axes() if axes is None else axes, f"predicted {outcome.name}"
    mesh = axes.pcolormesh(*map(np.asarray, edges), np.asarray(losses), cmap="viridis", label=f"_{name}")
    axes.figure.colorbar(mesh, ax=axes, label=name)
    axes.plot(best[:1], best[1:], "o", color=COLOURS[1], markersize=9, markeredgecolor="white", label="_best")
    style(axes, "one knob", "other knob").margins(0)
    return axes


def label_knob(axes: Axes, name: str) -> Axes:
    """Name the horizontal axis after a knob."""
    axes.set_xlabel(name)
    return spread_ticks(axes)
