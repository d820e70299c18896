"""The look that all plots share: figures, colours, ticks and labels."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np

from manul.errors import MissingDependency

try:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, num2date
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator
except ImportError:
    raise MissingDependency("Plots need matplotlib. Install it: pip install 'manul[plot]'.") from None

__all__ = [
    "COLOURS",
    "GREY",
    "Axes",
    "Figure",
    "QuadMesh",
    "from_zero",
    "label_dates",
    "label_options",
    "label_values",
    "new_axes",
    "new_column",
    "new_figure",
    "new_grid",
    "new_row",
    "num2date",
    "number_text",
    "shorten",
    "spread_ticks",
    "style",
]
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # Okabe and Ito: safe for the colour-blind
GREY = "#777777"
_STEPS = [1, 2, 2.5, 5, 10]  # between ticks, times a power of ten
_CHARACTER = 0.08  # the width of a digit beside a tick, in inches


def new_axes() -> Axes:
    """Create empty axes on a new figure.

    >>> new_axes().get_title()
    ''
    """
    axes = new_figure(10, 4.8).subplots()
    axes.set_prop_cycle(color=COLOURS)
    return axes


def new_figure(width: float, height: float) -> Figure:
    """Create an empty figure, with its size in inches.

    >>> new_figure(10, 4.8).axes
    []
    """
    figure = Figure(figsize=(width, height), dpi=120, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12, h_pad=0.12)  # type: ignore[union-attr,call-arg]
    return figure


def new_row(count: int) -> list[Axes]:
    """Create empty axes side by side on a new figure.

    >>> len(new_row(2))
    2
    """
    grid = new_figure(7 * count, 4.8).subplots(1, count, squeeze=False)
    return list(grid[0])


def new_column(count: int) -> list[Axes]:
    """Create empty axes below each other on a new figure, with the same horizontal axis.

    >>> len(new_column(2))
    2
    """
    figure = new_figure(10, 3.2 * count)
    return list(figure.subplots(count, 1, squeeze=False, sharex=True)[:, 0])


def new_grid(count: int, columns: int = 4) -> list[Axes]:
    """Create empty axes on a new figure, at most `columns` side by side.

    >>> len(new_grid(6))
    6
    """
    across = min(count, columns)
    down = -(-count // across)
    figure = new_figure(max(5 * across, 7), 3.6 * down)
    grid = [axes for row in figure.subplots(down, across, squeeze=False) for axes in row]
    for axes in grid[count:]:
        axes.remove()
    return grid[:count]


def shorten(name: str) -> str:
    """Cut a name to 40 characters, to fit next to a plot.

    >>> len(shorten("a" * 100))
    40
    """
    return name if len(name) <= 40 else f"{name[:39]}…"


def from_zero(axes: Axes) -> Axes:
    """Let the vertical axis start at zero if nothing is below."""
    axes.autoscale(axis="y")
    if axes.dataLim.y0 >= 0:
        axes.set_ylim(bottom=0)
    return axes


def number_text(number: float, _place: float | None = None) -> str:
    """A number beside a tick, with a comma from 10,000 on, so that years are years.

    >>> number_text(2019), number_text(12500.0), number_text(0.25), number_text(5e-5)
    ('2019', '12,500', '0.25', '0.00005')
    """
    if 1e-7 <= abs(number) < 1e-4:
        return f"{number:.9f}".rstrip("0")
    return f"{number:,.10g}" if abs(number) >= 10_000 else f"{number:.10g}"


def spread_ticks(axes: Axes, *, whole: bool = False) -> Axes:
    """Put as many ticks on a linear horizontal axis as have room for their numbers, or only at whole numbers.

    >>> (axes := new_axes()).set_xlim(0, 1)
    (0.0, 1.0)
    >>> len(spread_ticks(axes).get_xticks())
    11
    """
    if axes.get_xscale() != "linear" or not isinstance(axes.xaxis.get_major_locator(), MaxNLocator):
        return axes
    texts = [number_text(tick) for tick in MaxNLocator(9, steps=_STEPS).tick_values(*axes.get_xlim())]
    room = int(_width(axes) / (_CHARACTER * (max(map(len, texts)) + 1.5)))
    axes.xaxis.set_major_locator(MaxNLocator(min(max(room, 2), 10), steps=_STEPS, integer=whole))
    return axes


def label_values(axes: Axes, values: Sequence[Any]) -> Axes:
    """Put the ticks of the horizontal axis at whole numbers if the values are whole, and at dates if they are times.

    >>> import datetime
    >>> days = [datetime.datetime(2024, 1, 1), datetime.datetime(2025, 1, 1)]
    >>> (axes := new_axes()).plot(days, [0, 1])[0] in label_values(axes, days).lines
    True
    """
    if any(isinstance(value, date | np.datetime64) for value in values):
        return label_dates(axes)
    if all(float(value).is_integer() for value in values):
        spread_ticks(axes, whole=True)
    return axes


def label_dates(axes: Axes) -> Axes:
    """Write dates at the ticks of the horizontal axis.

    >>> import datetime
    >>> lines = (axes := new_axes()).plot([datetime.date(2019, 1, 1), datetime.date(2024, 1, 1)], [0, 1])
    >>> "2020" in [tick.get_text() for tick in label_dates(axes).get_xticklabels()]
    True
    """
    locator = AutoDateLocator(minticks=3, maxticks=7)  # type: ignore[no-untyped-call]
    axes.xaxis.set_major_locator(locator)
    axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
    return axes


def label_options(axes: Axes, options: Sequence[Any], *, up: bool = False) -> Axes:
    """Write options at 0, 1, … of the horizontal axis, or of the vertical one with `up`.

    >>> [tick.get_text() for tick in label_options(new_axes(), ["plain", True]).get_xticklabels()]
    ['plain', 'True']
    """
    labels = [shorten(str(option)) for option in options]
    if up:
        axes.set_yticks(range(len(labels)), labels)
        axes.set_ylim(-0.5, len(labels) - 0.5)
        return axes
    room = _width(axes) / _CHARACTER / len(labels)
    crowded = max(map(len, labels)) + 1 > room
    axes.set_xticks(range(len(labels)), labels, rotation=30 if crowded else 0, ha="right" if crowded else "center")
    axes.set_xlim(-0.5, len(labels) - 0.5)
    return axes


def _width(axes: Axes) -> float:
    return axes.get_position().width * float(axes.figure.canvas.figure.get_figwidth())


def style(axes: Axes, across: str, up: str) -> Axes:
    """Name the axes, the horizontal one `across` and the vertical one `up`, and apply the look that all plots share."""
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.xaxis.set_major_formatter(number_text)
    axes.yaxis.set_major_formatter(number_text)
    axes.margins(x=0.01)
    spread_ticks(axes)
    axes.grid(visible=True, color="#DDDDDD", linewidth=0.7)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    if axes.get_legend_handles_labels()[1]:
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False, borderaxespad=0)
    return axes
