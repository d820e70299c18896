"""Plots of budgets: what is spent through a period, and the price of what is spent."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from manul.plotting import COLOURS, GREY, from_zero, new_axes, style


def pacing_plot(planned: npt.ArrayLike, spent: npt.ArrayLike, axes: Axes | None = None) -> Axes:
    """Draw what was planned to be spent by the end of each slot of a period, and what was.

    >>> pacing_plot([1.0, 3.0, 4.0], [0.8, 2.9]).get_ylabel()
    'spent'
    """
    axes = new_axes() if axes is None else axes
    plan, used = np.append(0.0, planned), np.append(0.0, spent)
    share = np.linspace(0, 1, len(plan))
    axes.plot(share, plan, color=GREY, linewidth=1.5, linestyle="--", label="planned")
    axes.plot(share[: len(used)], used, color=COLOURS[0], linewidth=2, label="spent")
    axes.legend()
    return style(from_zero(axes), "share of the period", "spent")


def periods_plot(shares: Sequence[float], prices: Sequence[float], axes: Axes | None = None) -> Axes:
    """Draw the share of the budget that each period spent, and its price.

    >>> periods_plot([0.7, 1.0], [0.2, 0.5]).get_xlabel()
    'period'
    """
    axes = new_axes() if axes is None else axes
    numbers = np.arange(1, len(shares) + 1)
    axes.plot(numbers, shares, color=COLOURS[0], linewidth=2, marker="o", label="spent, of the budget")
    axes.plot(numbers, prices, color=COLOURS[1], linewidth=2, marker="s", label="price")
    axes.legend()
    return style(from_zero(axes), "period", "share, price")
